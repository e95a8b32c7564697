// The one act of growth: a block is instantiated as a frame of steps. Below a step it is an expansion, a branch, an
// iteration or a recovery; in a line of control it is a goto, a call, a return or a fork. Decisions only; what they do
// to the state is `apply`'s.

import { present } from '../base/assert.ts';
import type { Json } from '../base/json.ts';
import { own } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { formatDuration, formatMoment } from '../base/time.ts';
import type { Session, Success } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import { errorType, failure } from '../ir/failure.ts';
import type { Follow, Target } from '../ir/follow.ts';
import type { ValueType } from '../ir/output.ts';
import { coerce, misfit } from '../ir/output.ts';
import type { Block, Each } from '../ir/program.ts';
import type { Lookup, Text } from '../ir/text.ts';
import { writtenText, fillString, fillValue } from '../ir/text.ts';
import type { FrameJoin, FrameOpening } from './decision.ts';
import { dig, lookupFrom } from './scope.ts';
import type { FrameState, RunState, StepState } from './state.ts';
import { ENTRY_LANE, frameOf } from './state.ts';
import type { Fail, Turn } from './deciding.ts';

type Variables = Readonly<Record<string, Json>>;
const FRESH: Session = { kind: 'fresh' };

export function openEntry(turn: Turn): void {
  const { state } = turn;
  const block = blockOf(state, state.program.entry);
  const variables = present(state.request, 'a run without a request').variables;
  enter(turn, block, FRESH, {
    ...PLAIN,
    variables,
    prefix: '',
    lane: ENTRY_LANE,
    join: 'loose',
  });
}

/** What a step's outcome asks for: ends the step, or leaves it waiting for the block below it. */
export function follow(turn: Turn, step: StepState, answer: Success, follows: readonly Follow[], fail: Fail): void {
  const [only] = follows;
  if (only?.kind === 'expand') return expand(turn, step, answer, only, fail);
  const session: Session = answer.session === null ? step.frame.nextSession : { kind: 'resume', id: answer.session };
  const seen = withOutputs(turn, step, answer);
  const moves: (() => void)[] = [];
  for (const each of follows) {
    const move = prepareMove(turn, step, each, session, seen);
    if (!move.ok) return fail(turn, step, move.error);
    moves.push(move.value);
  }
  // Successors first: a frame that hands over must not be seen without anything open in it.
  for (const move of moves) move();
  if (step.settlement === 'open') {
    const { outputs, kept, route } = answer;
    const inBody = step.frame.join === 'answer' ? { route } : {};
    turn.emit({ kind: 'step-done', step: step.id, outputs, kept, session: answer.session, ...inBody });
  }
}

export function openRecovery(turn: Turn, step: StepState, problem: Failure, target: Target, fail: Fail): void {
  const { startedAt, definition } = step;
  const effect = definition.act.kind === 'effect' ? definition.act.effect : null;
  const lookup = lookupFrom(turn.state, step.frame, step, turn.at);
  // A step that could not even start has an agent and a prompt all the same: as far as they can be told.
  const shown = (text: Text): string => {
    const filled = fillString(text, lookup);
    return filled.ok ? filled.value : writtenText(text);
  };
  const context: Json = {
    id: step.id,
    executor: definition.executor,
    error_type: errorType(problem.kind),
    error_message: problem.message,
    started_at: formatMoment(startedAt ?? turn.at),
    duration: formatDuration(turn.at - (startedAt ?? turn.at)),
    retries: step.recoveries - 1,
    agent: step.agent ?? (effect !== null && 'agent' in effect ? shown(effect.agent) : ''),
    prompt: effect !== null && 'prompt' in effect ? shown(effect.prompt) : '',
  };
  const opened = openBelow(turn, step, target, 'recover', `recover.${step.recoveries}`, { _failed_step: context });
  if (opened.ok) return;
  turn.emit({ kind: 'recovery-failed', step: step.id });
  fail(turn, step, opened.error);
}

