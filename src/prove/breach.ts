// Why a path breaks a claim, in words: the last steps that started on it, and a sentence for people.

import { segmentMatcher } from '../base/names.ts';
import { type Claim, limitText } from '../ir/claim.ts';
import { counted } from '../view/row.ts';
import type { Counterexample } from './claims.ts';
import type { Edge, Explored } from './explore.ts';
import { endedOn } from './paths.ts';
import type { EndedStep } from './watch.ts';

/** Steps that the claim is about and that have started, but not ended. */
export function stillRunning(claim: Claim, path: readonly Edge[]): readonly EndedStep[] {
  const patterns = patternsOf(claim);
  const matchers = patterns.map((pattern) => segmentMatcher(pattern));
  const running: string[] = [];
  for (const { started, ended } of path) {
    running.push(...started.filter((name) => matchers.some((matches) => matches(name))));
    for (const { step } of ended) {
      const at = running.indexOf(step);
      if (at >= 0) running.splice(at, 1);
    }
  }
  return running.map((step) => ({ step, outcome: 'started' }));
}

function patternsOf(claim: Claim): readonly string[] {
  if (claim.kind === 'at-most') return Object.keys(claim.limits.visits);
  return claim.kind === 'never' || claim.kind === 'alone' ? [claim.step] : [];
}

/** A sentence without its end. */
export function whyBroken(
  claim: Claim,
  { path, round, exceeded }: Counterexample,
  { nodes }: Pick<Explored, 'nodes'>,
): string {
  const last = nodes[path.at(-1)?.to ?? 0];
  switch (claim.kind) {
    case 'never':
      if (claim.unless !== null) return `${claim.step} starts before ${claim.unless} is done`;
      return claim.unlessGate === null
        ? `${claim.step} starts`
        : `${claim.step} starts before the gate ${claim.unlessGate} is approved`;
    case 'always':
      return `the run is ${last?.ending?.status ?? 'over'}, and ${claim.step} never started`;
    case 'alone':
      return `two steps ${claim.step} run at once`;
    case 'cleaned':
      return `the run is done, and ${counted(last?.agents ?? 1, 'agent')} still alive`;
    case 'at-most':
      return exceeded === null
        ? 'a limit is exceeded'
        : `the run has ${limitText(exceeded.what, exceeded.got)}, and the claim allows ${String(exceeded.limit)}`;
    case 'ends': {
      if (round.length > 0) {
        const through = [...new Set(endedOn(round).map(({ step }) => step))];
        return `the run can repeat ${through.length === 0 ? 'this' : through.join(', ')} forever`;
      }
      return (last?.hangs ?? []).map(({ step, why }) => `${step} ${why}`).join(', and ');
    }
  }
}
