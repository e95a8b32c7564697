// Results that a fork keeps from the run it comes from. A step that is about to start is settled with its old result if
// its key is the same and everything that it depends on was kept.
//
//   keep/1  A key is everything that a step asks for, with all values filled in. Comments, order, timeouts, retries and
//           the handling of errors are not part of it. Neither are values that differ in every run, such as its id.
//           A variable that a script reads from its environment is part of it if the script names it.
//   keep/2  A step depends on its needs, on those of the steps around it, on the visit before it in its lane, and on the
//           round before it in its loop. What gives a foreach its items counts by the items: an iteration is kept
//           although the list is made again.
//   keep/3  A failed step is never kept, and nothing that recovers one. A visit that failed and was routed to another is
//           kept with its outcome, if a later visit of its lane is done.
//   keep/4  A step that a block performs is kept as a whole, or not at all.

import { isJsonMap, type Json, type JsonMap, own } from '../base/json.ts';
import { type EffectSpec, environmentName, success, type Success } from '../ir/effect.ts';
import { type Act, type Block, type Program, type Step, targetsOfAct } from '../ir/program.ts';
import { type FilledText, referencesInValue, writtenText } from '../ir/text.ts';
import { blocksOf, blocksOfTarget } from '../ir/transition.ts';
import { apply } from './apply.ts';
import { type IdTree, matches } from './collections.ts';
import type { JournalRecord, PreparedStep } from './decision.ts';
import type { AgentInfo, Fork, KeptResult } from './fork.ts';
import { prepareStep } from './prepare-step.ts';
import { variablesFor } from './scope.ts';
import { type FrameState, initialState, isFinished, type RunState, stepOf, type StepState } from './state.ts';

/** Why a fork keeps a step, or runs it. */
export type Judgement = Readonly<
  | { kind: 'kept'; result: KeptResult }
  /** The old run has no such step, or did not finish it: `status` is its status there. */
  | { kind: 'unfinished'; status: string | null }
  | { kind: 'discarded'; step: string }
  /** It depends on a step that runs. */
  | { kind: 'depends'; on: string }
  | { kind: 'changed'; old: JsonMap; now: JsonMap }
  /** The script that it executes from this path has changed. */
  | { kind: 'changed-script'; path: string }
  /** It leads to a block that the workflow no longer has. */
  | { kind: 'leads-nowhere'; block: string }
  /** It belongs to a recovery, or to a step that runs as a whole. */
  | { kind: 'part'; of: string }
>;

/** Null unless the run is a fork. */
export function judgeStep(state: RunState, step: StepState): Judgement | null {
  const { fork } = state;
  if (fork === null) return null;
  const { frame } = step;
  const owner = frame.owner === null ? null : stepOf(state, frame.owner);
  const result = own(fork.results, step.id);
  if (frame.recoveryDepth > 0) return { kind: 'part', of: owner?.id ?? frame.id };
  if (frame.isInner && owner !== null) {
    return owner.keptFrom === null || result === undefined ? { kind: 'part', of: owner.id } : { kind: 'kept', result };
  }
  const discarded = discardedBy(state, fork, step);
  if (discarded !== null) return { kind: 'discarded', step: discarded };
  if (result === undefined) return { kind: 'unfinished', status: own(fork.unfinished, step.id) ?? null };
  const now = keyOf(state, step);
  if (now !== null && !isSame(result.key, now)) return { kind: 'changed', old: result.key, now };
  const script = changedScript(fork, now);
  if (script !== null) return { kind: 'changed-script', path: script };
  const rerun = rerunDependency(state, step, step.definition.needs);
  if (rerun !== null) return { kind: 'depends', on: rerun.id };
  const missing = (result.follows ?? []).flatMap(blocksOf).find((block) => !Object.hasOwn(state.program.blocks, block));
  return missing === undefined || result.grown.length > 0
    ? { kind: 'kept', result }
    : { kind: 'leads-nowhere', block: missing };
}

/** The outcome that the step had in the old run. */
export function keptOutcome({ outputs, kept, route, follows, session, grown }: KeptResult): Success {
  return success(outputs, { kept, route, follows, session, grown });
}

function discardedBy(state: RunState, { discarded }: Fork, step: StepState): string | null {
  for (let now: StepState | undefined = step; now !== undefined; now = ownerOf(state, now))
    if (discarded.includes(now.id)) return now.id;
  return null;
}

function ownerOf(state: RunState, { frame }: StepState): StepState | undefined {
  return state.steps.get(frame.owner ?? '');
}

/** Such a command ends with the path of the script, in quotes. */
function changedScript({ scripts = [] }: Fork, key: JsonMap | null): string | null {
  const effect = key?.['effect'];
  const command = isJsonMap(effect) ? effect['script'] : null;
  if (typeof command !== 'string') return null;
  return scripts.find((path) => command.endsWith(` '${path.replaceAll("'", String.raw`'\''`)}'`)) ?? null;
}

