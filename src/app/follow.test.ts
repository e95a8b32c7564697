import { expect, test } from 'vitest';

import { memoryStore } from '../../test/fixtures/memory-store.ts';
import { parseProgram } from '../../test/kernel-rig/program-text.ts';
import { UsageError } from '../base/errors.ts';
import { startRun } from '../engine/client.ts';
import type { Driver, JournalEvent, Store, StoredRun } from '../engine/ports.ts';
import { success } from '../ir/effect.ts';
import { UNLIMITED } from '../ir/program.ts';
import { systemClock } from '../sys/clock.ts';
import { follow } from './follow.ts';

/** A finished run. */
async function finishedRun(): Promise<{ readonly store: Store; readonly run: StoredRun }> {
  const store = memoryStore();
  const command: Driver = {
    start: (_effect, answer) => answer(success()),
    find: (_effect, answer) => answer(success()),
    stop: () => {},
  };
  const request = { id: 'r', mark: 'm', variables: {}, meta: {}, cwd: '/', allowOutside: false, allowance: UNLIMITED };
  const done = (): Promise<void> => Promise.resolve();
  const session = { drivers: { command: () => command }, open() {}, observe() {}, close: done, catchUp: done };
  const services = { store, clock: systemClock, session: () => session };
  await (await startRun(services, parseProgram(['a', 'b needs a', 'c needs b']), request)).ended;
  return { store, run: await store.read('r') };
}

/** The store, as if the journal had so many records at each `read`, and these events followed. */
function staged(store: Store, run: StoredRun, counts: number[], events: readonly JournalEvent[]): Store {
  return {
    ...store,
    read: async () => ({ ...run, records: run.records.slice(0, counts.shift()) }),
    async *follow() {
      yield* events;
    },
  };
}

test('applies each new record to the state that it keeps', async () => {
  const { store, run } = await finishedRun();
  const { records } = run;
  const seen: number[] = [];
  const phases: string[] = [];
  await follow(
    staged(
      store,
      run,
      [1],
      [
        { kind: 'records', records: records.slice(1, 3) },
        { kind: 'records', records: records.slice(3) },
      ],
    ),
    'r',
    ({ state }, fresh) => {
      seen.push(...fresh.map(({ seq }) => seq));
      phases.push(state.phase);
      return state.phase !== 'ended';
    },
    () => false,
  );
  expect(seen).toEqual(records.map(({ seq }) => seq));
  expect(phases).toEqual(['running', 'running', 'ended']);
});

test('forgets records that were cut, and goes on from what is left', async () => {
  const { store, run } = await finishedRun();
  const { records } = run;
  const done: (readonly string[])[] = [];
  await follow(
    staged(
      store,
      run,
      [2, 2],
      [
        { kind: 'records', records: records.slice(2, 3) },
        { kind: 'cut', lastSeq: 2 },
        { kind: 'records', records: records.slice(2) },
      ],
    ),
    'r',
    ({ state }) => {
      done.push([...state.steps.values()].filter(({ status }) => status === 'done').map(({ id }) => id));
      return state.phase !== 'ended';
    },
    () => false,
  );
  expect(done).toEqual([['a'], ['a', 'b'], ['a', 'b', 'c']]);
});

test('throws what a lost journal tells the operator', async () => {
  const { store, run } = await finishedRun();
  const lost: JournalEvent = { kind: 'lost', why: 'deleted', refusal: new UsageError('it was deleted') };
  const following = follow(
    staged(store, run, [1], [lost]),
    'r',
    () => true,
    () => false,
  );
  await expect(following).rejects.toThrow('it was deleted');
});
