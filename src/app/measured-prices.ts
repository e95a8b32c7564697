// Prices of agent turns, measured from the past runs of a project.

import type { Prices } from '../prove/worst.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { counted } from '../view/row.ts';
import { filledText } from '../view/status.ts';
import type { Project } from './project.ts';
import { readRun, storeOf, unlessRefused } from './runs.ts';

/** The latest runs are enough, and journals may be long. */
const RUNS_MAX = 50;

/** The average of turns that reported a price, by adapter. Runs that cannot be read do not count. */
export async function measuredPrices(project: Project, adapters: ReadonlySet<string>): Promise<Prices> {
  if (adapters.size === 0) return {};
  const store = storeOf(project);
  const totals = new Map<string, { usd: number; turns: number; runs: number }>();
  for (const { id } of await store.list({ limit: RUNS_MAX })) {
    const run = await unlessRefused(readRun(store, id), null);
    for (const [adapter, costs] of run === null ? [] : costsOf(run.records)) {
      const total = totals.get(adapter) ?? { usd: 0, turns: 0, runs: 0 };
      totals.set(adapter, total);
      total.usd += costs.reduce((sum, usd) => sum + usd, 0);
      total.turns += costs.length;
      total.runs += 1;
    }
  }
  return Object.fromEntries(
    [...totals].flatMap(([adapter, { usd, turns, runs }]) => {
      if (!adapters.has(adapter)) return [];
      const from = `the average of ${counted(turns, 'turn')} in ${counted(runs, 'run')} of this project`;
      return [[adapter, { usd: usd / turns, from }] as const];
    }),
  );
}

/** Dollars of each turn that reported them, by adapter. */
function costsOf(records: readonly Pick<JournalRecord, 'decisions'>[]): ReadonlyMap<string, readonly number[]> {
  const adapterOf = new Map<string, string>();
  const spawned = new Map<string, string>();
  const costs = new Map<string, number[]>();
  for (const decision of records.flatMap(({ decisions }) => decisions)) {
    if (decision.kind === 'agent-opened') spawned.set(decision.agent.name, decision.agent.adapter);
    if (decision.kind === 'step-started') {
      const { effect, step } = decision;
      const adapter =
        effect?.kind === 'turn'
          ? filledText(effect.adapter)
          : effect?.kind === 'prompt'
            ? spawned.get(filledText(effect.agent))
            : undefined;
      if (adapter !== undefined) adapterOf.set(step, adapter);
    }
    if (decision.kind !== 'usage-counted' || decision.usage.usd === null) continue;
    const adapter = adapterOf.get(decision.step);
    if (adapter !== undefined) costs.set(adapter, [...(costs.get(adapter) ?? []), decision.usage.usd]);
  }
  return costs;
}