/** A step that this one, with these needs, depends on and that was not kept; null if all were (keep/2). */
function rerunDependency(state: RunState, { frame }: StepState, needs: readonly string[]): StepState | null {
  const needed = needs.flatMap((need) => stepsAt(frame.node, need.split('.')));
  const ran = [...needed, ...(frame.after?.steps ?? []), ...roundBefore(state, frame)].find(
    ({ keptFrom }) => keptFrom === null,
  );
  if (ran !== undefined) return ran;
  const owner = frame.owner === null ? undefined : state.steps.get(frame.owner);
  return owner === undefined ? null : rerunDependency(state, owner, needsOfParts(owner.definition));
}

/** The needs of what is below a step. */
function needsOfParts({ act, needs }: Step): readonly string[] {
  const sources = itemSources(act);
  return needs.filter((need) => !sources.has(need));
}

/** The steps whose outputs are the items of a foreach. */
function itemSources(act: Act): ReadonlySet<string> {
  if (act.kind !== 'each' || act.items.kind === 'file') return new Set();
  const paths = referencesInValue(act.items.value).map(({ path }) => path);
  return new Set(paths.map((path) => path.slice(0, path.indexOf('outputs', 1)).join('.')));
}

function roundBefore(state: RunState, frame: FrameState): readonly StepState[] {
  if (frame.owner === null || frame.round === undefined) return [];
  const { children } = stepOf(state, frame.owner);
  return children[children.indexOf(frame) - 1]?.steps ?? [];
}

function stepsAt(node: IdTree<StepState>, [first, ...rest]: readonly string[]): readonly StepState[] {
  if (first === undefined) return stepsBelow(node);
  return [...matches(node, first)].flatMap((next) => stepsAt(next, rest));
}

/** A prefix that is not a step (`each.0`) means all steps below it. */
function stepsBelow({ value, below }: IdTree<StepState>): readonly StepState[] {
  return value === null ? [...below.values()].flatMap(stepsBelow) : [value];
}

/** Null if a value is missing: the step fails when it starts. */
function keyOf(state: RunState, step: StepState): JsonMap | null {
  const { request, program } = state;
  // Values that differ in every run are the same in every key.
  const neutral = request === null ? request : { ...request, id: '{{workflow_id}}', folder: '{{run_folder}}' };
  const prepared = prepareStep({ state: { ...state, request: neutral }, at: 0 }, step);
  if (!prepared.ok) return null;
  const key = keyFrom(program, step.definition, prepared.value);
  const { effect } = prepared.value;
  const variables = effect?.kind === 'command' ? namedVariables(effect.script, variablesFor(state, step)) : {};
  return Object.keys(variables).length === 0 ? key : { ...key, variables };
}

/** Those that a script reads from its environment. */
function namedVariables(script: FilledText, variables: JsonMap): JsonMap {
  const text = typeof script === 'string' ? script : script.filter((piece) => typeof piece === 'string').join('');
  const names = new Set(text.match(/MEOW_VAR_[A-Z0-9_]+/g));
  return Object.fromEntries(Object.entries(variables).filter(([name]) => names.has(environmentName(name))));
}

function keyFrom(program: Program, definition: Step, { effect, agent, items }: PreparedStep): JsonMap {
  const { act } = definition;
  const needs = definition.needs.toSorted();
  switch (act.kind) {
    case 'pass':
      return { needs, act: 'pass' };
    case 'effect': {
      const steering =
        effect !== null && 'steering' in effect ? own(program.steerings, effect.steering ?? '') : undefined;
      const { machine: _, ...policy } = steering ?? { machine: '' };
      return {
        needs,
        agent,
        effect: effectKey(effect),
        ...(steering === undefined ? {} : { policy: withoutTimes(asJson(policy)) }),
      };
    }
    case 'each':
      return { needs, each: asJson(items ?? effect), key: act.key === null ? null : writtenText(act.key) };
    case 'loop':
      return { needs, loop: act.check.kind === 'output' ? asJson(act.check) : act.check.when };
    case 'block':
      return { needs, block: withoutTimes(asJson(blocksBelow(program, blocksOfTarget(act.target)))) };
  }
}

/** The blocks with these names, and those that perform their steps. */
function blocksBelow(program: Program, names: readonly string[]): readonly Block[] {
  return names.flatMap((name) => {
    const block = own(program.blocks, name);
    if (block === undefined) return [];
    const inner = block.steps.flatMap(({ act }) => targetsOfAct(act)).flatMap(blocksOfTarget);
    return [block, ...blocksBelow(program, inner)];
  });
}

/** Values of the author's own may have the names of times, so only its own times are left out. */
function effectKey(effect: EffectSpec<FilledText> | null): Json {
  if (effect?.kind === 'git' || effect?.kind === 'inspect') return withoutTimes(asJson(effect));
  const { idleMs: _, graceMs: __, ...rest } = { idleMs: null, graceMs: null, ...effect };
  return asJson(rest);
}

function asJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

