// The state file is never ahead of the journal: a real engine, over a disk that is slow and then fails.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { Adapters } from '../../src/app/adapters.ts';
import { startSession } from '../../src/app/run-session.ts';
import { readRun } from '../../src/app/runs.ts';
import { StateRefresh } from '../../src/app/state-refresh.ts';
import { present } from '../../src/base/errors.ts';
import { fold } from '../../src/kernel/apply.ts';
import { UNLIMITED } from '../../src/ir/program.ts';
import { initialState } from '../../src/kernel/state.ts';
import { DEFAULT_CONFIG } from '../../src/languages/config.ts';
import { compileMeow } from '../../src/languages/meow/compile.ts';
import { DiskFailure } from '../../src/stores/errors.ts';
import type { AppendFile } from '../../src/stores/file-journal.ts';
import { fileStore } from '../../src/stores/files.ts';
import { StateYaml } from '../../src/view/state-yaml.ts';
import { fakeRun } from '../kernel-rig/fake-run.ts';
import { aProgram } from './store-samples.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'meow-refresh-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const CHAIN = `[main]
${['a', 'b', 'c']
  .map(
    (id, index) =>
      `[[main.steps]]\nid = "${id}"\nexecutor = "shell"\ncommand = "sleep 0.05"\nneeds = ${JSON.stringify(['a', 'b', 'c'].slice(0, index))}\n`,
  )
  .join('')}`;

/** Longer than the interval of the state file. */
const SLOW_MS = 300;

test.for([1, 2, 3])('the state file contains nothing of append %i, which fails', async (failing) => {
  const shown: boolean[] = [];
  const { run, store } = chain((count, file) => ({
    ...file,
    async write(bytes) {
      if (count() <= failing) return file.write(bytes);
      // The timer of the last change fires during this append.
      await sleep(SLOW_MS);
      throw Object.assign(new Error('no room'), { code: 'ENOSPC', syscall: 'write' });
    },
  }));
  await expect(run((durable) => shown.push(durable()))).rejects.toBeInstanceOf(DiskFailure);
  const { program, records } = await readRun(store, 'r');
  expect(records).toHaveLength(failing);
  const told = records.map((_, index) => new StateYaml(fold(program, records.slice(0, index + 1))).text());
  expect(told).toContain(readFileSync(join(folder, 'r.yaml'), 'utf8'));
  // Observers receive the same: true after every change.
  expect(new Set(shown)).toEqual(new Set([true]));
});

test('the state file is complete at the end, even if appends are slow', async () => {
  const { run, store } = chain((_, file) => ({
    ...file,
    async write(bytes) {
      await sleep(SLOW_MS);
      return file.write(bytes);
    },
  }));
  await run(() => {});
  const { state } = await readRun(store, 'r');
  expect(state.end).toBe('done');
  expect(readFileSync(join(folder, 'r.yaml'), 'utf8')).toBe(new StateYaml(state).text());
});

test('a timer that fires during an append leaves the write to the next change', async () => {
  vi.useFakeTimers();
  try {
    const written: string[] = [];
    let durable = true;
    const refresh = new StateRefresh({
      file: { write: async (text) => void written.push([text].flat().join('')) },
      bytesMax: 1_000_000,
      tooLarge() {},
      warn() {},
    });
    const state = initialState(aProgram());
    refresh.open({
      ...fakeRun(['a']),
      state,
      get durable() {
        return durable;
      },
    });
    durable = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(written).toHaveLength(0);
    durable = true;
    refresh.observe([], state);
    await vi.advanceTimersByTimeAsync(0);
    expect(written).toHaveLength(1);
    refresh.observe([], state);
    durable = false;
    await refresh.close();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(written).toHaveLength(1);
  } finally {
    vi.useRealTimers();
  }
});

test.for(['ENOSPC', 'EXDEV', 'ESTALE'])(
  'a state file that cannot be written (%s) is reported once, and stops nothing',
  async (code) => {
    const warnings: string[] = [];
    const refresh = new StateRefresh({
      file: { write: () => Promise.reject(Object.assign(new Error(`${code}: why`), { code, syscall: 'rename' })) },
      bytesMax: 1_000_000,
      tooLarge() {},
      warn: (line) => warnings.push(line),
    });
    const run = fakeRun(['a']);
    refresh.open(run);
    await sleep(300);
    refresh.observe([], run.state);
    await refresh.close();
    expect(warnings).toEqual([`cannot write the state file: ${code}: why; the journal is not affected`]);
  },
);

/** A run of three sequential steps over such a disk. `count`: the number of writes, including this one. */
function chain(disk: (count: () => number, file: AppendFile) => AppendFile): {
  readonly store: ReturnType<typeof fileStore>;
  readonly run: (seen: (durable: () => boolean) => void) => Promise<unknown>;
} {
  let writes = 0;
  const store = fileStore({
    folder,
    wrapFile: (file) => {
      const through = disk(() => writes, file);
      return {
        ...through,
        write(bytes) {
          writes += 1;
          return through.write(bytes);
        },
      };
    },
  });
  const { program } = compileMeow({
    file: 'w.meow.toml',
    text: CHAIN,
    workflow: null,
    given: [],
    limits: DEFAULT_CONFIG.limits,
  });
  const request = {
    id: 'r',
    mark: 'm',
    variables: {},
    meta: {},
    cwd: folder,
    allowOutside: false,
    allowance: UNLIMITED,
  };
  let durable = (): boolean => false;
  return {
    store,
    run: (seen) =>
      startSession(
        {
          store,
          config: DEFAULT_CONFIG,
          adapters: new Adapters({ cwd: folder, meow: folder, shared: folder }),
          environment: { PATH: process.env['PATH'] ?? '' },
          reporter: {
            open(live) {
              durable = () => live.durable;
            },
            observe: () => seen(durable),
            note() {},
            warn() {},
            end() {},
            abandon() {},
          },
        },
        present(program, 'it compiles'),
        request,
      ),
  };
}
