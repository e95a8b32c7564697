// A run as commands show it: with its engine, and with decisions that wait in its inbox. Without an engine nobody has
// applied them yet, but a person who has approved a gate wants to see that.

import type { Store } from '../engine/ports.ts';
import { pendingMessages } from '../ipc/inbox.ts';
import { apply } from '../kernel/apply.ts';
import { isInterrupted, openGates } from '../view/status.ts';
import { pendingVerdict } from './decide-gate.ts';
import type { FollowedRun } from './follow.ts';
import { findProject, type Project } from './project.ts';
import { engineAddress } from './runs.ts';
import { readSettings } from './sources.ts';

export interface ShownRun extends FollowedRun {
  /** Null if no engine works on it. */
  readonly engine: { readonly pid: number } | null;
  readonly interrupted: boolean;
  /** Time for its clocks, in milliseconds since 1970. Those of an interrupted run stand still. */
  readonly now: number;
}

/** Changes the state, which must not be used for anything but showing. */
export async function shownRun(store: Store, run: FollowedRun, project = findProject()): Promise<ShownRun> {
  const { id, state } = run;
  const holder = await store.holder(id);
  const engine = holder === null ? null : { pid: holder.pid };
  if (engine === null && store.isShared === undefined) await applyPendingDecisions(store, run, project);
  const interrupted = isInterrupted(state, engine !== null);
  return { id, state, engine, interrupted, now: interrupted ? (state.recordedAt ?? 0) : Date.now() };
}

async function applyPendingDecisions(store: Store, run: FollowedRun, project: Project): Promise<void> {
  const { state } = run;
  if (state.end === 'done' || state.end === 'failed') return;
  if (pendingMessages(engineAddress(store, run).inbox, run.id).length === 0) return;
  const { config } = readSettings(project);
  for (const { id: gate } of openGates(state)) {
    const verdict = await pendingVerdict(store, run, gate, config);
    if (verdict !== null) apply(state, { kind: 'gate-decided', gate, verdict, message: null }, state.recordedAt ?? 0);
  }
}
