// G2: commands of a killed engine are found again, counted as finished, or cleaned up.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Effect } from '../../src/ir/effect.ts';
import { bootId } from '../../src/sys/process.ts';
import { bundled } from '../rig/bundle.ts';
import { appears, CommandRig, from } from './driver-command-rig.ts';
import { start } from './driver.ts';

let rig: CommandRig;
beforeEach(() => {
  rig = new CommandRig();
});
afterEach(() => rig.close());

const lost = { kind: 'failure', failure: { kind: 'lost' } };

describe('after kill -9 of the engine', () => {
  test('a command that ended meanwhile counts as finished, with its outputs', async () => {
    const effect = rig.command(`${rig.holding('a')}; echo "line: $line"`, { captures: [from('stdout')], step: 'a' });
    await killedEngine([effect]);
    await rig.release(effect);
    expect(await rig.find(effect)).toMatchObject({ kind: 'success', outputs: { stdout: 'line: go', exit_code: 0 } });
    expect(rig.timesBegun(effect)).toBe(1);
  });

  test('a command that is still running is awaited', async () => {
    const effect = rig.command(`${rig.holding('a')}; exit 3`, { step: 'a' });
    await killedEngine([effect]);
    const outcome = rig.find(effect);
    await rig.release(effect);
    expect(await outcome).toMatchObject({ failure: { kind: 'exit-nonzero', code: 3 } });
    expect(rig.timesBegun(effect)).toBe(1);
  });

  test('a command that was killed too is lost, and its remaining processes are stopped', async () => {
    const stray = `setsid sh -c 'echo > stray; sleep 1000; true' &`;
    const effect = rig.command(`${stray} ${rig.holding('a')}`, { step: 'a' });
    await killedEngine([effect]);
    await appears(rig.path('stray'));
    await rig.lose(effect);
    expect(rig.left()).not.toEqual([]);
    expect(await rig.find(effect)).toMatchObject(lost);
    expect(rig.left()).toEqual([]);
    expect(rig.timesBegun(effect)).toBe(1);
  });

  test('a command that replaced its shell is also found', async () => {
    const effect = rig.command(`${rig.holding('a')}; exec sh -c "exit 6"`, { step: 'a' });
    await killedEngine([effect]);
    const outcome = rig.find(effect);
    await rig.release(effect);
    expect(await outcome).toMatchObject({ failure: { kind: 'exit-nonzero', code: 6 } });
  });

  test('many commands are found', async () => {
    const effects = Array.from({ length: 20 }, (_, index) =>
      rig.command(`${rig.holding(`s${index}`)}; exit ${index}`, { step: `s${index}` }),
    );
    await killedEngine(effects);
    const outcomes = effects.map((effect) => rig.find(effect));
    await Promise.all(effects.map((effect) => rig.release(effect)));
    expect((await Promise.all(outcomes)).map(({ kind }) => kind)).toEqual([
      'success',
      ...Array.from({ length: 19 }, () => 'failure'),
    ]);
  });

  test('a second engine may be killed as well', async () => {
    const effect = rig.command(rig.holding('a'), { step: 'a' });
    await killedEngine([effect]);
    rig.nextLife();
    void rig.find(effect);
    rig.nextLife();
    const outcome = rig.find(effect);
    await rig.release(effect);
    expect(await outcome).toMatchObject({ kind: 'success' });
  });
});

describe('a record', () => {
  test('of another process with the same pid is not confused with the command', async () => {
    const effect = rig.command('echo x >> began');
    record(effect, 'status', `${process.pid} 1000000000 ${bootId()}\n`);
    // This process has no marker.
    expect(await rig.find(effect)).toMatchObject(lost);
    expect(existsSync(rig.path('began'))).toBe(false);
  });

  test('of a process that started later is not confused with the command', async () => {
    const effect = rig.command(rig.holding('a'), { step: 'a' });
    void start(rig, effect);
    await rig.begun(effect);
    const [pid] = readFileSync(rig.stepFile(effect, 'status'), 'utf8').split(' ');
    record(effect, 'status', `${pid} 0.01 ${bootId()}\n`);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(lost);
    expect(rig.left()).toEqual([]);
  });

  test('from before a reboot names no running process', async () => {
    const effect = rig.command(rig.holding('a'), { step: 'a' });
    void start(rig, effect);
    await rig.begun(effect);
    const written = readFileSync(rig.stepFile(effect, 'status'), 'utf8');
    record(effect, 'status', written.replace(bootId(), '00000000-0000-0000-0000-000000000000'));
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(lost);
  });

  test('of an exit code is final, whatever happened to the process', async () => {
    const effect = rig.command('exit 1');
    record(effect, 'status', `${process.pid} 1 00000000-0000-0000-0000-000000000000\nexit 0\n`);
    expect(await rig.find(effect)).toMatchObject({ kind: 'success' });
  });

  test('of an exit does not count while the command runs', async () => {
    const effect = rig.command(`${rig.holding('a')}; echo late > late`, { step: 'a' });
    void start(rig, effect);
    await rig.begun(effect);
    appendFileSync(rig.stepFile(effect, 'status'), 'exit 0\n');
    rig.nextLife();
    const outcome = rig.find(effect);
    await rig.release(effect);
    // Two exits: nobody can tell which one is true.
    expect(await outcome).toMatchObject(lost);
    expect(existsSync(rig.path('late'))).toBe(true);
  });

  test('of an exit does not keep a command from being stopped that is found', async () => {
    const effect = rig.command(rig.holding('a'), { step: 'a' });
    void start(rig, effect);
    await rig.begun(effect);
    rig.nextLife();
    const outcome = rig.find(effect);
    appendFileSync(rig.stepFile(effect, 'status'), 'exit 0\n');
    rig.driver.stop(effect.id, { force: false, why: 'timeout' });
    expect(await outcome).toMatchObject({ kind: 'failure', failure: { kind: 'stopped' } });
    expect(rig.left()).toEqual([]);
  });

  test('that was started and not completed means that the command started', async () => {
    const effect = rig.command('echo x >> began');
    record(effect, 'status', '');
    expect(await rig.find(effect)).toMatchObject(lost);
    expect(existsSync(rig.path('began'))).toBe(false);
  });

  test('that was there before the first start is somebody else’s, and the command runs', async () => {
    const effect = rig.command('echo x >> began', { step: 'a' });
    record(effect, 'status', `${process.pid} 1 ${bootId()}\nexit 0\n`);
    expect(await start(rig, effect)).toMatchObject({ kind: 'success' });
    expect(existsSync(rig.path('began'))).toBe(true);
  });

  test('that is truncated is ignored', async () => {
    const effect = rig.command('echo x >> began', { step: 'a' });
    record(effect, 'status', `${process.pid} 1 ${bootId()}\nexit 1`);
    expect(await rig.find(effect)).toMatchObject(lost);
  });
});