const TIMES: ReadonlySet<string> = new Set(['timeout', 'timeoutMs', 'idleMs', 'graceMs', 'retry', 'onError']);

function withoutTimes(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(withoutTimes);
  if (!isJsonMap(value)) return value;
  const entries = Object.entries(value).filter(([name]) => !TIMES.has(name));
  return Object.fromEntries(entries.map(([name, inner]) => [name, withoutTimes(inner)]));
}

/** Whatever the order of the keys of maps. */
function isSame(one: Json, other: Json): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: Json): string {
  return JSON.stringify(value, (_, inner: Json) =>
    isJsonMap(inner) ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}

/** Everything that a fork may keep of a run. `discarded`: ids of steps that it must not keep. */
export function forkOf(
  from: string,
  { program, records }: { readonly program: Program; readonly records: readonly JournalRecord[] },
  discarded: readonly string[],
): Fork {
  const state = initialState(program);
  const keys = new Map<string, JsonMap>();
  const outcomes = new Map<string, Success>();
  /** Of steps that have expanded. That of a failure is not in its outcome. */
  const routes = new Map<string, string | null>();
  for (const { input, decisions, at } of records) {
    if (input.kind === 'effect-finished' && input.outcome.kind === 'success') {
      const step = state.inFlight.get(input.effect);
      if (step !== undefined) outcomes.set(step.id, input.outcome);
    }
    for (const decision of decisions) {
      if (decision.kind === 'step-started') {
        const key = keyOf(state, stepOf(state, decision.step));
        if (key !== null) keys.set(decision.step, key);
        outcomes.delete(decision.step);
        routes.delete(decision.step);
      }
      if (decision.kind === 'step-answered') routes.set(decision.step, decision.route);
      apply(state, decision, at);
    }
  }
  const isLeft = leftVisits(state);
  const results: [string, KeptResult][] = [];
  const unfinished: [string, string][] = [];
  for (const step of state.steps.values()) {
    const key = keys.get(step.id);
    const outcome = outcomes.get(step.id);
    const route = routes.get(step.id) ?? outcome?.route ?? null;
    const result = key === undefined ? null : resultOf(state, step, { key, outcome, route, isLeft: isLeft(step) });
    if (result === null) unfinished.push([step.id, step.status]);
    else results.push([step.id, result]);
  }
  return { from, discarded, results: Object.fromEntries(results), unfinished: Object.fromEntries(unfinished) };
}

/** Tells the steps from which their lane has gone on to another that is done. */
function leftVisits({ steps }: RunState): (step: StepState) => boolean {
  const lastDone = new Map<string, number>();
  for (const { frame, order, status, definition } of steps.values()) {
    const isEnd = definition.routes['done']?.kind === 'stop';
    if (status === 'done' && !isEnd && !frame.isInner) lastDone.set(frame.lane, order);
  }
  return ({ frame, order }) => order < (lastDone.get(frame.lane) ?? 0);
}

interface Ended {
  readonly key: JsonMap;
  readonly outcome: Success | undefined;
  readonly route: string | null;
  /** Its lane has gone on to a visit that is done. */
  readonly isLeft: boolean;
}

function resultOf(state: RunState, step: StepState, { key, outcome, route, isLeft }: Ended): KeptResult | null {
  const { attempt, outputs, kept, notes, items, frame, status, failure } = step;
  const isRouted = failure !== null && own(step.definition.routes, failure.kind)?.kind === 'goto';
  const isJudged = status === 'failed' && (frame.isInner || (isRouted && isLeft));
  if (status !== 'done' && !isJudged) return null;
  if (!isWhole(step)) return null;
  const earlier = step.keptFrom === null ? undefined : own(state.fork?.results ?? {}, step.id);
  const { act } = step.definition;
  const isGate = act.kind === 'effect' && act.effect.kind === 'gate';
  const decided = isGate ? (typeof outputs['outcome'] === 'string' ? outputs['outcome'] : 'completed') : null;
  return {
    key,
    attempt,
    outputs,
    kept,
    route: earlier?.route ?? route ?? decided,
    follows: earlier?.follows ?? outcome?.follows ?? null,
    grown: earlier?.grown ?? outcome?.grown ?? [],
    session: earlier?.session ?? outcome?.session ?? null,
    ...(notes === null ? {} : { notes }),
    ...(items === null ? {} : { items }),
    ...(isJudged && failure !== null ? { failure } : {}),
    ...agentOf(state, step),
  };
}

/** Whether every step that performs it has a result (keep/4). */
function isWhole({ children }: StepState): boolean {
  const body = children.findLast(({ join }) => join === 'answer');
  return body === undefined || body.steps.every((inner) => isFinished(inner) && isWhole(inner));
}

function agentOf(state: RunState, { definition: { act }, agent }: StepState): { readonly agent?: AgentInfo } {
  if (act.kind !== 'effect' || act.effect.kind !== 'spawn') return {};
  const info = state.agents.get(agent ?? '')?.info ?? null;
  return info === null ? {} : { agent: info };
}
