// A run that is followed while an engine works on it: its state is folded once, and each new record is applied to it.

import { setTimeout as sleep } from 'node:timers/promises';

import type { Store } from '../engine/ports.ts';
import { applyRecord } from '../kernel/apply.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';
import { readRun } from './runs.ts';

export interface FollowedRun {
  readonly id: string;
  /** After the new records. */
  readonly state: RunState;
}

/** Records that arrive within this time are reported together. */
const INTERVAL_MS = 50;
/** The share of the time that a caller may use, if showing the run is expensive: one tenth. */
const REST_PER_WORK = 9;

/**
 * Calls `seen` with the run and its new records, now and whenever there are some, until it returns false. `isAbandoned` is
 * asked after every change: if it returns true, nobody reads the results any more. Also ends when `signal` aborts.
 */
export async function follow(
  store: Store,
  id: string,
  seen: (run: FollowedRun, fresh: readonly JournalRecord[]) => boolean | Promise<boolean>,
  isAbandoned: () => boolean,
  signal?: AbortSignal,
): Promise<void> {
  const before = await readRun(store, id);
  let { state } = before;
  let lastSeq = before.records.length;
  if (!(await seen({ id, state }, before.records))) return;
  for await (const event of store.follow(id, lastSeq + 1, signal)) {
    if (isAbandoned()) return;
    const started = performance.now();
    switch (event.kind) {
      case 'records':
        for (const record of event.records) applyRecord(state, record);
        lastSeq = event.records.at(-1)?.seq ?? lastSeq;
        if (!(await seen({ id, state }, event.records))) return;
        break;
      case 'cut':
        if (event.lastSeq < lastSeq) ({ state } = await readRun(store, id));
        lastSeq = event.lastSeq;
        break;
      case 'lost':
        throw event.refusal;
    }
    await sleep(Math.max(INTERVAL_MS, (performance.now() - started) * REST_PER_WORK));
  }
}
