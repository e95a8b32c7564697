// Instantiates blocks as frames of steps; a run grows in no other way. Below a step that is an expansion, a branch, an
// iteration or a recovery. In a lane it is a goto, a call, a return or a fork. Emits decisions only; `apply` changes
// the state. A function that cannot instantiate a block returns the failure of the step that asked for it.

import { err, mapAll, ok, present, type Result } from '../base/errors.ts';
import { type Json, own } from '../base/json.ts';
import { nearest } from '../base/names.ts';
import { formatDuration, formatMoment } from '../base/time.ts';
import type { Session, Success } from '../ir/effect.ts';
import { errorType, failure, type Failure } from '../ir/failure.ts';
import { asType } from '../ir/output.ts';
import type { Block, Each } from '../ir/program.ts';
import { fillString, fillValue, type Lookup, type Text, writtenText } from '../ir/text.ts';
import type { Target, Transition } from '../ir/transition.ts';
import type { FrameJoin, FrameSpec } from './decision.ts';
import { lookupFrom, valueAt } from './scope.ts';
import {
  type DecideContext,
  ENTRY_LANE,
  frameOf,
  type FrameState,
  type RunState,
  sessionAfter,
  type StepState,
} from './state.ts';

type Variables = Readonly<Record<string, Json>>;
const FRESH: Session = { kind: 'fresh' };

export function openEntry(ctx: DecideContext): void {
  const { program, request } = ctx.state;
  const block = present(program.blocks[program.entry], `no block ${program.entry} in this program`);
  const { variables } = present(request, 'a run without a request');
  enter(ctx, block, FRESH, { variables, prefix: '', lane: ENTRY_LANE, join: 'loose' });
}

/** Takes the transitions of a successful step. Ends the step, or leaves it waiting for its child frame. */
export function takeTransitions(
  ctx: DecideContext,
  step: StepState,
  answer: Success,
  follows: readonly Transition[],
): Failure | null {
  const [only] = follows;
  if (only?.kind === 'expand') return expand(ctx, step, answer, only);
  const { outputs, kept, route, session } = answer;
  const lookup = withOutputs(ctx, step, answer);
  const current: Session = session === null ? step.frame.nextSession : sessionAfter(step, session);
  const moves = mapAll(follows, (follow) => prepareMove(ctx, step, follow, current, lookup));
  if (!moves.ok) return moves.error;
  // Transitions first: otherwise the frame would be closable before its replacement exists.
  for (const move of moves.value) move();
  if (step.settlement === 'open') {
    const { join } = step.frame;
    const inBody = join === 'answer' || join === 'check' ? { route } : {};
    ctx.emit({ kind: 'step-done', step: step.id, outputs, kept, session, ...inBody });
  }
  return null;
}

export function openRecovery(ctx: DecideContext, step: StepState, cause: Failure, target: Target): Failure | null {
  const { startedAt, definition } = step;
  const effect = definition.act.kind === 'effect' ? definition.act.effect : null;
  const lookup = lookupFrom(ctx.state, step.frame, step, ctx.at);
  // The step may have failed before its texts could be filled.
  const shown = (text: Text): string => {
    const filled = fillString(text, lookup);
    return filled.ok ? filled.value : writtenText(text);
  };
  const context: Json = {
    id: step.id,
    executor: definition.executor,
    error_type: errorType(cause.kind),
    error_message: cause.message,
    started_at: formatMoment(startedAt ?? ctx.at),
    duration: formatDuration(ctx.at - (startedAt ?? ctx.at)),
    retries: step.recoveries - 1,
    agent: step.agent ?? (effect !== null && 'agent' in effect ? shown(effect.agent) : ''),
    prompt: effect !== null && 'prompt' in effect ? shown(effect.prompt) : '',
  };
  const part = `recover.${step.recoveries}`;
  const problem = openBelow(ctx, step, { target, join: 'recover', part, given: { _failed_step: context } });
  if (problem !== null) ctx.emit({ kind: 'recovery-failed', step: step.id });
  return problem;
}

/** Opens the block that performs the step, for its current attempt. */
export function openBody(ctx: DecideContext, step: StepState, target: Target): Failure | null {
  const part = step.attempt === 1 ? '' : String(step.attempt);
  const problem = openBelow(ctx, step, { target, join: 'answer', part });
  if (problem === null) ctx.emit({ kind: 'step-grown', step: step.id });
  return problem;
}

