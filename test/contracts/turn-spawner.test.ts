// The process that starts the programs of turns in quick succession.

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Spawner } from '../../src/drivers/spawner.ts';
import type { Effect } from '../../src/ir/effect.ts';
import { pinFolder } from '../../src/sys/files.ts';
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
    mkdirSync(join(base, 'steps'));
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

  describe('below a pinned folder', () => {
    let unpin: () => void;
    beforeEach(() => {
      unpin = pinFolder(base);
      mkdirSync(join(base, 'vault'));
    });
    afterEach(() => unpin());

    function putLink(): void {
      rmSync(join(base, 'steps'), { recursive: true });
      symlinkSync(join(base, 'vault'), join(base, 'steps'));
    }

    function expectOwnFolder(): void {
      expect(readdirSync(join(base, 'vault'))).toEqual([]);
      expect(lstatSync(join(base, 'steps')).isDirectory()).toBe(true);
    }

    test('has its files there, although its folder becomes a link after the request (guard/1)', async () => {
      const ended = run('one', 'cat', 'a prompt');
      putLink();
      expect(await ended).toBe(0);
      expectOwnFolder();
      expect(readFileSync(join(base, 'steps', 'one.stdout'), 'utf8')).toBe('a prompt');
      expect(readFileSync(join(base, 'steps', 'one.status'), 'utf8')).toMatch(/^\d+ .*\nplan\nexit 0\n$/);
    });

    test('writes nothing behind a link that it has put in the place of its folder', async () => {
      const swap = `rm -r '${base}/steps'; ln -s '${base}/vault' '${base}/steps'`;
      // A file that could be the record of its end.
      expect(await run('one', `cp '${base}/steps/one.status' '${base}/vault/'; ${swap}`, null)).toBe(0);
      expect(readFileSync(join(base, 'vault', 'one.status'), 'utf8')).not.toContain('exit');
    });

    test.for(['a file', 'a pipe', 'nothing'])('has its files there, although its folder becomes %s', async (what) => {
      const ended = run('one', 'cat', 'a prompt');
      rmSync(join(base, 'steps'), { recursive: true });
      if (what === 'a file') writeFileSync(join(base, 'steps'), 'of somebody');
      if (what === 'a pipe') execFileSync('mkfifo', [join(base, 'steps')]);
      expect(await ended).toBe(0);
      expectOwnFolder();
      const [aside] = readdirSync(base).filter((each) => each.startsWith('steps.aside-'));
      const left = aside === undefined ? null : readFileSync(join(base, aside), 'utf8');
      expect(left).toBe(what === 'a file' ? 'of somebody' : null);
    });

    test('is refused if somebody replaces the pinned folder after the request', async () => {
      const ended = run('one', ':', null);
      renameSync(base, `${base}.moved`);
      mkdirSync(join(base, 'steps'), { recursive: true });
      await expect(ended).rejects.toThrow('ELOOP');
      expect(readdirSync(join(base, 'steps'))).toEqual([]);
      rmSync(`${base}.moved`, { recursive: true });
    });

    test('has its files there, although it is started together with another while their folder becomes a link', async () => {
      process.kill(spawner.pid, 'SIGSTOP');
      const ends = [run('one', ':', ''), run('other', 'cat', 'a prompt')];
      putLink();
      process.kill(spawner.pid, 'SIGCONT');
      expect(await Promise.all(ends)).toEqual([0, 0]);
      expectOwnFolder();
      expect(readFileSync(join(base, 'steps', 'other.stdout'), 'utf8')).toBe('a prompt');
    });
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
