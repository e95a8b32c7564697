// A run in the foreground of this process: signals reach it, and the report of a bug names it.

import { drive } from '../app/run-session.ts';
import type { DriveRequest } from '../app/run-session.ts';
import type { RunState } from '../kernel/state.ts';
import { workingOn } from './exit.ts';
import { Signals } from './signals.ts';

export interface ForegroundResult {
  readonly state: RunState;
  /** 128 plus the number of the first signal; null if none arrived. */
  readonly signalStatus: number | null;
}

/** Resolves when the run has ended. */
export async function runInForeground(request: DriveRequest): Promise<ForegroundResult> {
  const { reporter } = request;
  const signals = new Signals(
    (line) => reporter.note(line),
    () => reporter.close(),
  );
  try {
    const state = await drive({
      ...request,
      held(run) {
        workingOn(run.id);
        request.held?.(run);
        signals.directTo(run);
      },
    });
    workingOn(null);
    return { state, signalStatus: signals.exitStatus };
  } finally {
    signals.close();
  }
}
