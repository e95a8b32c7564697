// A run in the foreground of this process: signals reach it, and the report of a bug names it.

import type { RunState } from '../app/observer.ts';
import type { SessionOptions } from '../app/run-session.ts';
import { workingOn } from './exit.ts';
import { Signals } from './signals.ts';

export interface ForegroundResult {
  readonly state: RunState;
  /** 128 plus the number of the first signal; null if none arrived. */
  readonly signalStatus: number | null;
}

/** `session` starts or resumes the run with these options. Resolves when the run has ended. */
export async function runInForeground(
  options: SessionOptions,
  session: (options: SessionOptions) => Promise<RunState>,
): Promise<ForegroundResult> {
  const { reporter } = options;
  const signals = new Signals(
    (line) => reporter.note(line),
    () => reporter.abandon(),
  );
  try {
    const state = await session({
      ...options,
      onHeld(run) {
        workingOn(run.id);
        options.onHeld?.(run);
        signals.directTo(run);
      },
    });
    workingOn(null);
    return { state, signalStatus: signals.exitStatus };
  } finally {
    signals.close();
  }
}