/** Starts iterations up to the concurrency limit. */
export function advanceEach(ctx: DecideContext, step: StepState): Failure | null {
  const { act, onError } = step.definition;
  // A foreach without join is done at once and keeps starting iterations until the run ends.
  if (act.kind !== 'each' || step.grown || (step.status === 'done' && ctx.state.end !== null)) return null;
  const items = present(step.items, `${step.id} iterates over nothing`);
  const width = step.width ?? Infinity;
  if (step.blocks === 0 && typeof act.target.block === 'string') {
    const steps = ctx.state.program.blocks[act.target.block]?.steps.length ?? 0;
    const limit = limitProblem(ctx.state, step.frame, steps * items.length);
    if (limit !== null) return limit;
  }
  if (act.key !== null && step.names === null) {
    const names = nameIterations(ctx, step, act, act.key, items);
    if (!names.ok) return names.error;
    ctx.emit({ kind: 'iterations-named', step: step.id, names: names.value });
  }
  const givesUp = (): boolean => step.childFailed && onError.kind === 'fail';
  for (let index = nextItem(step); index < items.length; index = nextItem(step)) {
    if (step.openChildren >= width || givesUp()) break;
    const given = iterationVariables(act, present(items[index], 'an item is missing'), index);
    const part = step.names?.[index] ?? String(index);
    const problem = openBelow(ctx, step, { target: act.target, join: act.join ? 'wait' : 'loose', part, given });
    if (problem !== null) return problem;
  }
  if (nextItem(step) === items.length || givesUp()) ctx.emit({ kind: 'step-grown', step: step.id });
  if (!act.join && step.status === 'running')
    ctx.emit({ kind: 'step-done', step: step.id, outputs: step.outputs, kept: step.kept, session: null });
  return null;
}

/** Index of the first item without an iteration. A named one may exist from before the items were read again. */
function nextItem(step: StepState): number {
  const { names } = step;
  if (names === null) return step.blocks;
  while (step.iterationCursor < names.length && step.startedNames.has(names[step.iterationCursor] ?? ''))
    step.iterationCursor += 1;
  return step.iterationCursor;
}

function iterationVariables({ itemName, indexName }: Each, item: Json, index: number): Variables {
  return indexName === null ? { [itemName]: item } : { [itemName]: item, [indexName]: index };
}

/** Makes each name a valid id segment, and unique. */
function nameIterations(
  ctx: DecideContext,
  step: StepState,
  act: Each,
  key: Text,
  items: readonly Json[],
): Result<readonly string[], Failure> {
  const around = lookupFrom(ctx.state, step.frame, step, ctx.at);
  const names = new Set<string>();
  const freed = (name: string): string => (names.has(name) ? freed(`${name}_`) : name);
  for (const [index, item] of items.entries()) {
    const filled = fillString(key, withVariables(iterationVariables(act, item, index), around));
    if (!filled.ok) return err(failure('unresolved', `key: ${filled.error}`));
    const name = filled.value.replaceAll(/[^A-Za-z0-9_-]/g, '_') || String(index);
    names.add(names.has(name) ? freed(`${name}_${index}`) : name);
  }
  return ok([...names]);
}

/** After a call has finished, enters the block named for its return. */
export function returnToCaller(ctx: DecideContext, callee: FrameState, caller: FrameState): void {
  const target = present(callee.returnTo, 'a call without a return');
  // A call without a return value returns the empty string.
  const result = callee.value ?? '';
  const around = lookupFrom(ctx.state, caller, null, ctx.at);
  const lookup: Lookup = (path) => (path.length === 1 && path[0] === 'result' ? ok(result) : around(path));
  const bound = bindTarget(ctx.state, target, lookup, { result }, caller.lane);
  if (!bound.ok) {
    ctx.emit({ kind: 'warned', message: `cannot return to the caller: ${bound.error.message}` });
    ctx.emit({ kind: 'frame-failing', frame: caller.id, step: caller.steps[0]?.id ?? '' });
    return;
  }
  const { block, variables } = bound.value;
  enter(ctx, block, caller.nextSession, { ...replacementOf(caller), variables });
}