/** The block that performs the step, for its present attempt. */
export function openBody(turn: Turn, step: StepState, target: Target, fail: Fail): void {
  const part = step.attempt === 1 ? null : String(step.attempt);
  const opened = openBelow(turn, step, target, 'answer', part, {});
  if (!opened.ok) return fail(turn, step, opened.error);
  turn.emit({ kind: 'step-grown', step: step.id });
}

/** Opens as many further iterations as may be open at once. */
export function advanceEach(turn: Turn, step: StepState, fail: Fail): void {
  const { act, onError } = step.definition;
  // One that nobody waits for is done, and begins its further iterations all the same, as long as anything begins.
  if (act.kind !== 'each' || step.grown || (step.status === 'done' && turn.state.end !== null)) return;
  const items = present(step.items, `${step.id} iterates over nothing`);
  const width = step.width ?? Infinity;
  if (step.blocks === 0 && typeof act.target.block === 'string') {
    const steps = turn.state.program.blocks[act.target.block]?.steps.length ?? 0;
    const limit = limitProblem(turn.state, step.frame, steps * items.length);
    if (limit !== null) return fail(turn, step, limit);
  }
  if (act.key !== null && step.names === null) {
    const names = nameIterations(turn, step, act, act.key, items);
    if (!names.ok) return fail(turn, step, names.error);
    turn.emit({ kind: 'iterations-named', step: step.id, names: names.value });
  }
  const givesUp = (): boolean => step.childFailed && onError.kind === 'fail';
  for (let index = nextItem(step); index < items.length; index = nextItem(step)) {
    if (step.openChildren >= width || givesUp()) break;
    const given = givenTo(act, present(items[index], 'an item is missing'), index);
    const part = step.names?.[index] ?? String(index);
    const opened = openBelow(turn, step, act.target, act.join ? 'wait' : 'loose', part, given);
    if (!opened.ok) return fail(turn, step, opened.error);
  }
  if (nextItem(step) === items.length || givesUp()) turn.emit({ kind: 'step-grown', step: step.id });
  if (!act.join && step.status === 'running')
    turn.emit({ kind: 'step-done', step: step.id, outputs: step.outputs, kept: step.kept, session: null });
}

/** The first item without an iteration. By name, an iteration may be there from before the list was read anew. */
function nextItem(step: StepState): number {
  const { names } = step;
  if (names === null) return step.blocks;
  while (step.begun < names.length && step.namesBegun.has(names[step.begun] ?? '')) step.begun += 1;
  return step.begun;
}

function givenTo({ itemName, indexName }: Each, item: Json, index: number): Variables {
  return indexName === null ? { [itemName]: item } : { [itemName]: item, [indexName]: index };
}

/** Each name is a segment of ids, and another one for each item. */
function nameIterations(
  turn: Turn,
  step: StepState,
  act: Each,
  key: Text,
  items: readonly Json[],
): Result<readonly string[], Failure> {
  const around = lookupFrom(turn.state, step.frame, step, turn.at);
  const names = new Set<string>();
  const freed = (name: string): string => (names.has(name) ? freed(`${name}_`) : name);
  for (const [index, item] of items.entries()) {
    const filled = fillString(key, seenWith(givenTo(act, item, index), around));
    if (!filled.ok) return err(failure('unresolved', `key: ${filled.error}`));
    const name = filled.value.replaceAll(/[^A-Za-z0-9_-]/g, '_') || String(index);
    names.add(names.has(name) ? freed(`${name}_${index}`) : name);
  }
  return ok([...names]);
}

/** The callee is over: its caller goes on in the block that the call named. */
export function returnToCaller(turn: Turn, callee: FrameState, caller: FrameState): void {
  const target = present(callee.returnTo, 'a call without a return');
  // What ends without handing anything back hands back nothing.
  const value = callee.value ?? '';
  const result: Variables = { result: value };
  const around = lookupFrom(turn.state, caller, null, turn.at);
  const lookup: Lookup = (path) => (path.length === 1 && path[0] === 'result' ? ok(value) : around(path));
  const bound = bind(turn.state, target, lookup, result, caller.lane);
  if (!bound.ok) {
    turn.emit({ kind: 'warned', message: `cannot return to the caller: ${bound.error.message}` });
    turn.emit({ kind: 'frame-failing', frame: caller.id, step: caller.steps[0]?.id ?? '' });
    return;
  }
  enter(turn, bound.value.block, caller.nextSession, {
    ...PLAIN,
    ...successor(caller),
    variables: bound.value.variables,
  });
}

