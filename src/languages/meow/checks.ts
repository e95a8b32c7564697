// Checks over linked workflows: steps that can never start, variables passed between workflows, and agents that are
// prompted before they are started.

import { segmentMatcher } from '../../base/names.ts';
import { coerce, typeError } from '../../ir/output.ts';
import { listed, type Report, suggest } from '../report.ts';
import { fillPlaceholders, parseTemplate } from '../template.ts';
import { valueOf } from '../toml-fields.ts';
import { type TomlEntry, type TomlString, type TomlTable, tomlToJson, type TomlValue } from '../toml-tree.ts';
import type { Call, Linked } from './link.ts';
import { type LinkedTargets, prefixLength } from './linked-targets.ts';
import { type CallerScopes, findCycles, groupBy, type Order, showCycle } from './needs.ts';
import type { BlockSyntax, NeedSyntax, StepSyntax, TargetSyntax, VariableSyntax } from './syntax.ts';

/** Conditions for a step to start: the ways that branches must have taken, by id. */
type BranchChoices = ReadonlyMap<string, Way>;

interface Way {
  readonly keys: ReadonlySet<string>;
  /** The need that requires it. */
  readonly need: NeedSyntax;
}

interface Reach {
  readonly step: StepSyntax;
  readonly ways: BranchChoices;
  /** Conditions inherited from needed steps. */
  readonly inherited: BranchChoices;
  /** `stuck`: it can never start, and fails. `behind`: it needs a stuck step, and is skipped. */
  readonly fate: 'starts' | 'stuck' | 'behind';
}

const NONE: BranchChoices = new Map();
/** Maximum of tracked branches; the most recent are kept. */
const WAYS_MAX = 30;

export function checkReach(linked: Linked): void {
  for (const block of linked.blocks) {
    const reaches = new Map(block.steps.map((step) => [step.id, unconditional(step, 'starts')]));
    for (const step of inOrder(block)) reaches.set(step.id, checkStep(linked, block.report, step, reaches));
  }
}

function unconditional(step: StepSyntax, fate: Reach['fate']): Reach {
  return { step, ways: NONE, inherited: NONE, fate };
}

/** `reaches`: those of the steps that it may need. */
function checkStep(linked: Linked, report: Report, step: StepSyntax, reaches: ReadonlyMap<string, Reach>): Reach {
  const never = `"${step.id}" can never start`;
  let ways = NONE;
  let inherited = NONE;
  for (const need of step.needs) {
    const [head = '', ...below] = need.text.split('.');
    const before = need.text.includes('*') ? undefined : reaches.get(head);
    if (before === undefined || before.step === step) continue;
    if (blocks(before, below)) {
      const hint = `See why "${head}" does not.`;
      report.warning('unreachable-step', need.place, `${never}: it needs "${need.text}", which never does`, hint);
      return unconditional(step, 'behind');
    }
    const { ways: own, absent } = branchPaths(linked, before.step, below);
    if (absent !== null) {
      report.error('unreachable-step', need.place, `${never}: ${absent.message}`, absent.hint);
      return unconditional(step, 'stuck');
    }
    const certain = certainAfter(before, below);
    const mine = new Map([...own].map(([branch, keys]) => [branch, { keys, need }]));
    const clash = clashOf(ways, certain) ?? clashOf(ways, mine) ?? clashOf(certain, mine);
    if (clash !== null) {
      const { branch, one, other } = clash;
      const cause = `${only(one)} of "${branch}", and ${only(other)}`;
      const hint = `Need "${branch}" itself, which waits for whichever way it goes, or a pattern: "${branch}.*".`;
      const elsewhere = [one, other].filter((way) => way.need !== need);
      const related = elsewhere.map((way) => ({ message: `needs "${way.need.text}"`, place: way.need.place }));
      report.error('unreachable-step', need.place, `${never}: ${cause}`, hint, related);
      // Two of its needs exclude each other, so one fails in any case.
      return unconditional(step, clashOf(inherited, certain) === null ? 'stuck' : 'behind');
    }
    inherited = merged(inherited, certain);
    ways = merged(mine, merged(ways, certain));
  }
  return { step, ways, inherited, fate: 'starts' };
}

function only({ keys, need }: Way): string {
  return `"${need.text}" comes only by ${[...keys].join(' or ')}`;
}