function expand(
  ctx: DecideContext,
  step: StepState,
  answer: Success,
  { target, join }: Extract<Transition, { kind: 'expand' }>,
): Failure | null {
  const problem = openBelow(ctx, step, { target, join, answer });
  if (problem !== null) return problem;
  const { outputs, kept } = answer;
  ctx.emit({ kind: 'step-grown', step: step.id });
  if (join === 'inline') ctx.emit({ kind: 'step-done', step: step.id, outputs, kept, session: null });
  return null;
}

/** Finds every error before anything is decided. */
function prepareMove(
  ctx: DecideContext,
  step: StepState,
  move: Transition,
  session: Session,
  lookup: Lookup,
): Result<() => void, Failure> {
  const { state } = ctx;
  const { frame } = step;
  switch (move.kind) {
    case 'end':
    case 'expand':
    // The kernel never takes it: see `complete`.
    case 'reject':
      return ok(() => {});
    case 'goto':
    case 'call':
    case 'fork': {
      // A new lane has no visits yet.
      const bound = bindTarget(state, move.target, lookup, {}, move.kind === 'fork' ? null : frame.lane);
      if (!bound.ok) return bound;
      const { callDepthMax } = state.limits;
      if (move.kind === 'call' && frame.depth + 1 > callDepthMax)
        return err(failure('expansion-limit', `max call depth exceeded: ${callDepthMax}`));
      const { block, variables } = bound.value;
      const next = move.kind === 'fork' ? FRESH : sessionFor(move.session, session);
      return ok(() => enter(ctx, block, next, placeAfter(ctx, step, move, block, variables)));
    }
    case 'return': {
      const value = fillValue(move.value, lookup);
      if (!value.ok) return err(failure('unresolved', value.error));
      return ok(() => ctx.emit({ kind: 'value-returned', frame: frame.id, value: value.value }));
    }
    case 'fail':
      return err(failure('child-failed', move.message));
    case 'stop':
      return ok(() => {
        // An end that is already decided wins.
        if (state.end !== null && state.end !== 'paused') return;
        ctx.emit({ kind: 'run-ending', end: move.verdict, reason: move.reason, drainUntil: ctx.at });
      });
  }
}

function placeAfter(
  ctx: DecideContext,
  step: StepState,
  move: Extract<Transition, { kind: 'goto' | 'call' | 'fork' }>,
  block: Block,
  variables: Variables,
): FramePlacement {
  const { frame } = step;
  const { id: caller, lane, join, depth, recoveryDepth } = frame;
  switch (move.kind) {
    case 'goto': {
      const bottom = move.dropCallers ? dropCallers(ctx, frame) : frame;
      return { ...replacementOf(bottom), prefix: prefixBelow(block, homeAfter(step), bottom), variables };
    }
    case 'call': {
      const prefix = prefixBelow(block, homeAfter(step), frame);
      const { returnTo } = move;
      return { variables, prefix, lane, join, caller, returnTo, depth: depth + 1, recoveryDepth };
    }
    case 'fork': {
      const name = newLaneName(ctx.state, lane, move.name);
      const prefix = prefixBelow(block, name, frame);
      return { variables, prefix, lane: name, join: 'loose', forkedFrom: lane, depth };
    }
  }
}

/** Numbered by fork. Skips taken names: the eleventh `t` and the first `t1` would collide. */
function newLaneName({ lanes }: RunState, from: string, name: string): string {
  for (let number = (lanes.get(from)?.forks ?? 0) + 1; ; number++) {
    const lane = `${from}_${name}${number}`;
    if (!lanes.has(lane)) return lane;
  }
}

interface Below {
  readonly target: Target;
  readonly join: FrameJoin;
  /** Between the id of the step and those of the new steps. */
  readonly part?: string;
  /** Variables that the target does not set. */
  readonly given?: Variables;
  /** Recorded before the block is opened. */
  readonly answer?: Success;
  /** Number of the round, if the step is a loop. */
  readonly round?: number;
}