describe('an attempt starts once (command/1)', () => {
  test('even if many engines request it', async () => {
    const effect = rig.command(`${rig.holding('a')}; exit 5`, { step: 'a' });
    const outcomes = [rig.find(effect)];
    for (let life = 0; life < 5; life += 1) {
      rig.nextLife();
      outcomes.push(rig.find(effect));
    }
    await rig.begun(effect);
    await rig.release(effect);
    for (const outcome of outcomes) expect(await outcome).toMatchObject({ failure: { code: 5 } });
    expect(rig.timesBegun(effect)).toBe(1);
    expect(readFileSync(rig.stepFile(effect, 'stderr'), 'utf8')).toBe('');
  });

  test('even if one engine requests it twice', async () => {
    const effect = rig.effect('succeeds');
    const outcomes = await Promise.all([start(rig, effect), rig.find(effect)]);
    expect(outcomes).toMatchObject([{ kind: 'success' }, { kind: 'success' }]);
    expect(rig.timesBegun(effect)).toBe(1);
  });

  test('and the next attempt of the step is separate', async () => {
    const again = { step: 'a' };
    expect(await rig.printed('echo $MEOW_ATTEMPT', { ...again, attempt: 1 })).toBe('1');
    expect(await rig.printed('echo $MEOW_ATTEMPT', { ...again, attempt: 2 })).toBe('2');
  });

  test('and exit code 125 has no special meaning', async () => {
    expect(await rig.run('exit 125')).toMatchObject({ failure: { kind: 'exit-nonzero', code: 125 } });
  });
});

test('a process that has not yet written its record is awaited', async () => {
  const effect = rig.command(`${rig.holding('a')}; exit 4`, { step: 'a' });
  void start(rig, effect);
  await rig.begun(effect);
  rmSync(rig.stepFile(effect, 'status'));
  rig.nextLife();
  const outcome = rig.find(effect);
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  await rig.release(effect);
  expect(await outcome).toMatchObject({ failure: { code: 4 } });
  expect(rig.timesBegun(effect)).toBe(1);
});

test('300 parallel commands are all answered, and no file stays open', async () => {
  const open = (): number => (existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0);
  await rig.run('true');
  const before = open();
  const outcomes = await Promise.all(Array.from({ length: 300 }, (_, index) => rig.run(`exit ${index % 2}`)));
  expect(outcomes.filter(({ kind }) => kind === 'success')).toHaveLength(150);
  // The launcher's three pipes stay open.
  expect(open()).toBeLessThanOrEqual(before + 3);
});

test('a command that the system cannot start for lack of resources is retried', async () => {
  const program = bundled(new URL('../fixtures/commands/exhausted.ts', import.meta.url));
  const options = {
    runId: rig.runId,
    mark: 'm',
    runFolder: rig.runFolder,
    cwd: rig.folder,
    environment: { PATH: process.env['PATH'] },
  };
  const args = [process.execPath, program, JSON.stringify(options), JSON.stringify(rig.effect('succeeds'))];
  const { stdout, stderr } = spawnSync('sh', ['-c', 'ulimit -n 64; exec "$0" "$@"', ...args], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout).toBe('full\nsuccess\n');
});

test('a run folder that is not writable is a failure, not an exception', async () => {
  writeFileSync(join(rig.runFolder, 'steps'), 'a file where a folder should be');
  expect(await rig.run('true')).toMatchObject({ failure: { kind: 'not-started' } });
});

/** An engine that has started these, and was killed when all of them were running. */
async function killedEngine(effects: readonly Effect[]): Promise<void> {
  const options = {
    runId: rig.runId,
    mark: 'm',
    runFolder: rig.runFolder,
    cwd: rig.folder,
    environment: { PATH: process.env['PATH'] },
  };
  const program = bundled(new URL('../fixtures/commands/engine.ts', import.meta.url));
  const args = [program, ...[options, ...effects].map((value) => JSON.stringify(value))];
  const engine: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  await Promise.all(effects.map((effect) => rig.begun(effect)));
  const ended = new Promise((resolve) => engine.once('exit', resolve));
  engine.kill('SIGKILL');
  await ended;
}

function record(effect: Effect, name: string, text: string): void {
  mkdirSync(dirname(rig.stepFile(effect, name)), { recursive: true });
  writeFileSync(rig.stepFile(effect, name), text);
}