function expand(
  turn: Turn,
  step: StepState,
  answer: Success,
  follows: Extract<Follow, { kind: 'expand' }>,
  fail: Fail,
): void {
  const below = prepareBelow(turn, step, follows.target, follows.join, null, {}, withOutputs(turn, step, answer));
  if (!below.ok) return fail(turn, step, below.error);
  const { outputs, kept, route, session } = answer;
  turn.emit({ kind: 'step-answered', step: step.id, outputs, kept, route, session });
  below.value();
  turn.emit({ kind: 'step-grown', step: step.id });
  if (follows.join === 'inline') turn.emit({ kind: 'step-done', step: step.id, outputs, kept, session: null });
}

/** Everything that can go wrong is found before anything is decided. */
function prepareMove(
  turn: Turn,
  step: StepState,
  move: Follow,
  session: Session,
  lookup: Lookup,
): Result<() => void, Failure> {
  const { state } = turn;
  const { frame } = step;
  switch (move.kind) {
    case 'end':
    case 'expand':
      return ok(() => {});
    case 'goto': {
      const bound = bind(state, move.target, lookup, {}, frame.lane);
      if (!bound.ok) return bound;
      return ok(() => {
        const bottom = move.dropCallers ? dropCallers(turn, frame) : frame;
        const { block, variables } = bound.value;
        const prefix = prefixBelow(block, step.id, bottom);
        enter(turn, block, sessionFor(move.session, session), { ...PLAIN, ...successor(bottom), prefix, variables });
      });
    }
    case 'call': {
      const bound = bind(state, move.target, lookup, {}, frame.lane);
      if (!bound.ok) return bound;
      const { callDepthMax } = state.program.limits;
      if (frame.depth + 1 > callDepthMax)
        return err(failure('expansion-limit', `max call depth exceeded: ${callDepthMax}`));
      return ok(() =>
        enter(turn, bound.value.block, sessionFor(move.session, session), {
          ...PLAIN,
          variables: bound.value.variables,
          prefix: prefixBelow(bound.value.block, step.id, frame),
          lane: frame.lane,
          join: frame.join,
          caller: frame.id,
          returnTo: move.returnTo,
          depth: frame.depth + 1,
          recoveryDepth: frame.recoveryDepth,
        }),
      );
    }
    case 'return': {
      const value = fillValue(move.value, lookup);
      if (!value.ok) return err(failure('unresolved', value.error));
      return ok(() => turn.emit({ kind: 'value-returned', frame: frame.id, value: value.value }));
    }
    case 'fork': {
      // A line of control that begins has not been anywhere.
      const bound = bind(state, move.target, lookup, {}, null);
      if (!bound.ok) return bound;
      return ok(() => {
        const lane = laneBeside(state, frame.lane, move.name);
        enter(turn, bound.value.block, FRESH, {
          ...PLAIN,
          variables: bound.value.variables,
          prefix: prefixBelow(bound.value.block, lane, frame),
          lane,
          join: 'loose',
          forkedFrom: frame.lane,
          depth: frame.depth,
        });
      });
    }
    case 'stop':
      return ok(() => {
        // An end that is already decided stands.
        if (state.end !== null && state.end !== 'paused') return;
        turn.emit({ kind: 'run-ending', end: move.verdict, reason: move.reason, drainUntil: turn.at });
      });
  }
}

/** Its number is that of the fork, or one further on: the eleventh `t` and the first `t1` would have the same name. */
function laneBeside({ lanes }: RunState, from: string, name: string): string {
  for (let number = (lanes.get(from)?.forks ?? 0) + 1; ; number++) {
    const lane = `${from}_${name}${number}`;
    if (!lanes.has(lane)) return lane;
  }
}

