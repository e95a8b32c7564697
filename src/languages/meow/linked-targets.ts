// Targets of steps after linking. Answers all questions about what is below or around a step.

import { segmentMatcher } from '../../base/names.ts';
import { listed, suggest } from '../report.ts';
import type { BlockSyntax, StepSyntax, TargetSyntax } from './syntax.ts';

export interface LinkedTargets {
  /** Null if it was not found, which is reported. */
  readonly of: (target: TargetSyntax) => LinkedTarget | null;
}

export type LinkedTarget =
  | { readonly kind: 'known'; readonly block: BlockSyntax }
  /** A workflow of another language: its first block. */
  | { readonly kind: 'foreign'; readonly entry: string }
  /** A reference with placeholders: the blocks it may mean, as far as known. */
  | { readonly kind: 'open'; readonly names: ReadonlyMap<string, BlockSyntax> };

/** Steps that an id below a step may name, including `*`; null if that is unknown at compile time. */
export function stepsBelow(
  links: LinkedTargets,
  step: StepSyntax,
  segments: readonly string[],
): readonly StepSyntax[] | null {
  let isCertain = true;
  // By number of consumed segments, each step once: recursion would make a pattern endless.
  const reached = segments.map(() => new Set<StepSyntax>());
  const found = new Set<StepSyntax>();
  const follow = (from: StepSyntax, at: number): void => {
    if (from.targets.length === 0 && from.canGrow) isCertain = false;
    for (const target of from.targets) {
      const head = prefixLength(target, segments.slice(at, at + 2));
      if (head === null) continue;
      const link = links.of(target);
      const segment = segments[at + head];
      if (link?.kind !== 'known' || segment === undefined) {
        isCertain = false;
        continue;
      }
      const fits = segmentMatcher(segment);
      for (const child of link.block.steps) {
        if (!fits(child.id)) continue;
        if (at + head + 1 === segments.length) found.add(child);
        else reached[at + head + 1]?.add(child);
      }
    }
  };
  follow(step, 0);
  for (const [at, steps] of reached.entries()) for (const child of steps) follow(child, at);
  return isCertain ? [...found] : null;
}

/** For hints: steps below a step, and the nearest name. */
export function knownBelow(links: LinkedTargets, step: StepSyntax, wanted: string): string {
  const ids = step.targets.flatMap((target) => {
    const link = links.of(target);
    const head = EXAMPLE_PREFIXES[target.kind];
    return link?.kind === 'known' ? link.block.steps.map(({ id }) => `${step.id}.${head}${id}`) : [];
  });
  if (ids.length === 0) return `"${step.id}" brings no steps into being.`;
  const there = new Set(ids);
  return suggest(wanted, there, `Below "${step.id}" ${there.size === 1 ? 'is' : 'are'} ${listed(there)}.`);
}

/** For hints: what the id of a step below another begins with. */
const EXAMPLE_PREFIXES: Readonly<Record<TargetSyntax['kind'], string>> = {
  expand: '',
  branch: '',
  each: '0.',
  recover: 'recover.1.',
  round: '1.',
  check: '1.',
  exhausted: 'exhausted.',
};

/** Number of segments before the ids of a block's own steps; null if they name something else. */
export function prefixLength({ kind }: TargetSyntax, [first = '', second]: readonly string[]): number | null {
  switch (kind) {
    case 'expand':
    case 'branch':
      return 0;
    case 'each':
      return 1;
    case 'round':
    case 'check':
      return /^[\d*]+$/.test(first) ? 1 : null;
    case 'exhausted':
      return segmentMatcher(first)('exhausted') ? 1 : null;
    case 'recover':
      return segmentMatcher(first)('recover') && (second === undefined || /^[\d*]+$/.test(second)) ? 2 : null;
  }
}

/** Steps with that id in the rounds of a loop, its condition included; null if its steps are not known. */
export function stepsOfRound(links: LinkedTargets, loop: StepSyntax, id: string): readonly StepSyntax[] | null {
  const blocks = roundsOf(links, loop);
  const found = blocks.flatMap((block) => block?.byId.get(id) ?? []);
  return found.length === 0 && blocks.includes(null) ? null : found;
}

export function idsOfRound(links: LinkedTargets, loop: StepSyntax): readonly string[] {
  return roundsOf(links, loop).flatMap((block) => [...(block?.byId.keys() ?? [])]);
}

/** Blocks of a round of a loop; null stands for unknown ones. */
function roundsOf(links: LinkedTargets, { targets }: StepSyntax): readonly (BlockSyntax | null)[] {
  const parts = targets.filter(({ kind }) => kind === 'round' || kind === 'check');
  return parts.flatMap((target) => {
    const link = links.of(target);
    if (link?.kind === 'known') return [link.block];
    return link?.kind === 'open' && link.names.size > 0 ? [...link.names.values()] : [null];
  });
}
