// A store is added by one folder, and chosen in one existing file.

import { resolve } from 'node:path';
import { expect, test } from 'vitest';

import { follow } from '../../../src/app/follow.ts';
import { startRun } from '../../../src/engine/client.ts';
import type { Driver } from '../../../src/engine/ports.ts';
import { success } from '../../../src/ir/effect.ts';
import { UNLIMITED } from '../../../src/ir/program.ts';
import { systemClock } from '../../../src/sys/clock.ts';
import { storeContract } from '../../contracts/store.ts';
import { parseProgram } from '../../kernel-rig/program-text.ts';
import { readTree } from '../../tidy/tree.ts';
import { toyStore } from './toy-store.ts';

storeContract('toy', async () => ({ store: toyStore(), dispose: async () => {} }));

test('an engine runs on it, and a face follows the run', async () => {
  const store = toyStore();
  const command: Driver = {
    start: (_effect, answer) => setTimeout(() => answer(success()), 1),
    find: (_effect, answer) => answer(success()),
    stop: () => {},
  };
  const request = {
    id: 'wf-1',
    mark: 'm',
    variables: {},
    meta: {},
    cwd: '/',
    allowOutside: false,
    allowance: UNLIMITED,
  };
  const done = (): Promise<void> => Promise.resolve();
  const session = { drivers: { command: () => command }, open() {}, observe() {}, close: done, catchUp: done };
  const run = await startRun(
    { store, clock: systemClock, session: () => session },
    parseProgram(['a', 'b needs a', 'c needs b']),
    request,
  );
  const phases: string[] = [];
  const seen: number[] = [];
  await follow(
    store,
    'wf-1',
    ({ state }, fresh) => {
      phases.push(state.phase);
      seen.push(...fresh.map(({ seq }) => seq));
      return state.phase !== 'ended';
    },
    () => false,
  );
  await run.ended;
  const { records } = await store.read('wf-1');
  expect(seen).toEqual(records.map(({ seq }) => seq));
  expect(phases.at(-1)).toBe('ended');
});

test('one file chooses the store', () => {
  const choosing = [...readTree(resolve(import.meta.dirname, '../../..'))]
    .filter(
      ([path, text]) =>
        /^src\/(?!stores\/).*\.ts$/.test(path) &&
        /import \{[^}]*Store\b[^}]*\} from '[^']*stores\/(?:files|memory)\.ts'/.test(text),
    )
    .map(([path]) => path)
    .filter((path) => !path.endsWith('.test.ts'));
  expect(choosing).toEqual(['src/app/runs.ts']);
});
