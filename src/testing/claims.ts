// Checks the claims of a test file in the run of one test, as far as one run can show: what started without its condition,
// what never started, limits that were exceeded, and a run that did not end.

import type { Json } from '../base/json.ts';
import { type Claim, claimText } from '../ir/claim.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import { apply } from '../kernel/apply.ts';
import { initialState, type RunState, type StepState } from '../kernel/state.ts';
import { agentsIn } from '../prove/inspect.ts';
import { Names } from '../prove/names.ts';
import { type Observed, Watch } from '../prove/watch.ts';
import type { TestFailure } from './failures.ts';
import type { WorldEnd } from './world.ts';

/** What one run shows about claims. */
interface Shown {
  readonly observed: Observed;
  /** By index of the claim: the step that broke it, or null. */
  readonly culprits: ReadonlyMap<number, string | null>;
  readonly agentsAtOnce: number;
  /** How many steps that match started. */
  readonly visits: (pattern: string) => number;
}

export function judgeClaims(
  claims: readonly Claim[],
  end: Pick<WorldEnd, 'kind' | 'state' | 'records'>,
): readonly TestFailure[] {
  if (claims.length === 0) return [];
  const shown = replay(claims, end);
  return claims.flatMap((claim, index) => {
    const broken = breachOf(claim, index, shown, end);
    if (broken === null) return [];
    const { expected, got, why } = broken;
    return [{ expect: `claim.${index}`, expected, got, message: `claim broken: ${claimText(claim)}: ${why}` }];
  });
}

/** Applies the records one after the other, and watches them as `meow prove` does. */
function replay(
  claims: readonly Claim[],
  { kind, state: last, records }: Pick<WorldEnd, 'kind' | 'state' | 'records'>,
): Shown {
  const names = new Names(last.program);
  const watch = new Watch(names, claims);
  const observed = watch.begin(watch.initialFacts());
  const culprits = new Map<number, string | null>();
  const state = initialState(last.program);
  const started = new Set<StepState>();
  let agentsAtOnce = 0;
  const note = (decision: Decision | null): void => {
    for (const index of observed.broken) if (!culprits.has(index)) culprits.set(index, stepIn(decision));
  };
  for (const record of records) {
    applyAll(state, record);
    for (const decision of record.decisions) {
      watch.see(state, decision, observed);
      const step = decision.kind === 'step-started' ? state.steps.get(decision.step) : undefined;
      if (step !== undefined && !step.frame.isInner) started.add(step);
      note(decision);
    }
    watch.seeState(state, observed);
    note(null);
    agentsAtOnce = Math.max(agentsAtOnce, agentsIn(state));
  }
  // A run that a person stopped has not ended by itself.
  if (kind === 'ended' && state.end !== 'stopped') watch.seeEnd(state, observed);
  note(null);
  const visits = (pattern: string): number => [...started].filter((step) => names.matches(pattern, state, step)).length;
  return { observed, culprits, agentsAtOnce, visits };
}

function applyAll(state: RunState, { decisions, at }: JournalRecord): void {
  for (const decision of decisions) apply(state, decision, at);
}

function stepIn(decision: Decision | null): string | null {
  return decision !== null && 'step' in decision && typeof decision.step === 'string' ? decision.step : null;
}

interface Breach {
  readonly expected: Json;
  readonly got: Json;
  readonly why: string;
}

function breachOf(claim: Claim, index: number, shown: Shown, end: Pick<WorldEnd, 'kind' | 'state'>): Breach | null {
  const isBroken = shown.culprits.has(index);
  const culprit = shown.culprits.get(index) ?? null;
  switch (claim.kind) {
    case 'never':
      return isBroken ? { expected: claim.step, got: culprit, why: `${culprit ?? claim.step} started` } : null;
    case 'always':
      return isBroken ? { expected: claim.step, got: null, why: `the run is ${end.state.end ?? ''} without it` } : null;
    case 'alone':
      return isBroken ? { expected: claim.step, got: claim.step, why: 'two of them were running at once' } : null;
    case 'cleaned':
      return isBroken
        ? { expected: true, got: false, why: `still running: ${livingAgents(end.state).join(', ')}` }
        : null;
    case 'ends': {
      const why = end.kind === 'ended' ? limitThatEnded(end.state) : ENDLESS[end.kind];
      return why === null ? null : { expected: true, got: false, why };
    }
    case 'at-most':
      return excessOf(claim, shown, end.state);
  }
}

const ENDLESS: Readonly<Record<Exclude<WorldEnd['kind'], 'ended'>, string>> = {
  waiting: 'nothing happens any more, and the run has not ended',
  'too-long': 'the run goes on and on',
};

/** A template that is entered inside itself without a bound ends by a limit of the run, not by what the workflow says. */
function limitThatEnded({ steps }: RunState): string | null {
  for (const { failure } of steps.values())
    if (failure?.kind === 'expansion-limit') return `only a limit of the run ended it: ${failure.message}`;
  return null;
}

function livingAgents({ agents }: RunState): readonly string[] {
  return [...agents.values()].flatMap(({ name, status }) =>
    status === 'active' || status === 'opening' ? [name] : [],
  );
}

function excessOf(
  { limits }: Extract<Claim, { kind: 'at-most' }>,
  { observed, agentsAtOnce, visits: visitsOf }: Shown,
  state: RunState,
): Breach | null {
  const { turns, commands, agentsAtOnce: agents, usd, visits } = limits;
  const counts: readonly (readonly [string, number | undefined, number])[] = [
    ['turns', turns, observed.turns.length],
    ['commands', commands, observed.commands],
    ['agents_at_once', agents, agentsAtOnce],
    ['usd', usd, state.cost.usd],
  ];
  const over = counts.flatMap(([name, limit, got]) =>
    limit !== undefined && got > limit ? [[name, limit, got] as const] : [],
  );
  const visited = Object.entries(visits).flatMap(([step, limit]) => {
    const got = visitsOf(step);
    return got > limit ? [[step, limit, got] as const] : [];
  });
  if (over.length === 0 && visited.length === 0) return null;
  const table = (at: 1 | 2): Json => ({
    ...Object.fromEntries(over.map((each) => [each[0], each[at]])),
    ...(visited.length === 0 ? {} : { visits: Object.fromEntries(visited.map((each) => [each[0], each[at]])) }),
  });
  const why = [...over, ...visited].map(([name, , got]) => `${got} ${name}`).join(', ');
  return { expected: table(1), got: table(2), why };
}
