// startRun and createRun check a Program in the same way, and leave nothing behind if they fail.

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Bug } from '../src/base/assert.ts';
import { UsageError } from '../src/base/usage-error.ts';
import type { EngineServices } from '../src/engine/client.ts';
import { createRun, startRun } from '../src/engine/client.ts';
import type { Driver, Journal, Store } from '../src/engine/ports.ts';
import { success } from '../src/ir/effect.ts';
import type { Program, RunRequest } from '../src/ir/program.ts';
import { memoryStore } from '../src/stores/memory.ts';
import { parseProgram } from './kernel-rig/program-text.ts';
import { UNLIMITED } from '../src/ir/program.ts';

const REQUEST: RunRequest = {
  id: 'wf-1',
  mark: 'm',
  variables: {},
  meta: {},
  cwd: '/',
  allowOutside: false,
  allowance: UNLIMITED,
};

const WAYS: readonly (readonly [string, (store: Store, program: Program) => Promise<unknown>])[] = [
  ['created for another', (store, program) => createRun(store, program, REQUEST, 0)],
  ['started', async (store, program) => (await startRun(servicesWith(store), program, REQUEST)).ended],
];

test.each(WAYS)('a run that is %s is refused above the step limit', async (_how, make) => {
  const store = memoryStore();
  const refused = make(store, parseProgram(['limit stepsMax 2', 'a', 'b', 'c']));
  await expect(refused).rejects.toThrow('max steps exceeded: 2 (the workflow has 3)');
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test.each(WAYS)('a run that is %s needs a valid Program', async (_how, make) => {
  const store = memoryStore();
  await expect(make(store, { ...parseProgram(['a']), entry: 'nowhere' })).rejects.toThrow(Bug);
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test.each(WAYS)('a run that is %s leaves nothing behind if its first record cannot be written', async (_how, make) => {
  const store = memoryStore();
  const full: Store = {
    ...store,
    create: async (id, program) => ({
      ...(await store.create(id, program)),
      append: () => Promise.reject(new UsageError('the disk is full')),
    }),
  };
  await expect(make(full, parseProgram(['a']))).rejects.toThrow('the disk is full');
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test('a run whose drivers cannot be created leaves nothing behind', async () => {
  const store = memoryStore();
  const services: EngineServices = {
    ...servicesWith(store),
    drivers: () => {
      throw new UsageError('no shell here');
    },
  };
  await expect(startRun(services, parseProgram(['a']), REQUEST)).rejects.toThrow('no shell here');
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test('effects are prepared while their record is written, and started once it is durable', async () => {
  const { calls, services } = recordingServices((append) => append());
  await (await startRun(services, parseProgram(['a', 'b needs a', 'c needs a']), REQUEST)).ended;
  expect(calls.slice(2, 7)).toEqual(['prepare b#1', 'prepare c#1', 'durable', 'start b#1', 'start c#1']);
});

test('nothing is prepared for the first record of a run', async () => {
  const { calls, services } = recordingServices((append) => append());
  await (await startRun(services, parseProgram(['a']), REQUEST)).ended;
  expect(calls).toEqual(['durable', 'start a#1', 'durable']);
});

test('effects prepared for a record that cannot be written are not started', async () => {
  let appends = 0;
  const full = (): Promise<void> => Promise.reject(new UsageError('the disk is full'));
  const { calls, services } = recordingServices((append) => (++appends === 1 ? append() : full()));
  const run = await startRun(services, parseProgram(['a', 'b needs a']), REQUEST);
  await expect(run.ended).rejects.toThrow('the disk is full');
  expect(calls).toEqual(['durable', 'start a#1', 'prepare b#1']);
});

/** Tells what is asked of its driver and its store, in order. Everything that is started succeeds. */
function recordingServices(through: (append: () => Promise<void>) => Promise<void>): {
  readonly calls: readonly string[];
  readonly services: EngineServices;
} {
  const calls: string[] = [];
  const store = memoryStore();
  const create: Store['create'] = async (id, program) => {
    const journal = await store.create(id, program);
    const append: Journal['append'] = (records) =>
      through(async () => {
        await setImmediate();
        await journal.append(records);
        calls.push('durable');
      });
    return { ...journal, append };
  };
  const command: Driver = {
    prepare: ({ id }) => calls.push(`prepare ${id}`),
    start: ({ id }, answer) => {
      calls.push(`start ${id}`);
      queueMicrotask(() => answer(success()));
    },
    find: () => {},
    stop: () => {},
  };
  return { calls, services: { ...servicesWith({ ...store, create }), drivers: () => ({ command }) } };
}

function servicesWith(store: Store): EngineServices {
  return {
    store,
    clock: { now: () => 0, at: () => () => {} },
    drivers: () => ({ command: { start: () => {}, find: () => {}, stop: () => {} } }),
    observe: () => {},
  };
}