/** Finds every error before anything is decided. */
export function openBelow(ctx: DecideContext, step: StepState, below: Below): Failure | null {
  const { state } = ctx;
  const { frame } = step;
  const { target, join, part = '', given = {}, answer, round } = below;
  const inRound = round === undefined ? {} : { round };
  const around =
    answer === undefined
      ? lookupFrom(state, frame, step, ctx.at, round === undefined ? null : { loop: step.id, round })
      : withOutputs(ctx, step, answer);
  const bound = bindTarget(state, target, withVariables(given, around), given, null);
  if (!bound.ok) return bound.error;
  const { block, variables } = bound.value;
  const limit = limitProblem(state, frame, block.steps.length);
  if (limit !== null) return limit;
  if (answer !== undefined) {
    const { outputs, kept, route, session } = answer;
    ctx.emit({ kind: 'step-answered', step: step.id, outputs, kept, route, session });
  }
  const prefix = part === '' ? `${step.id}.` : `${step.id}.${part}.`;
  // A block that performs the step continues its session.
  enter(ctx, block, join === 'answer' ? frame.nextSession : FRESH, {
    variables,
    prefix,
    scope: frame.id,
    owner: step.id,
    join,
    lane: block.naming === 'path' ? frame.lane : `${prefix}${ENTRY_LANE}`,
    depth: frame.depth + 1,
    recoveryDepth: frame.recoveryDepth + (join === 'recover' ? 1 : 0),
    // A check shares the prefix of its round, so that it sees the steps of the round.
    ...(join === 'check' ? { id: `${prefix}check` } : {}),
    ...inRound,
  });
  return null;
}

/** What follows a step that a block performs is beside that block. */
function homeAfter({ id, definition }: StepState): string {
  return definition.act.kind === 'block' ? `${id}.next` : id;
}

/** Ids by path must be below something unique in the run. */
function prefixBelow({ naming }: Block, id: string, { prefix }: FrameState): string {
  return naming === 'path' ? `${id}.` : prefix;
}

const NO_LINKS = {
  scope: null,
  owner: null,
  caller: null,
  returnTo: null,
  forkedFrom: null,
  replaces: null,
  depth: 0,
  recoveryDepth: 0,
} as const;

type FramePlacement = Omit<FrameSpec, 'id' | 'session' | keyof typeof NO_LINKS> &
  Partial<Pick<FrameSpec, 'id' | keyof typeof NO_LINKS>>;

/** Takes over lane, owner and caller of the replaced frame. */
function replacementOf(frame: FrameState): Omit<FramePlacement, 'variables'> {
  const { prefix, scope, owner, join, caller, returnTo, lane, depth, recoveryDepth, round } = frame;
  const inRound = round === undefined ? {} : { round };
  return { prefix, scope, owner, join, caller, returnTo, lane, replaces: frame.id, depth, recoveryDepth, ...inRound };
}

function enter(ctx: DecideContext, block: Block, session: Session, place: FramePlacement): void {
  const lane = ctx.state.lanes.get(place.lane);
  const visit = (lane?.visits ?? 0) + 1;
  const id = place.id ?? (block.naming === 'path' ? place.prefix : `${place.lane}:${visit}`);
  // The first lane below a prefix adds no name of its own.
  const home = place.lane === `${place.prefix}${ENTRY_LANE}` ? place.prefix : `${place.lane}.`;
  const steps = block.steps.map((step) => {
    switch (block.naming) {
      case 'path':
        return `${place.prefix}${step.id}`;
      case 'visit-first':
        return `${place.lane}.${visit}.${step.id}`;
      case 'visit-last':
        return `${home}${step.id}#${(lane?.countById.get(step.id) ?? 0) + 1}`;
    }
  });
  ctx.emit({ kind: 'frame-opened', frame: { ...NO_LINKS, ...place, id, session } });
  ctx.emit({ kind: 'steps-added', frame: id, block: block.name, steps });
}

/** Drops the frames that wait for this one to return. Returns the outermost of them. */
function dropCallers(ctx: DecideContext, frame: FrameState): FrameState {
  const dropped: string[] = [];
  let bottom = frame;
  while (bottom.caller !== null) {
    dropped.push(bottom.id);
    bottom = frameOf(ctx.state, bottom.caller);
  }
  if (dropped.length > 0) {
    ctx.emit({ kind: 'frames-dropped', frames: dropped });
    ctx.emit({ kind: 'warned', message: `${frame.lane}: a reset dropped ${dropped.length} pending return(s)` });
  }
  return bottom;
}

function withVariables(given: Variables, around: Lookup): Lookup {
  return (path) => {
    const value = own(given, path[0] ?? '');
    return value === undefined ? around(path) : lookupIn(value, path);
  };
}

