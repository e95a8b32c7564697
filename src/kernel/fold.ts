// The state of a run is the fold of its records: in the engine, in every view, and on the page.

import type { Program } from '../ir/program.ts';
import { apply } from './apply.ts';
import type { JournalRecord } from './decision.ts';
import { initialState, type RunState } from './state.ts';

/** What of a record changes the state: its input does not. */
export type AppliedRecord = Pick<JournalRecord, 'at' | 'decisions'>;

export function fold(program: Program, records: readonly AppliedRecord[]): RunState {
  const state = initialState(program);
  for (const record of records) applyRecord(state, record);
  return state;
}

/** Changes the state in place. */
export function applyRecord(state: RunState, { decisions, at }: AppliedRecord): void {
  for (const decision of decisions) apply(state, decision, at);
}
