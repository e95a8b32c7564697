// Steps that can never start although there is all that they need: a branch goes one way only, and a list has no more
// iterations than items. Patterns keep nobody from starting, for one that fits nothing is met.

import type { Linked } from './link.ts';
import type { BlockSyntax, NeedSyntax, StepSyntax } from './syntax.ts';
import { branchPaths } from './branch-paths.ts';

/** What must be so for a step to start: the ways that branches must have gone, by their ids. */
type BranchChoices = ReadonlyMap<string, Way>;

interface Way {
  readonly keys: ReadonlySet<string>;
  /** Why. */
  readonly need: NeedSyntax;
}

interface Footing {
  readonly ways: BranchChoices;
  /** Those of them that the steps need which it needs. */
  readonly inherited: BranchChoices;
  /** `stuck`: it can never start, and fails when that shows. `behind`: it needs one that never starts, and is skipped. */
  readonly fate: 'starts' | 'stuck' | 'behind';
}

const NONE: BranchChoices = new Map();
const UNKNOWN: Footing = { ways: NONE, inherited: NONE, fate: 'starts' };
/** Of how many branches at once is kept track; those that were named last. */
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
      // One of two that it needs fails in any case.
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

/** A step that cannot start fails, which its on_error may make good for; one that is skipped stays so. */
function blocks({ step, footing: { fate } }: Needed, [below]: readonly string[]): boolean {
  if (fate !== 'stuck') return fate === 'behind';
  return below === undefined ? !isMadeGoodFor(step) : below !== 'recover';
}

/** What is certain of the branches when a step, or something below it, is there to be needed. */
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

/** Each step behind those that it needs by name. */
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
