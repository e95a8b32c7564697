// Agents that have been silent for half of the time after which they would be stopped.

import { statSync } from 'node:fs';

import { stepFile, stepFolder } from '../../drivers/step-folder.ts';
import { localRunFiles } from '../../stores/local-run-files.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import type { SentRun } from './sender.ts';

export interface SilentStep {
  readonly step: string;
  readonly attempt: number;
  /** When it was last heard, in milliseconds since 1970. */
  readonly since: number;
  /** How long it has been silent. */
  readonly ms: number;
}

/** `watched`: how many agents have a limit. */
export function silentSteps(
  { state, folder }: SentRun,
  now: number,
): { readonly watched: number; readonly found: readonly SilentStep[] } {
  const watched = [...state.inFlight.values()].flatMap(({ id, attempt, effect, startedAt, gate, dialog }) => {
    const idleMs = effect?.kind === 'turn' ? effect.idleMs : null;
    // One that waits for a person is not silent.
    if (idleMs === null || startedAt === null || dialog !== null || gate !== null) return [];
    const since = Math.max(startedAt, lastOutput(folder, id, attempt));
    return [{ step: id, attempt, since: Math.round(since), ms: now - since, idleMs }];
  });
  return { watched: watched.length, found: watched.filter(({ ms, idleMs }) => ms >= idleMs / 2) };
}

/** In milliseconds since 1970. */
function lastOutput(runFolder: string, step: string, attempt: number): number {
  const folder = stepFolder(localRunFiles(runFolder), step, attempt);
  const files = ['stdout', 'stderr'].map((name) => stepFile(folder, name));
  return Math.max(0, ...files.map((file) => tolerate(UNUSABLE, null, () => statSync(file))?.mtimeMs ?? 0));
}
