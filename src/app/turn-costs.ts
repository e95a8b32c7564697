// The costs of all turns of runs, from their journals. Turns that were recorded without a price get that of the present configuration.

import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { CostEntries } from '../view/cost-entries.ts';
import type { TurnCost } from '../view/cost-rows.ts';
import type { Project } from './project.ts';
import { readRun, storeOf, unlessRefused } from './runs.ts';
import { readSettings } from './sources.ts';
import { withComputedPrice } from './turn-prices.ts';

export interface CostQuery {
  /** Ids, in full; null: all runs of the project. */
  readonly runs: readonly string[] | null;
  /** Only turns that ended since then, in milliseconds since 1970; null: all. */
  readonly since: number | null;
}

/** `unreadable`: ids of runs that cannot be read. */
export async function turnCosts(
  project: Project,
  { runs, since }: CostQuery,
): Promise<{ readonly turns: readonly TurnCost[]; readonly unreadable: readonly string[] }> {
  const store = storeOf(project);
  const { prices } = readSettings(project).config.money;
  const entries = runs === null ? await store.list() : runs.map((id) => ({ id, changedAt: null }));
  const turns: TurnCost[] = [];
  const unreadable: string[] = [];
  for (const { id, changedAt } of entries) {
    if (since !== null && changedAt !== null && changedAt < since) continue;
    // A run that was named must exist.
    const run = runs === null ? await unlessRefused(readRun(store, id), null) : await readRun(store, id);
    if (run === null) {
      unreadable.push(id);
      continue;
    }
    for (const turn of costsOfRun(run)) {
      if (since !== null && turn.at < since) continue;
      const { adapter, model } = turn.names;
      const usage = adapter === null ? turn.usage : withComputedPrice(turn.usage, prices, adapter, model);
      turns.push({ ...turn, usage: turn.usage.computedUsd === undefined ? usage : turn.usage });
    }
  }
  return { turns, unreadable };
}

function* costsOfRun({
  id,
  state,
  records,
}: {
  readonly id: string;
  readonly state: RunState;
  readonly records: readonly JournalRecord[];
}): Generator<TurnCost & { readonly at: number }> {
  const entries = new CostEntries();
  for (const record of records) entries.note(record);
  const workflow = state.program.source.name;
  for (const { at, step, agent, lane, adapter, model, ms, usage } of entries.all) {
    const shown = shownStep(state, state.steps.get(step));
    const names = {
      run: id,
      workflow,
      step: shown ?? step,
      agent: agent ?? (lane || null),
      adapter,
      model,
      day: dayOf(at),
    };
    yield { names, usage, ms, at };
  }
}

/** A step inside a block that performs another one belongs to that. */
function shownStep({ steps }: RunState, step: StepState | undefined): string | null {
  let shown = step;
  while (shown?.frame.isInner === true && shown.frame.owner !== null) shown = steps.get(shown.frame.owner);
  return shown?.id ?? null;
}

/** In local time: `2026-11-19`. */
function dayOf(at: number): string {
  const date = new Date(at);
  const pad = (value: number): string => String(value).padStart(2, '0');
  return `${String(date.getFullYear()).padStart(4, '0')}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}
