// command/3: a stopped command is answered when none of its processes is left.

import { appendFileSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { allByPs, allProcesses, markersAround, markersAroundByPs } from '../../src/sys/process.ts';
import { appears, CommandRig, gone, hasEnded } from './driver-command-rig.ts';
import { start } from './driver.ts';

/** Long enough that no test ends because of it. */
const GRACE_MS = 600_000;
/** Signals that it runs, and stays. */
const STAY = 'echo $PPID > there; while :; do sleep 1000; done';

let rig: CommandRig;
beforeEach(() => {
  rig = new CommandRig({ graceMs: GRACE_MS });
});
afterEach(() => rig.close());

const stopped = { kind: 'failure', failure: { kind: 'stopped' } };

describe('stopping gently', () => {
  test('lets a command clean up, within its grace period', async () => {
    const script = `trap 'echo cleaning > cleaned; exit 0' TERM; echo > there; while :; do sleep 0.01; done`;
    const outcome = start(rig, rig.command(script, { step: 'a' }));
    await appears(rig.path('there'));
    rig.driver.stop('a#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(readFileSync(rig.path('cleaned'), 'utf8')).toBe('cleaning\n');
    expect(rig.left()).toEqual([]);
  });

  test('reaches the children of the command', async () => {
    const outcome = start(
      rig,
      rig.command('(sleep 1000 & sleep 1000) & sh -c "sleep 1000; true" & echo > there; wait'),
    );
    await appears(rig.path('there'));
    rig.driver.stop('step-1#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(rig.left()).toEqual([]);
  });

  test('reaches processes that left its group and its session', async () => {
    const outcome = start(rig, rig.command(`setsid sh -c 'echo $$ > there; sleep 1000; true' & wait; sleep 1000`));
    const pid = Number(await appears(rig.path('there')));
    rig.driver.stop('step-1#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    await gone(pid);
    expect(rig.left()).toEqual([]);
  });

  test('reaches processes that hide their environment', async () => {
    const outcome = start(rig, rig.command(`env -i sh -c 'echo $$ > there; sleep 1000; true'; true`));
    const pid = Number(await appears(rig.path('there')));
    rig.driver.stop('step-1#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    await gone(pid);
  });

  test('wakes suspended processes', async () => {
    const outcome = start(rig, rig.command('sh -c "kill -STOP \\$\\$" & echo > there; wait'));
    await appears(rig.path('there'));
    rig.driver.stop('step-1#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(rig.left()).toEqual([]);
  });

  test('keeps the output of the command', async () => {
    const outcome = start(rig, rig.command('echo so far; echo > there; sleep 1000'));
    await appears(rig.path('there'));
    rig.driver.stop('step-1#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject({ failure: { output: 'so far' } });
  });

  test('reaches a command that has forged a record of its exit', async () => {
    const effect = rig.command(`echo > there; sleep 1000`, { step: 'a' });
    const outcome = start(rig, effect);
    await appears(rig.path('there'));
    appendFileSync(rig.stepFile(effect, 'status'), 'exit 0\n');
    rig.driver.stop(effect.id, { force: false, why: 'timeout' });
    expect(await outcome).toMatchObject(stopped);
    expect(rig.left()).toEqual([]);
  });

  test('ends with force after the grace period', async () => {
    await using impatient = {
      rig: new CommandRig({ graceMs: 20 }),
      [Symbol.asyncDispose]: () => impatient.rig.close(),
    };
    const outcome = start(impatient.rig, impatient.rig.command(`trap '' TERM; ${STAY}`));
    await appears(impatient.rig.path('there'));
    impatient.rig.driver.stop('step-1#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(impatient.rig.left()).toEqual([]);
  });
});

describe('stopping with force', () => {
  test('kills processes that ignore signals, wherever they are', async () => {
    const script = `trap '' TERM; setsid sh -c 'trap "" TERM; echo > stray; while :; do sleep 1000; done' & ${STAY}`;
    const outcome = start(rig, rig.command(script));
    await Promise.all([appears(rig.path('there')), appears(rig.path('stray'))]);
    rig.driver.stop('step-1#1', { force: true, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(rig.left()).toEqual([]);
  });

  test('may follow a gentle stop that takes too long', async () => {
    const outcome = start(rig, rig.command(`trap 'echo > asked' TERM; echo > there; while :; do sleep 0.01; done`));
    await appears(rig.path('there'));
    rig.driver.stop('step-1#1', { force: false, why: 'run-ending' });
    await appears(rig.path('asked'));
    rig.driver.stop('step-1#1', { force: true, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(rig.left()).toEqual([]);
  });
});

describe('a stop', () => {
  test('after the end changes nothing', async () => {
    const effect = rig.command('exit 3');
    const outcome = start(rig, effect);
    // The status is on disk, and the driver has not seen it yet: no tick has passed.
    await appears(rig.stepFile(effect, 'status'), hasEnded);
    rig.driver.stop(effect.id, { force: true, why: 'run-ending' });
    expect(await outcome).toMatchObject({ failure: { kind: 'exit-nonzero', code: 3 } });
  });

  test('before the search for an earlier process also stops that process', async () => {
    const effect = rig.command(STAY);
    void start(rig, effect);
    await appears(rig.path('there'));
    rig.nextLife();
    const outcome = rig.find(effect);
    rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(rig.left()).toEqual([]);
  });

  test('while an earlier process is awaited stops it', async () => {
    const effect = rig.command(STAY);
    void start(rig, effect);
    await appears(rig.path('there'));
    rig.nextLife();
    const outcome = rig.find(effect);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    rig.driver.stop(effect.id, { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(stopped);
    expect(rig.left()).toEqual([]);
  });

  test('of many commands at once stops them all', async () => {
    const effects = Array.from({ length: 50 }, (_, index) =>
      rig.command(`echo > there-${index}; sleep 1000; true`, { step: `s${index}` }),
    );
    const outcomes = effects.map((effect) => start(rig, effect));
    await Promise.all(effects.map((_, index) => appears(rig.path(`there-${index}`))));
    for (const { id } of effects) rig.driver.stop(id, { force: false, why: 'run-ending' });
    expect(await Promise.all(outcomes)).toMatchObject(effects.map(() => stopped));
    expect(rig.left()).toEqual([]);
  });
});

test('processes that a command leaves running are left alone, and can be listed', async () => {
  const script = `sleep 1000 & echo $! > inside; setsid sh -c 'echo $$ > outside; sleep 1000; true' & true`;
  expect(await rig.run(script)).toMatchObject({ kind: 'success' });
  const pids = [await appears(rig.path('inside')), await appears(rig.path('outside'))].map(Number);
  expect(rig.left()).toEqual(expect.arrayContaining(pids));
});

test('stopping one command does not affect the others', async () => {
  const effects = [rig.effect('holds'), rig.effect('holds')] as const;
  const outcomes = effects.map((effect) => start(rig, effect));
  await Promise.all(effects.map((effect) => rig.begun(effect)));
  rig.driver.stop(effects[0].id, { force: true, why: 'run-ending' });
  expect(await outcomes[0]).toMatchObject(stopped);
  await rig.release(effects[1]);
  expect(await outcomes[1]).toMatchObject({ kind: 'success' });
});

test.runIf(process.platform === 'linux')('ps lists the same processes as /proc', async () => {
  const effect = rig.effect('holds');
  const outcome = start(rig, effect);
  await rig.begun(effect);
  const own = `${rig.runId}.m:${effect.id}`;
  const pick = (entries: ReturnType<typeof allByPs>) =>
    entries.filter(({ marker }) => marker === own).map(({ pid, group }) => ({ pid, group }));
  expect(pick(allByPs())).toEqual(pick(allProcesses()));
  expect(pick(allByPs())).toHaveLength(1);
  const [{ pid } = { pid: 0 }] = pick(allByPs());
  expect(markersAround(pid)[0]).toBe(own);
  expect(markersAroundByPs(pid)).toEqual(markersAround(pid));
  await rig.release(effect);
  await outcome;
});