/** `lane`: enters the block; null for child frames. `passed`: blocks skipped because their visit limit is reached. */
function bindTarget(
  state: RunState,
  target: Target,
  lookup: Lookup,
  given: Variables,
  lane: string | null,
  passed: readonly Block[] = [],
): Result<{ block: Block; variables: Variables }, Failure> {
  const named = blockNamed(state, target, lookup);
  if (!named.ok) return named;
  const block = named.value;
  if (block.visits !== null && isVisitLimitReached(state, block, lane)) {
    const { max, instead } = block.visits;
    if (passed.includes(block)) {
      const message = `${block.name} has been visited ${max} times, and every block to enter instead has reached its limit too`;
      return err(failure('expansion-limit', message));
    }
    const variables = { ...target.variables, ...instead.variables };
    return bindTarget(state, { ...instead, variables }, lookup, given, lane, [...passed, block]);
  }
  const variables: Record<string, Json> = { ...given };
  for (const [name, template] of Object.entries(target.variables)) {
    const value = fillValue(template, lookup);
    if (!value.ok) return err(failure('unresolved', `variable ${name}: ${value.error}`));
    variables[name] = value.value;
  }
  for (const { name, type, required, fallback } of block.parameters) {
    let value = own(variables, name);
    if (value === undefined && fallback !== null) {
      // A default may refer to earlier parameters.
      const filled = fillValue(fallback, withVariables(variables, lookup));
      if (!filled.ok) return err(failure('unresolved', `variable ${name}: ${filled.error}`));
      value = filled.value;
    }
    if (value !== undefined) {
      const typed = asType(value, type);
      if (!typed.ok) return err(failure('unresolved', `variable ${name} of ${block.name}: ${typed.error}`));
      variables[name] = typed.value;
    } else if (required && !lookup([name]).ok) {
      return err(failure('unresolved', `${block.name} requires the variable ${name}, which was not passed`));
    }
  }
  return ok({ block, variables });
}

function isVisitLimitReached({ lanes }: RunState, { visits, steps }: Block, lane: string | null): boolean {
  const [first] = steps;
  if (lane === null || first === undefined || visits === null) return false;
  return (lanes.get(lane)?.visitsOf.get(first) ?? 0) >= visits.max;
}

function blockNamed(state: RunState, { block, names }: Target, lookup: Lookup): Result<Block, Failure> {
  if (typeof block === 'string') {
    const known = own(state.program.blocks, block);
    return known === undefined ? err(failure('unrouted', `there is no block ${block}`)) : ok(known);
  }
  const spelled = fillString(block, lookup);
  if (!spelled.ok) return err(failure('unresolved', spelled.error));
  const known = own(state.program.blocks, own(names, spelled.value) ?? '');
  if (known !== undefined) return ok(known);
  const near = nearest(spelled.value, Object.keys(names));
  const hint = near === null ? '' : `; did you mean ${near}?`;
  return err(failure('template-not-found', `there is no template ${JSON.stringify(spelled.value)}${hint}`));
}

function limitProblem(state: RunState, frame: FrameState, steps: number): Failure | null {
  const { expansionDepthMax, stepsMax } = state.limits;
  if (frame.depth + 1 > expansionDepthMax)
    return failure('expansion-limit', `max expansion depth exceeded: ${expansionDepthMax}`);
  if (state.steps.size + steps > stepsMax) return failure('expansion-limit', `max steps exceeded: ${stepsMax}`);
  return null;
}

/** A session that has not started can neither be resumed nor forked, so it stays fresh. */
function sessionFor(policy: 'resume' | 'fresh' | 'fork', now: Session): Session {
  if (policy === 'fresh' || now.kind === 'fresh') return FRESH;
  return policy === 'fork' ? { kind: 'fork', id: now.id } : now;
}

/** Lookup that includes the outputs of the step's own answer. */
function withOutputs(ctx: DecideContext, step: StepState, answer: Success): Lookup {
  const around = lookupFrom(ctx.state, step.frame, step, ctx.at);
  return (path) => {
    const [name, word, field = ''] = path;
    if (name !== step.definition.id || word !== 'outputs') return around(path);
    const value = own(answer.outputs, field);
    if (value === undefined || answer.kept.some((name) => name.split('.', 1)[0] === field)) return around(path);
    return lookupIn(value, path.slice(2));
  };
}

function lookupIn(value: Json, path: readonly string[]): Result<Json, string> {
  return valueAt(value, path.slice(1), path[0] ?? '');
}
