// startRun and createRun check a Program in the same way, and leave nothing behind if they fail. A started run is opened
// and closed at named moments.

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';

import { Bug, UsageError } from '../src/base/errors.ts';
import { createRun, type EngineServices, resumeRun, type RunSession, startRun } from '../src/engine/client.ts';
import type { Driver, Journal, Store } from '../src/engine/ports.ts';
import { success } from '../src/ir/effect.ts';
import { type Program, type RunRequest, UNLIMITED } from '../src/ir/program.ts';
import { memoryStore } from './fixtures/memory-store.ts';
import { parseProgram } from './kernel-rig/program-text.ts';

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

test('a run whose session cannot be composed leaves nothing behind', async () => {
  const store = memoryStore();
  const services: EngineServices = {
    ...servicesWith(store),
    session: () => {
      throw new UsageError('no shell here');
    },
  };
  await expect(startRun(services, parseProgram(['a']), REQUEST)).rejects.toThrow('no shell here');
  await expect(store.read('wf-1')).rejects.toThrow('there is no run wf-1');
});

test('effects start once their record is durable', async () => {
  const { calls, services } = recordingServices((append) => append());
  await (await startRun(services, parseProgram(['a', 'b needs a', 'c needs a']), REQUEST)).ended;
  expect(calls.slice(0, 5)).toEqual(['durable', 'start a#1', 'durable', 'start b#1', 'start c#1']);
});

test('effects of a record that cannot be written do not start', async () => {
  let appends = 0;
  const full = (): Promise<void> => Promise.reject(new UsageError('the disk is full'));
  const { calls, services } = recordingServices((append) => (++appends === 1 ? append() : full()));
  const run = await startRun(services, parseProgram(['a', 'b needs a']), REQUEST);
  await expect(run.ended).rejects.toThrow('the disk is full');
  expect(calls).toEqual(['durable', 'start a#1']);
});

test('a run is opened when its first record is durable and nothing has started, and closed before it is released', async () => {
  const calls: string[] = [];
  const store = memoryStore();
  const create: Store['create'] = async (id, program) => {
    const journal = await store.create(id, program);
    return {
      ...journal,
      async append(records) {
        await journal.append(records);
        calls.push('durable');
      },
      async close() {
        calls.push('released');
        await journal.close();
      },
    };
  };
  const command: Driver = {
    start: (_effect, answer) => {
      calls.push('start');
      queueMicrotask(() => answer(success()));
    },
    find: () => {},
    stop: () => {},
  };
  const services = servicesWith(
    { ...store, create },
    {
      drivers: { command: () => command },
      open: () => calls.push('open'),
      observe: () => calls.push('observe'),
      close: async () => void calls.push('close'),
    },
  );
  await (await startRun(services, parseProgram(['a']), REQUEST)).ended;
  expect(calls).toEqual(['durable', 'open', 'start', 'observe', 'durable', 'observe', 'close', 'released']);
});

test('a run that cannot be opened starts nothing, and is closed and released', async () => {
  const calls: string[] = [];
  const store = memoryStore();
  const services = servicesWith(store, {
    drivers: { command: () => ({ start: () => calls.push('start'), find: () => {}, stop: () => {} }) },
    open() {
      throw new UsageError('no inbox');
    },
    close: async () => void calls.push('close'),
  });
  const { ended } = await startRun(services, parseProgram(['a']), REQUEST);
  await expect(ended).rejects.toThrow('no inbox');
  expect(calls).toEqual(['close']);
  await (await store.open('wf-1')).close();
});

test('a run that is done is refused, and what a crash left behind its last record is completed', async () => {
  const calls: string[] = [];
  const store = memoryStore();
  const command: Driver = { start: (_effect, answer) => answer(success()), find: () => {}, stop: () => {} };
  const parts = { drivers: { command: () => command }, catchUp: async () => void calls.push('caught up') };
  await (await startRun(servicesWith(store, parts), parseProgram(['a']), REQUEST)).ended;
  const again = servicesWith(store, { ...parts, open: () => calls.push('open') });
  await expect(resumeRun(again, 'wf-1', { retryFailed: true, allowance: null })).rejects.toThrow(
    'is done; there is nothing to resume',
  );
  expect(calls).toEqual(['caught up']);
  await (await store.open('wf-1')).close();
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
    start: ({ id }, answer) => {
      calls.push(`start ${id}`);
      queueMicrotask(() => answer(success()));
    },
    find: () => {},
    stop: () => {},
  };
  return { calls, services: servicesWith({ ...store, create }, { drivers: { command: () => command } }) };
}

function servicesWith(store: Store, parts: Partial<RunSession> = {}): EngineServices {
  const session: RunSession = {
    drivers: { command: () => ({ start: () => {}, find: () => {}, stop: () => {} }) },
    open() {},
    observe() {},
    close: () => Promise.resolve(),
    catchUp: () => Promise.resolve(),
    ...parts,
  };
  return { store, clock: { now: () => 0, at: () => () => {} }, session: () => session };
}