/** A step that cannot start fails, which `on_error` may handle; a skipped step stays skipped. */
function blocks({ step, fate }: Reach, [below]: readonly string[]): boolean {
  if (fate !== 'stuck') return fate === 'behind';
  return below === undefined ? !handlesFailure(step) : below !== 'recover';
}

/** Branch choices that are certain once a step, or a step below it, exists. */
function certainAfter({ step, ways, inherited }: Reach, [below]: readonly string[]): BranchChoices {
  const mayHaveFailed = below === undefined ? handlesFailure(step) : below === 'recover';
  return mayHaveFailed ? inherited : ways;
}

function handlesFailure({ table }: StepSyntax): boolean {
  const value = table.entries.get('on_error')?.value;
  return value !== undefined && !(value.kind === 'string' && value.value === 'fail');
}

/** A branch that must have taken two different ways. */
function clashOf(
  some: BranchChoices,
  more: BranchChoices,
): { readonly branch: string; readonly one: Way; readonly other: Way } | null {
  if (some === more) return null;
  for (const [branch, other] of more) {
    const one = some.get(branch);
    if (one !== undefined && common(one.keys, other.keys).size === 0) return { branch, one, other };
  }
  return null;
}

function common(some: ReadonlySet<string>, more: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...some].filter((key) => more.has(key)));
}

function merged(some: BranchChoices, more: BranchChoices): BranchChoices {
  if (some === more || more.size === 0) return some;
  if (some.size === 0) return more;
  const all = new Map(some);
  for (const [branch, way] of more) {
    const known = all.get(branch);
    if (known === undefined && all.size < WAYS_MAX) all.set(branch, way);
    else if (known !== undefined && known.keys !== way.keys) {
      all.set(branch, { keys: common(known.keys, way.keys), need: known.need });
    }
  }
  return all;
}

/** Topological order by named needs. */
function inOrder({ steps, byId }: BlockSyntax): ReadonlySet<StepSyntax> {
  const order = new Set<StepSyntax>();
  const entered = new Set<StepSyntax>();
  const open = steps.toReversed();
  for (let step = open.at(-1); step !== undefined; step = open.at(-1)) {
    if (entered.has(step)) {
      order.add(step);
      open.pop();
      continue;
    }
    entered.add(step);
    for (const { text } of step.needs) {
      const before = byId.get(text.split('.', 1)[0] ?? '');
      if (before !== undefined && !entered.has(before)) open.push(before);
    }
  }
  return order;
}

// Ids below a step that exist only if branches choose certain keys, and ids of iterations that never exist.

interface BranchPaths {
  /** For each branch above it, by id: the keys that may create it. */
  readonly ways: ReadonlyMap<string, ReadonlySet<string>>;
  /** Why it can never exist; null if it can, or if an unknown need is reported. */
  readonly absent: MissingIteration | null;
}

interface MissingIteration {
  readonly message: string;
  readonly hint: string;
}

const SEGMENTS_MAX = 100;

/** `segments`: the id after that of the step, without patterns. */
function branchPaths(links: LinkedTargets, step: StepSyntax, segments: readonly string[]): BranchPaths {
  if (segments.length === 0 || segments.length > SEGMENTS_MAX) return { ways: new Map(), absent: null };
  const idAt = (at: number): string => [step.id, ...segments.slice(0, at)].join('.');
  const seen = segments.map(() => new Map<StepSyntax, boolean>());
  // Null if something other than a branch may be there.
  const keysAt = new Map<number, Set<string> | null>();
  let absent: MissingIteration | null = null;

  /** Whether the named step may exist below a step after that many segments. */
  const leads = (from: StepSyntax, at: number): boolean => {
    const known = at === segments.length ? true : seen[at]?.get(from);
    if (known !== undefined) return known;
    const taken = from.targets.filter((target) => leadsBy(from, target, at));
    const does = taken.length > 0 || (from.targets.length === 0 && from.canGrow);
    seen[at]?.set(from, does);
    if (does) note(at, from.executor === 'branch' ? taken : []);
    return does;
  };
  const leadsBy = (from: StepSyntax, target: TargetSyntax, at: number): boolean => {
    const head = prefixLength(target, segments.slice(at, at + 2));
    if (head === null) return false;
    if (target.kind === 'each') {
      const why = missingIteration(from.table, idAt(at), segments[at] ?? '');
      absent ??= why;
      if (why !== null) return false;
    }
    if (target.kind === 'round' && segments[at] === '0') {
      absent ??= {
        message: `the rounds of "${idAt(at)}" count from 1`,
        hint: 'Need a later round, or the loop itself.',
      };
      return false;
    }
    const link = links.of(target);
    const segment = segments[at + head];
    if (link?.kind !== 'known' || segment === undefined) return true;
    const child = link.block.byId.get(segment);
    return child !== undefined && leads(child, at + head + 1);
  };
  const note = (at: number, taken: readonly TargetSyntax[]): void => {
    const before = keysAt.get(at);
    const isBranch = taken.length > 0 && taken.every(({ kind }) => kind === 'branch');
    if (!isBranch || before === null) keysAt.set(at, null);
    else keysAt.set(at, new Set([...(before ?? []), ...taken.map(({ key }) => key)]));
  };

  const exists = leads(step, 0);
  const ways = [...keysAt].flatMap(([at, keys]) => (keys === null ? [] : [[idAt(at), keys] as const]));
  return { ways: new Map(ways), absent: exists ? null : absent };
}

