// The process that starts the programs of turns in quick succession.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Spawner } from '../../src/drivers/spawner.ts';
import type { Effect } from '../../src/ir/effect.ts';
import { gone, spareOf } from './driver-command-rig.ts';
import { driverContract } from './driver.ts';
import { TurnRig } from './turn-rig.ts';

const ENVIRONMENT = { PATH: process.env['PATH'] ?? '' };

async function readySpawner(): Promise<Spawner> {
  const spawner = new Spawner(ENVIRONMENT);
  spawner.launch();
  while (!spawner.ready) await setImmediate();
  return spawner;
}

describe('a program', () => {
  let base: string;
  let spawner: Spawner;
  beforeEach(async () => {
    base = mkdtempSync(join(tmpdir(), 'meow-spawner-'));
    spawner = await readySpawner();
  });
  afterEach(() => rmSync(base, { recursive: true }));

  /** Its exit code. If it reads input, that is its prompt, unless another file is named. */
  function run(name: string, text: string, prompt: string | null, stdin?: string): Promise<number> {
    const prefix = join(base, 'steps', `${name}.`);
    const read = prompt === null ? null : `${prefix}prompt`;
    const request = {
      cwd: base,
      prefix,
      environment: { base: ENVIRONMENT, own: {} },
      files: { prompt: prompt ?? '' },
      stdin: stdin ?? read ?? '/dev/null',
      record: 'plan',
      commands: [['/bin/sh', 'sh', '-c', text] as const],
    };
    return new Promise((resolve, reject) => {
      spawner.start(request, {
        begun: () => undefined,
        refused: reject,
        ended: resolve,
        abandoned: () => reject(new Error('abandoned')),
      });
    });
  }

  test.each(['one line', 'größer ⟶ 猫\n', '', 'many\n'.repeat(10_000)])(
    'reads its prompt unchanged, and finds it in its file',
    async (prompt) => {
      expect(await run('one', 'cat', prompt)).toBe(0);
      for (const name of ['stdout', 'prompt'])
        expect(readFileSync(join(base, 'steps', `one.${name}`), 'utf8')).toBe(prompt);
    },
  );

  test('whose preparation fails is refused, and leaves no wrong exit record', async () => {
    await expect(run('one', ':', '', join(base, 'nowhere'))).rejects.toThrow('ENOENT');
    // One after the other: the end of the first is known before the second is reported.
    expect(await run('other', 'exit 3', null)).toBe(3);
    expect(existsSync(join(base, 'steps', 'one.status'))).toBe(false);
  });

  test('does not get the input of another, even if they are requested together', async () => {
    // While suspended, it receives both at once.
    process.kill(spawner.pid, 'SIGSTOP');
    const ends = [run('one', ':', 'a secret'), run('other', 'cat', null)];
    process.kill(spawner.pid, 'SIGCONT');
    expect(await Promise.all(ends)).toEqual([0, 0]);
    expect(readFileSync(join(base, 'steps', 'other.stdout'), 'utf8')).toBe('');
  });
});

describe('a turn that the spawner starts', () => {
  let spawner: Spawner;
  let rig: TurnRig;
  beforeEach(async () => {
    spawner = await readySpawner();
    rig = new TurnRig(undefined, { spawner });
  });
  afterEach(() => rig.close());

  test('is the spare process', async () => {
    const effect = rig.effect('succeeds');
    const spare = await spareOf(spawner);
    expect(await rig.start(effect)).toMatchObject({ kind: 'success' });
    expect(readFileSync(rig.turnFile(effect, 'status'), 'utf8').split(' ')[0]).toBe(String(spare));
    expect(rig.timesBegun(effect)).toBe(1);
  });

  test('is another process if the spare died before the request', async () => {
    const effect = rig.effect('succeeds');
    const spare = await spareOf(spawner);
    process.kill(spare, 'SIGKILL');
    await gone(spare);
    expect(await rig.start(effect)).toMatchObject({ kind: 'success' });
    expect(rig.timesBegun(effect)).toBe(1);
  });

  test.for(['prompt', 'stdout', 'stderr', 'status'])('makes room for its file %s (guard/3)', async (name) => {
    const effect = rig.effect('succeeds');
    mkdirSync(rig.turnFile(effect, name), { recursive: true });
    writeFileSync(join(rig.turnFile(effect, name), 'work'), 'of somebody');
    expect(await rig.start(effect)).toMatchObject({ kind: 'success' });
    expect(rig.timesBegun(effect)).toBe(1);
    const folder = dirname(rig.turnFile(effect, name));
    const [aside = ''] = readdirSync(folder).filter((each) => each.includes(`${name}.aside-`));
    expect(readFileSync(join(folder, aside, 'work'), 'utf8')).toBe('of somebody');
  });

  test('makes room for the record of its session (guard/3)', async () => {
    const effect = rig.effect('succeeds');
    mkdirSync(join(rig.runFolder, 'sessions.jsonl'), { recursive: true });
    expect(await rig.start(effect)).toMatchObject({ kind: 'success' });
    expect(readFileSync(join(rig.runFolder, 'sessions.jsonl'), 'utf8')).toContain('"id"');
  });

  test('may be one of many in a row, each with its own prompt and session', async () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      const session = { kind: 'resume', id: `of-${name}` } as const;
      const effect = rig.turn(`init; result "${name} $1"`, { step: name, session });
      expect(await rig.start(effect)).toMatchObject({ outputs: { result: `${name} resume` }, session: `of-${name}` });
    }
  });
});

/** Everything that the spawner started is killed with it. */
class SpawnedTurnRig extends TurnRig {
  readonly #spawner: Spawner;

  constructor(spawner: Spawner) {
    super(undefined, { spawner });
    this.#spawner = spawner;
  }

  override async lose(effect: Effect): Promise<void> {
    process.kill(this.#spawner.pid, 'SIGKILL');
    await super.lose(effect);
  }
}

driverContract(
  'the driver of headless turns, where the spawner starts them',
  async () => new SpawnedTurnRig(await readySpawner()),
);
