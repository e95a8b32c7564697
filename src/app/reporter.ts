// How a run in the foreground is shown: as a tree that is drawn anew on a terminal, as plain lines elsewhere, as JSON for
// scripts. The run's id is the first thing that each of them prints.

import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';

export interface Reporter {
  /**
   * The run is ours, and these are the records of its earlier lives. The state goes on changing: between two calls of
   * `seen` it is shown only while `durable` says that it tells of nothing else than the journal.
   */
  begin(id: string, before: readonly JournalRecord[], state: RunState, durable: () => boolean): void;
  seen(records: readonly JournalRecord[], state: RunState): void;
  /** Something between us and the operator, which is not the run's. */
  note(line: string): void;
  /** A problem that does not stop the run and that the operator should still see when it has ended. */
  warn(line: string): void;
  end(state: RunState, exit: number): void;
  /** Leaves the terminal as it was found; at any moment, and more than once. */
  close(): void;
}