/** Null if the list may have it: iterations count from 0 unless a key names them. */
function missingIteration(foreach: TomlTable, id: string, iteration: string): MissingIteration | null {
  if (foreach.entries.has('key')) return null;
  const count = countItems(foreach);
  if (count === 0) return { message: `the list of "${id}" is empty`, hint: 'Remove this need, or fill the list.' };
  const isNumber = /^(?:0|[1-9]\d*)$/.test(iteration);
  if (isNumber && (count === null || Number(iteration) < count)) return null;
  const hint = `Need "${id}" itself, which waits for all of them.`;
  if (count === null) return { message: `the iterations of "${id}" are named by numbers, from 0`, hint };
  const more = count === 1 ? '' : ` to "${id}.${String(count - 1)}"`;
  return { message: `"${id}" brings only "${id}.0"${more}`, hint };
}

/** Null if unknown before it runs. */
function countItems(foreach: TomlTable): number | null {
  const items = foreach.entries.get('items')?.value;
  if (items?.kind === 'list') return items.items.length;
  if (items?.kind !== 'string' || items.value.includes('{{')) return null;
  const list = coerce(items.value, 'json');
  return list.ok && Array.isArray(list.value) ? list.value.length : null;
}

/** Checks passed variables (all required, no unknown ones) and endless calls. `uses`: whether a block uses a name. */
export function checkCalls(
  linked: Linked,
  callers: CallerScopes,
  uses: (block: BlockSyntax, name: string) => boolean,
): void {
  for (const call of linked.calls) {
    if (!call.isCertain || call.target.to.kind === 'inline') continue;
    checkPassed(call);
    checkMissing(call, callers, uses);
  }
  checkEndless(linked);
}

function checkPassed({ from, target, to }: Call): void {
  const { report } = from;
  const { name: called } = to.workflow;
  const unknown: TomlEntry[] = [];
  for (const entry of target.variables) {
    const variable = to.variables.find(({ name }) => name === entry.key);
    if (variable === undefined) unknown.push(entry);
    else if (variable.isFile) {
      const message = `"${entry.key}" names a file where "${called}" is run itself; here it is taken as it is`;
      report.warning('file-variable', entry.keyPlace, message, 'Pass the text of the file, or the path as a string.');
    } else checkPassedType(report, entry.value, variable);
  }
  const [first, ...more] = unknown;
  if (first === undefined) return;
  const names = unknown.map(({ key }) => key);
  const message = `"${called}" declares no variable${more.length === 0 ? '' : 's'} ${listed(names)}`;
  const it = more.length === 0 ? 'it' : 'them';
  const declare = `Declare ${it} under [${called}.variables], or do not pass ${it}.`;
  const declared = to.variables.map(({ name }) => name);
  const hint = more.length > 0 ? declare : suggest(first.key, declared, declare);
  report.warning('undeclared-variable', first.keyPlace, message, hint);
}

/** A literal must have the declared type; a reference is checked when it is filled. */
function checkPassedType(report: Report, value: TomlValue, { name, type }: VariableSyntax): void {
  if (value.kind === 'string' && value.value.includes('{{')) return;
  const wrong = value.kind === 'string' ? coerce(value.value, type) : typeError(tomlToJson(value), type);
  const message = typeof wrong === 'string' ? wrong : wrong === null || wrong.ok ? null : wrong.error;
  if (message === null) return;
  report.error('wrong-type', value.place, `"${name}" has another type: ${message}`, 'Pass a value of that type.');
}

