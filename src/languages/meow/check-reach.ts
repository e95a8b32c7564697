// Finds steps that can never start although their needs exist: a branch takes one way, and a list has as many
// iterations as items. A pattern never prevents a start, since one without matches is met.

import { coerce } from '../../ir/output.ts';
import type { Linked } from './link.ts';
import { prefixLength } from './linked-targets.ts';
import type { LinkedTargets } from './linked-targets.ts';
import type { BlockSyntax, NeedSyntax, StepSyntax, TargetSyntax } from './syntax.ts';
import type { TomlTable } from '../toml-tree.ts';

/** Conditions for a step to start: the ways that branches must have taken, by id. */
type BranchChoices = ReadonlyMap<string, Way>;

interface Way {
  readonly keys: ReadonlySet<string>;
  /** The need that requires it. */
  readonly need: NeedSyntax;
}

interface Footing {
  readonly ways: BranchChoices;
  /** Conditions inherited from needed steps. */
  readonly inherited: BranchChoices;
  /** `stuck`: it can never start, and fails. `behind`: it needs a stuck step, and is skipped. */
  readonly fate: 'starts' | 'stuck' | 'behind';
}

const NONE: BranchChoices = new Map();
const UNKNOWN: Footing = { ways: NONE, inherited: NONE, fate: 'starts' };
/** Maximum of tracked branches; the most recent are kept. */
const WAYS_MAX = 30;

export function checkReach(linked: Linked): void {
  for (const block of linked.blocks) {
    const byId = new Map(block.steps.map((step) => [step.id, step]));
    const footings = new Map<StepSyntax, Footing>();
    const find = (id: string): Needed | null => {
      const step = byId.get(id);
      return step === undefined ? null : { step, footing: footings.get(step) ?? UNKNOWN };
    };
    for (const step of inOrder(block.steps, byId)) footings.set(step, checkStep(linked, block, step, find));
  }
}

interface Needed {
  readonly step: StepSyntax;
  readonly footing: Footing;
}

function checkStep(
  linked: Linked,
  { report }: BlockSyntax,
  step: StepSyntax,
  find: (id: string) => Needed | null,
): Footing {
  const never = `"${step.id}" can never start`;
  let ways = NONE;
  let inherited = NONE;
  for (const need of step.needs) {
    const [head = '', ...below] = need.text.split('.');
    const before = need.text.includes('*') ? null : find(head);
    if (before === null || before.step === step) continue;
    if (blocks(before, below)) {
      const hint = `See why "${head}" does not.`;
      report.warning('unreachable-step', need.place, `${never}: it needs "${need.text}", which never does`, hint);
      return { ways: NONE, inherited: NONE, fate: 'behind' };
    }
    const { ways: own, absent } = branchPaths(linked, before.step, below);
    if (absent !== null) {
      report.error('unreachable-step', need.place, `${never}: ${absent.message}`, absent.hint);
      return { ways: NONE, inherited: NONE, fate: 'stuck' };
    }
    const handed = certainAfter(before, below);
    const mine = new Map([...own].map(([branch, keys]) => [branch, { keys, need }]));
    const clash = clashOf(ways, handed) ?? clashOf(ways, mine) ?? clashOf(handed, mine);
    if (clash !== null) {
      const { branch, one, other } = clash;
      const cause = `${only(one)} of "${branch}", and ${only(other)}`;
      const hint = `Need "${branch}" itself, which waits for whichever way it goes, or a pattern: "${branch}.*".`;
      const elsewhere = [one, other].filter((way) => way.need !== need);
      const related = elsewhere.map((way) => ({ message: `needs "${way.need.text}"`, place: way.need.place }));
      report.error('unreachable-step', need.place, `${never}: ${cause}`, hint, related);
      // Two of its needs exclude each other, so one fails in any case.
      const isSkipped = clashOf(inherited, handed) !== null;
      return { ways: NONE, inherited: NONE, fate: isSkipped ? 'behind' : 'stuck' };
    }
    inherited = merged(inherited, handed);
    ways = merged(mine, merged(ways, handed));
  }
  return { ways, inherited, fate: 'starts' };
}

function only({ keys, need }: Way): string {
  return `"${need.text}" comes only by ${[...keys].join(' or ')}`;
}

/** A step that cannot start fails, which `on_error` may handle; a skipped step stays skipped. */
function blocks({ step, footing: { fate } }: Needed, [below]: readonly string[]): boolean {
  if (fate !== 'stuck') return fate === 'behind';
  return below === undefined ? !isMadeGoodFor(step) : below !== 'recover';
}

/** Branch choices that are certain once a step, or a step below it, exists. */
function certainAfter({ step, footing }: Needed, [below]: readonly string[]): BranchChoices {
  const mayHaveFailed = below === undefined ? isMadeGoodFor(step) : below === 'recover';
  return mayHaveFailed ? footing.inherited : footing.ways;
}

function isMadeGoodFor({ table }: StepSyntax): boolean {
  const value = table.entries.get('on_error')?.value;
  return value !== undefined && !(value.kind === 'string' && value.value === 'fail');
}

interface Clash {
  readonly branch: string;
  readonly one: Way;
  readonly other: Way;
}

function clashOf(some: BranchChoices, more: BranchChoices): Clash | null {
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
function inOrder(steps: readonly StepSyntax[], byId: ReadonlyMap<string, StepSyntax>): ReadonlySet<StepSyntax> {
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

// Branch choices required for an id below a step to exist, and iterations that never exist.

export interface BranchPaths {
  /** For each branch above it, by id: the keys that may create it. */
  readonly ways: ReadonlyMap<string, ReadonlySet<string>>;
  /** Why it can never exist; null if it can, or if an unknown need is reported. */
  readonly absent: MissingIteration | null;
}

export interface MissingIteration {
  readonly message: string;
  readonly hint: string;
}

const NOT_FOLLOWED: BranchPaths = { ways: new Map(), absent: null };
/** Limit on the segments of an id. */
const SEGMENTS_MAX = 100;

/** `segments`: the id after that of the step, without patterns. */
function branchPaths(links: LinkedTargets, step: StepSyntax, segments: readonly string[]): BranchPaths {
  if (segments.length === 0 || segments.length > SEGMENTS_MAX) return NOT_FOLLOWED;
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
    const link = links.of(target);
    const segment = segments[at + head];
    if (link?.kind !== 'known' || segment === undefined) return true;
    return link.block.steps.some((child) => child.id === segment && leads(child, at + head + 1));
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
