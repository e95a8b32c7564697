// Agents that have been silent for half of the time after which they would be stopped: headless ones and those in terminals. Output and
// hook events are signs of life here; the engine, which stops them, also looks at their processes.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { AgentFolder } from '../../drivers/agent/files.ts';
import { stepFile, stepFolder } from '../../drivers/step-folder.ts';
import type { StepState } from '../../kernel/state.ts';
import { localRunFiles } from '../../stores/local-run-files.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { Adapters } from '../adapters.ts';
import type { SentRun } from './sender.ts';

export interface SilentStep {
  readonly step: string;
  readonly attempt: number;
  /** When it was last heard, in milliseconds since 1970. */
  readonly since: number;
  /** How long it has been silent. */
  readonly ms: number;
}

const LOOK_MIN_MS = 1_000;

interface Watched {
  /** In milliseconds since 1970; 0: it has not been heard. */
  readonly heardAt: number;
  readonly idleMs: number | null;
}

/** `lookAt`: when there may be others, in milliseconds since 1970; null if no agent has a limit. */
export function silentSteps(
  run: SentRun,
  now: number,
): { readonly lookAt: number | null; readonly found: readonly SilentStep[] } {
  const watched = [...run.state.inFlight.values()].flatMap((step) => {
    const { id, attempt, startedAt, gate, dialog } = step;
    // One that waits for a person is not silent.
    if (startedAt === null || dialog !== null || gate !== null) return [];
    const { heardAt, idleMs } = watchedOf(run, step, startedAt) ?? { heardAt: 0, idleMs: null };
    if (idleMs === null) return [];
    const since = Math.max(startedAt, heardAt);
    return [{ step: id, attempt, since: Math.round(since), ms: now - since, idleMs }];
  });
  const due = watched.map(({ since, ms, idleMs }) => (ms >= idleMs / 2 ? now : since) + idleMs / 2);
  return {
    lookAt: due.length === 0 ? null : Math.max(Math.min(...due), now + LOOK_MIN_MS),
    found: watched.filter(({ ms, idleMs }) => ms >= idleMs / 2),
  };
}

function watchedOf(run: SentRun, step: StepState, startedAt: number): Watched | null {
  const { id, attempt, effect } = step;
  if (effect?.kind === 'turn') return { heardAt: lastOutput(run.folder, id, attempt), idleMs: effect.idleMs };
  return effect?.kind === 'prompt' ? watchedTerminal(run, step, startedAt) : null;
}

/** In milliseconds since 1970. */
function lastOutput(runFolder: string, step: string, attempt: number): number {
  const folder = stepFolder(localRunFiles(runFolder), step, attempt);
  return Math.max(...['stdout', 'stderr'].map((name) => changedAt(stepFile(folder, name))));
}

/** Null if its prompt has not been accepted, or it has no terminal. */
function watchedTerminal(
  { state, folder, project }: SentRun,
  { agent, delivery }: StepState,
  startedAt: number,
): Watched | null {
  const info = state.agents.get(agent ?? '')?.info ?? null;
  if (info === null || info.terminal === null || delivery !== 'accepted') return null;
  const adapter = new Adapters(project).named(info.adapter);
  const ways = adapter.ok ? adapter.value.terminal : null;
  const start = new AgentFolder({ files: localRunFiles(folder), markerOf: (name) => name }, info.name).current();
  if (ways === null || start === null) return null;
  const { path } = start.folder;
  const names = tolerate(UNUSABLE, [], () => readdirSync(path)).filter((name) => /^(?:transcript|hooks)/.test(name));
  const heardAt = Math.max(0, ...names.map((name) => changedAt(join(path, name))));
  const { firstMs, idleMs } = ways.liveness;
  return { heardAt, idleMs: heardAt > startedAt ? idleMs : (firstMs ?? idleMs) };
}

/** 0 if it does not exist. */
function changedAt(path: string): number {
  return tolerate(UNUSABLE, null, () => statSync(path))?.mtimeMs ?? 0;
}