function checkMissing(
  { from, target, to }: Call,
  callers: CallerScopes,
  uses: (block: BlockSyntax, name: string) => boolean,
): void {
  const { names, openness } = callers.around(from);
  for (const { name, place, required, hasDefault, isFile } of to.variables) {
    if (target.variables.some(({ key }) => key === name)) continue;
    if (hasDefault && isFile) {
      const message = `the default of "${name}" names a file, which is read only where "${to.workflow.name}" is run itself`;
      from.report.warning('file-variable', target.place, message, `Pass its text: variables = { ${name} = "…" }.`);
    }
    if (hasDefault || target.brings.includes(name) || names.has(name)) continue;
    if (from.variables.some((declared) => declared.name === name) || openness === 'called') continue;
    if (!required && !uses(to, name)) continue;
    const related = from.report === to.report ? [{ message: 'declared here', place }] : [];
    const hint =
      target.kind === 'recover'
        ? `Give it a default; a workflow that is named by on_error is handed nothing.`
        : `Pass it: variables = { ${name} = "…" }.`;
    const message = `"${to.workflow.name}" ${required ? 'requires' : 'uses'} the variable "${name}", and is not handed it`;
    from.report[required ? 'error' : 'warning']('variable-not-passed', target.place, message, hint, related);
  }
}

/** Only unconditional calls are endless: a condition, a possibly empty list or a failure ends the recursion. */
function checkEndless({ blocks, calls }: Linked): void {
  const certain = calls.filter(({ target, isCertain }) => target.kind === 'expand' && isCertain);
  const always = groupBy(certain, ({ from }) => from);
  for (const cycle of findCycles(blocks, (block) => always.get(block) ?? [])) {
    const last = cycle.at(-1);
    if (last === undefined) continue;
    const ring = [last.to, ...cycle.map(({ to }) => to)].map(({ workflow }) => workflow.name);
    const message = `this calls itself without end: ${showCycle(ring)}`;
    const hint = 'Use a branch to decide whether it continues; otherwise the limits of the run stop it.';
    last.from.report.warning('endless-expansion', last.target.place, message, hint);
  }
}

/** Ids that a loop uses itself, beside the steps of its rounds. */
const LOOP_IDS: readonly string[] = ['until', 'while', 'exhausted', 'previous'];

export function checkRounds({ calls }: Linked): void {
  for (const { from, target, to } of calls) {
    if (target.kind !== 'round') continue;
    for (const id of LOOP_IDS) {
      const step = to.byId.get(id);
      if (step === undefined) continue;
      const message = `a step of a round cannot be called "${id}": the loop uses the name itself`;
      const place = to.report === from.report ? step.place : target.place;
      from.report.error('reserved-name', place, message, 'Rename the step.');
    }
  }
}

// Checks that agents are started before they are prompted, and not killed in between, as far as their names show. Names
// may contain placeholders: two names can mean the same agent unless their fixed parts differ.

interface AgentStep {
  readonly block: BlockSyntax;
  readonly step: StepSyntax;
  readonly name: TomlString;
  /** With `*` for each placeholder. */
  readonly pattern: string;
}

export function checkAgents(linked: Linked, callers: CallerScopes): void {
  const spawns = linked.blocks.flatMap((block) => stepsWith(block, 'spawn'));
  const candidatesFor = indexByPattern(spawns);
  const reported = new Set<string>();
  for (const block of linked.blocks) {
    const kills = stepsWith(block, 'kill');
    for (const prompt of stepsWith(block, 'agent')) {
      const possible = candidatesFor(prompt.pattern).filter(({ pattern }) => couldBeSame(pattern, prompt.pattern));
      if (possible.length > 0) {
        checkOrder(prompt, possible, callers.orderOf(block));
        checkEnded(linked, prompt, kills, possible, callers.orderOf(block));
      } else {
        // Once per agent and file: many steps may use the same agent.
        const key = JSON.stringify([block.report.source.file, prompt.name.value]);
        if (!reported.has(key)) reportNowhere(prompt, spawns);
        reported.add(key);
      }
    }
  }
}

