// What must have happened for an id below a step to exist: which way each branch went. And iterations that there never are.

import { coerce } from '../../ir/output.ts';
import type { TomlTable } from '../toml-tree.ts';
import type { LinkedTargets } from './linked-targets.ts';
import { prefixLength } from './linked-targets.ts';
import type { StepSyntax, TargetSyntax } from './syntax.ts';

export interface BranchPaths {
  /** Of each branch above it, by its id: the keys by which it may have come into being. */
  readonly ways: ReadonlyMap<string, ReadonlySet<string>>;
  /** Why it can never come into being; null where it can, or where that is reported as an unknown need. */
  readonly absent: MissingIteration | null;
}

export interface MissingIteration {
  readonly message: string;
  readonly hint: string;
}

const NOT_FOLLOWED: BranchPaths = { ways: new Map(), absent: null };
/** Ids of more parts than this are not followed. */
const SEGMENTS_MAX = 100;

/** `segments`: the parts of the id behind that of the step, without patterns. */
export function branchPaths(links: LinkedTargets, step: StepSyntax, segments: readonly string[]): BranchPaths {
  if (segments.length === 0 || segments.length > SEGMENTS_MAX) return NOT_FOLLOWED;
  const idAt = (at: number): string => [step.id, ...segments.slice(0, at)].join('.');
  const seen = segments.map(() => new Map<StepSyntax, boolean>());
  // Null where something else than a branch may stand there.
  const keysAt = new Map<number, Set<string> | null>();
  let absent: MissingIteration | null = null;

  /** Whether what is named may come into being below a step, with so many segments used up. */
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

/** Null where the list may have it: iterations are counted from 0, unless a key names them. */
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

/** Null where that shows only when it runs. */
function countItems(foreach: TomlTable): number | null {
  const items = foreach.entries.get('items')?.value;
  if (items?.kind === 'list') return items.items.length;
  if (items?.kind !== 'string' || items.value.includes('{{')) return null;
  const list = coerce(items.value, 'json');
  return list.ok && Array.isArray(list.value) ? list.value.length : null;
}
