// Both ways to make a run, at once in the hands of this process or for another to take up, ask the same of a Program and
// leave nothing behind where it comes to nothing.

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Bug } from '../src/base/assert.ts';
import { UsageError } from '../src/base/usage-error.ts';
import type { World } from '../src/engine/client.ts';
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
  ['started', async (store, program) => (await startRun(worldOver(store), program, REQUEST)).ended],
];

test.each(WAYS)('a run that is %s has no more steps than it may', async (_how, make) => {
  const store = memoryStore();
  const refused = make(store, parseProgram(['limit stepsMax 2', 'a', 'b', 'c']));
  await expect(refused).rejects.toThrow('max steps exceeded: 2 (the workflow has 3)');
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test.each(WAYS)('a run that is %s has a sound Program', async (_how, make) => {
  const store = memoryStore();
  await expect(make(store, { ...parseProgram(['a']), entry: 'nowhere' })).rejects.toThrow(Bug);
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test.each(WAYS)('a run that is %s leaves nothing behind where its first record cannot be kept', async (_how, make) => {
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

test('a run whose drivers cannot be had leaves nothing behind either', async () => {
  const store = memoryStore();
  const world: World = {
    ...worldOver(store),
    drivers: () => {
      throw new UsageError('no shell here');
    },
  };
  await expect(startRun(world, parseProgram(['a']), REQUEST)).rejects.toThrow('no shell here');
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test('what a record asks for is prepared while the record is written, and started when it is durable', async () => {
  const { told, world } = toldWorld((append) => append());
  await (await startRun(world, parseProgram(['a', 'b needs a', 'c needs a']), REQUEST)).ended;
  expect(told.slice(2, 7)).toEqual(['prepare b#1', 'prepare c#1', 'durable', 'start b#1', 'start c#1']);
});

test('nothing is prepared for the first record of a run', async () => {
  const { told, world } = toldWorld((append) => append());
  await (await startRun(world, parseProgram(['a']), REQUEST)).ended;
  expect(told).toEqual(['durable', 'start a#1', 'durable']);
});

test('what is prepared for a record that cannot be kept is not started', async () => {
  let appends = 0;
  const full = (): Promise<void> => Promise.reject(new UsageError('the disk is full'));
  const { told, world } = toldWorld((append) => (++appends === 1 ? append() : full()));
  const run = await startRun(world, parseProgram(['a', 'b needs a']), REQUEST);
  await expect(run.ended).rejects.toThrow('the disk is full');
  expect(told).toEqual(['durable', 'start a#1', 'prepare b#1']);
});

/** Tells what is asked of its driver and its store, in order. Everything that is started succeeds. */
function toldWorld(through: (append: () => Promise<void>) => Promise<void>): {
  readonly told: readonly string[];
  readonly world: World;
} {
  const told: string[] = [];
  const store = memoryStore();
  const create: Store['create'] = async (id, program) => {
    const journal = await store.create(id, program);
    const append: Journal['append'] = (records) =>
      through(async () => {
        await setImmediate();
        await journal.append(records);
        told.push('durable');
      });
    return { ...journal, append };
  };
  const command: Driver = {
    prepare: ({ id }) => told.push(`prepare ${id}`),
    start: ({ id }, answer) => {
      told.push(`start ${id}`);
      queueMicrotask(() => answer(success()));
    },
    find: () => {},
    stop: () => {},
  };
  return { told, world: { ...worldOver({ ...store, create }), drivers: () => ({ command }) } };
}

function worldOver(store: Store): World {
  return {
    store,
    clock: { now: () => 0, at: () => () => {} },
    drivers: () => ({ command: { start: () => {}, find: () => {}, stop: () => {} } }),
    observe: () => {},
  };
}