function reportNowhere({ block, name }: AgentStep, spawns: readonly AgentStep[]): void {
  const message = `no step in sight starts the agent "${name.value}"`;
  const start = `Start it before: executor = "spawn", agent = "${name.value}"; a caller may have started it.`;
  const started = new Set(spawns.map((spawn) => spawn.name.value));
  block.report.warning('agent-not-spawned', name.place, message, () => suggest(name.value, started, start));
}

/** If only this block starts the agent, it does so before the step; if after it, a caller must have started it. */
function checkOrder({ block, step, name }: AgentStep, possible: readonly AgentStep[], order: Order): void {
  const [first] = possible;
  if (first === undefined || possible.some((spawn) => spawn.block !== block || spawn.name.value !== name.value)) return;
  if (possible.some((spawn) => order.isBefore(spawn.step.id, step))) return;
  if (possible.some((spawn) => order.isBefore(step.id, spawn.step))) return;
  const needs = [...step.needs.map(({ text }) => text), first.step.id].map((id) => `"${id}"`).join(', ');
  const message = `the agent "${name.value}" may not have been started by then: "${first.step.id}" is not among the needs`;
  const related = [{ message: 'started here', place: first.step.place }];
  block.report.error('agent-not-spawned', name.place, message, `Add it: needs = [${needs}].`, related);
}

/** If an earlier step kills the agent, a step in between, or below one, must start it again. */
function checkEnded(
  { calls }: Linked,
  { block, step, name, pattern }: AgentStep,
  kills: readonly AgentStep[],
  possible: readonly AgentStep[],
  order: Order,
): void {
  if (pattern.includes('*')) return;
  const ending = kills.filter((kill) => kill.pattern === pattern && order.isBefore(kill.step.id, step));
  if (ending.length === 0) return;
  const starting = new Set(possible.filter((spawn) => spawn.block === block).map((spawn) => spawn.step));
  // Iterating a set includes elements added meanwhile.
  const blocks = new Set(possible.map((spawn) => spawn.block));
  for (const inner of blocks) {
    for (const { from, step: leading, to } of calls) {
      if (to !== inner) continue;
      if (from === block) starting.add(leading);
      blocks.add(from);
    }
  }
  const between = [...starting].filter((start) => order.isBefore(start.id, step));
  const last = ending.find((kill) => !between.some((start) => order.isBefore(kill.step.id, start)));
  if (last === undefined) return;
  const cause = `"${last.step.id}" ends it, and no step in between starts it again`;
  const message = `the agent "${name.value}" has been ended by then: ${cause}`;
  const hint = `Prompt it before "${last.step.id}", or start it again in between: executor = "spawn".`;
  const related = [{ message: 'ended here', place: last.step.place }];
  block.report.warning('agent-not-spawned', name.place, message, hint, related);
}

function stepsWith(block: BlockSyntax, executor: 'spawn' | 'agent' | 'kill'): readonly AgentStep[] {
  return block.steps.flatMap((step) => {
    const name = valueOf(step.table, 'agent', 'string');
    if (step.executor !== executor || name === null || name.value.trim() === '') return [];
    return [{ block, step, name, pattern: fillPlaceholders(parseTemplate(name.value).parts, '*') }];
  });
}

/** Most names have no placeholders and match only themselves. */
function indexByPattern(spawns: readonly AgentStep[]): (pattern: string) => readonly AgentStep[] {
  const open = spawns.filter(({ pattern }) => pattern.includes('*'));
  const exact = groupBy(spawns, ({ pattern }) => pattern);
  return (pattern) => (pattern.includes('*') ? spawns : [...(exact.get(pattern) ?? []), ...open]);
}

function couldBeSame(one: string, other: string): boolean {
  if (!one.includes('*')) return segmentMatcher(other)(one);
  if (!other.includes('*')) return segmentMatcher(one)(other);
  // Both have placeholders: their fixed prefixes and suffixes must agree as far as both have them.
  const starts = [one.slice(0, one.indexOf('*')), other.slice(0, other.indexOf('*'))] as const;
  const ends = [one.slice(one.lastIndexOf('*') + 1), other.slice(other.lastIndexOf('*') + 1)] as const;
  return (
    (starts[0].startsWith(starts[1]) || starts[1].startsWith(starts[0])) &&
    (ends[0].endsWith(ends[1]) || ends[1].endsWith(ends[0]))
  );
}