function openBelow(
  turn: Turn,
  step: StepState,
  target: Target,
  join: FrameJoin,
  part: string | null,
  given: Variables,
): Result<null, Failure> {
  const around = lookupFrom(turn.state, step.frame, step, turn.at);
  const below = prepareBelow(turn, step, target, join, part, given, around);
  if (!below.ok) return below;
  below.value();
  return ok(null);
}

/** What stands below a step: everything that can go wrong is found before anything is decided. */
function prepareBelow(
  turn: Turn,
  step: StepState,
  target: Target,
  join: FrameJoin,
  part: string | null,
  given: Variables,
  around: Lookup,
): Result<() => void, Failure> {
  const { state } = turn;
  const bound = bind(state, target, seenWith(given, around), given, null);
  if (!bound.ok) return bound;
  const { block, variables } = bound.value;
  const limit = limitProblem(state, step.frame, block.steps.length);
  if (limit !== null) return err(limit);
  const prefix = part === null ? `${step.id}.` : `${step.id}.${part}.`;
  return ok(() =>
    // What performs the step goes on in its session.
    enter(turn, block, join === 'answer' ? step.frame.nextSession : FRESH, {
      ...PLAIN,
      variables,
      prefix,
      scope: step.frame.id,
      owner: step.id,
      join,
      lane: block.naming === 'path' ? step.frame.lane : `${prefix}${ENTRY_LANE}`,
      depth: step.frame.depth + 1,
      recoveryDepth: step.frame.recoveryDepth + (join === 'recover' ? 1 : 0),
    }),
  );
}

/** Steps that are named by where they stand, stand below something that there is once. */
function prefixBelow({ naming }: Block, id: string, { prefix }: FrameState): string {
  return naming === 'path' ? `${id}.` : prefix;
}

type Placement = Omit<FrameOpening, 'id' | 'session'>;

const PLAIN = {
  scope: null,
  owner: null,
  caller: null,
  returnTo: null,
  forkedFrom: null,
  replaces: null,
  depth: 0,
  recoveryDepth: 0,
} as const;

/** A frame in the place of another: its lane, owner and caller go over to it. */
function successor(frame: FrameState): Omit<Placement, 'variables'> {
  const { prefix, scope, owner, join, caller, returnTo, lane, depth, recoveryDepth } = frame;
  return {
    prefix,
    scope,
    owner,
    join,
    caller,
    returnTo,
    lane,
    forkedFrom: null,
    replaces: frame.id,
    depth,
    recoveryDepth,
  };
}

function enter(turn: Turn, block: Block, session: Session, place: Placement): void {
  const lane = turn.state.lanes.get(place.lane);
  const visit = (lane?.visits ?? 0) + 1;
  const id = block.naming === 'path' ? place.prefix : `${place.lane}:${visit}`;
  // Of several lines of control below one prefix, the first needs no name.
  const home = place.lane === `${place.prefix}${ENTRY_LANE}` ? place.prefix : `${place.lane}.`;
  const steps = block.steps.map((step) => {
    switch (block.naming) {
      case 'path':
        return `${place.prefix}${step.id}`;
      case 'visit-first':
        return `${place.lane}.${visit}.${step.id}`;
      case 'visit-last':
        return `${home}${step.id}#${(lane?.named.get(step.id) ?? 0) + 1}`;
    }
  });
  turn.emit({ kind: 'frame-opened', frame: { ...place, id, session } });
  turn.emit({ kind: 'steps-added', frame: id, block: block.name, steps });
}

/** Ends the frames that wait for this one to return, and says which stood at the bottom. */
function dropCallers(turn: Turn, frame: FrameState): FrameState {
  const dropped: string[] = [];
  let bottom = frame;
  while (bottom.caller !== null) {
    dropped.push(bottom.id);
    bottom = frameOf(turn.state, bottom.caller);
  }
  if (dropped.length > 0) {
    turn.emit({ kind: 'frames-dropped', frames: dropped });
    turn.emit({ kind: 'warned', message: `${frame.lane}: a reset dropped ${dropped.length} pending return(s)` });
  }
  return bottom;
}

