// What follows a run while an engine drives it: its state file, its endpoint, its run directory, reminders, a reporter.
//
//   observer/1  Observers are opened in the order of the session's list and closed in reverse order.
//   observer/2  An observer is opened once: the first record of this engine is durable, and nothing has been started.
//   observer/3  It sees every batch of records after it has become durable, with the state after the batch.
//   observer/4  All observers are closed before the run is released.

import type { LiveRun } from '../engine/client.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';

export type { JournalRecord, LiveRun, RunState };

export interface RunObserver {
  /** `before`: the records of earlier engines. Between two calls the run's state may be shown only while it is durable. */
  open?(run: LiveRun, before: readonly JournalRecord[]): void;
  observe(records: readonly JournalRecord[], state: RunState): void;
  close?(): void | Promise<void>;
}

/** Shows a run to the operator. It must print the run's id first. */
export interface Reporter extends RunObserver {
  open(run: LiveRun, before: readonly JournalRecord[]): void;
  /** A remark that is not part of the run, such as the reply to a signal. */
  note(line: string): void;
  /** A problem that does not stop the run and that the operator should still see when it has ended. */
  warn(line: string): void;
  /** Rings the terminal, if one shows the run. */
  bell?(): void;
  /** Called when the run has ended and is released. `work`: lines about its work. */
  end(state: RunState, exit: number, work: readonly string[]): void;
  /** Leaves the terminal as it was found, without a closing picture; at any moment, and more than once. */
  abandon(): void;
}