/** Names that are given with the block come before those around it. */
function seenWith(given: Variables, around: Lookup): Lookup {
  return (path) => {
    const value = own(given, path[0] ?? '');
    return value === undefined ? around(path) : lookupIn(value, path);
  };
}

/**
 * `lane`: the line of control that enters the block; null where none does. `passed`: blocks that this one stands in for,
 * since they may not be visited any more.
 */
function bind(
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
  if (block.visits !== null && isWornOut(state, block, lane)) {
    const { max, instead } = block.visits;
    if (passed.includes(block)) {
      const message = `${block.name} has been visited ${max} times, and all that is to be entered instead as often as it may be`;
      return err(failure('expansion-limit', message));
    }
    const variables = { ...target.variables, ...instead.variables };
    return bind(state, { ...instead, variables }, lookup, given, lane, [...passed, block]);
  }
  const variables: Record<string, Json> = { ...given };
  for (const [name, template] of Object.entries(target.variables)) {
    const value = fillValue(template, lookup);
    if (!value.ok) return err(failure('unresolved', `variable ${name}: ${value.error}`));
    variables[name] = value.value;
  }
  for (const parameter of block.parameters) {
    const { name, type } = parameter;
    const passed = own(variables, name);
    if (passed !== undefined) {
      const typed = typeof passed === 'string' ? coerce(passed, type) : fits(passed, type);
      if (!typed.ok) return err(failure('unresolved', `variable ${name} of ${block.name}: ${typed.error}`));
      variables[name] = typed.value;
    } else if (parameter.fallback !== null) {
      // A default may refer to what stands before it.
      const value = fillValue(parameter.fallback, seenWith(variables, lookup));
      if (!value.ok) return err(failure('unresolved', `variable ${name}: ${value.error}`));
      const typed = typeof value.value === 'string' ? coerce(value.value, type) : fits(value.value, type);
      if (!typed.ok) return err(failure('unresolved', `variable ${name} of ${block.name}: ${typed.error}`));
      variables[name] = typed.value;
    } else if (parameter.required && !lookup([name]).ok) {
      return err(failure('unresolved', `${block.name} needs the variable ${name}, and nobody passed it`));
    }
  }
  return ok({ block, variables });
}

function fits(value: Json, type: ValueType): Result<Json, string> {
  const problem = misfit(value, type);
  return problem === null ? ok(value) : err(problem);
}

function isWornOut({ lanes }: RunState, { visits, steps }: Block, lane: string | null): boolean {
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
  const { expansionDepthMax, stepsMax } = state.program.limits;
  if (frame.depth + 1 > expansionDepthMax)
    return failure('expansion-limit', `max expansion depth exceeded: ${expansionDepthMax}`);
  if (state.steps.size + steps > stepsMax) return failure('expansion-limit', `max steps exceeded: ${stepsMax}`);
  return null;
}

/** A session that has not begun yet is neither gone on with nor forked: the policy it was to begin with is handed on. */
function sessionFor(policy: 'resume' | 'fresh' | 'fork', now: Session): Session {
  if (policy === 'fresh' || now.kind === 'fresh') return FRESH;
  return policy === 'fork' ? { kind: 'fork', id: now.id } : now;
}

function blockOf(state: RunState, name: string): Block {
  return present(state.program.blocks[name], `no block ${name} in this program`);
}

/** Names as the step sees them once it has answered: its own outputs included. */
function withOutputs(turn: Turn, step: StepState, answer: Success): Lookup {
  const around = lookupFrom(turn.state, step.frame, step, turn.at);
  return (path) => {
    const [name, word, field = ''] = path;
    if (name !== step.definition.id || word !== 'outputs') return around(path);
    const value = own(answer.outputs, field);
    if (value === undefined || answer.kept.includes(field)) return around(path);
    return lookupIn(value, path.slice(2));
  };
}

function lookupIn(value: Json, path: readonly string[]): Result<Json, string> {
  return dig(value, path.slice(1), path[0] ?? '');
}
