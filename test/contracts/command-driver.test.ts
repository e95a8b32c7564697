import { readFileSync, writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import { present } from '../../src/base/errors.ts';
import { Spawner } from '../../src/drivers/spawner.ts';
import type { Outcome } from '../../src/ir/effect.ts';
import { CommandRig, from, gone, spareOf } from './driver-command-rig.ts';
import { driverContract, start } from './driver.ts';

const ENVIRONMENT = { PATH: process.env['PATH'] ?? '', PERL5OPT: '-Mnonsense', ODD: 'a\nb=c', GONE: 'x' };

/** Starts every process directly. */
const WITHOUT = new Spawner(ENVIRONMENT, null);

driverContract('the driver of commands, without the spawner', async () => new CommandRig({ spawner: WITHOUT }));

driverContract(
  'the driver of commands, with the spawner',
  async () => new CommandRig({ spawner: await readySpawner(ENVIRONMENT) }),
);

describe('the spawner', () => {
  test('starts commands in the same way as without it', async () => {
    const script = 'echo "$0 $# $ODD $PERL5OPT $STEP_VAR"; umask; ls /proc/self/fd | wc -l';
    const both = [WITHOUT, await readySpawner(ENVIRONMENT)].map(async (spawner) => {
      const rig = new CommandRig({ spawner, environment: ENVIRONMENT });
      const wish = { env: { STEP_VAR: 'x\n\ny' }, captures: [from('stdout')], step: 'same' };
      const outcome = await rig.run(script, wish);
      await rig.close();
      return outcome;
    });
    const [without, withSpawner] = await Promise.all(both);
    expect(without).toMatchObject({ kind: 'success' });
    expect(withSpawner).toEqual(without);
  });

  test('keeps nothing of one command for the next', async () => {
    const rig = new CommandRig({ spawner: await readySpawner(ENVIRONMENT), environment: ENVIRONMENT });
    const script = 'echo "${ONCE-none} $GONE $PWD ${PATH%%:*}"';
    const many = async (wish = {}): Promise<ReadonlySet<string>> =>
      new Set(await Promise.all(Array.from({ length: 12 }, () => rig.printed(script, wish))));
    const odd = { env: { ONCE: 'once', GONE: 'back', PATH: '/odd:/bin:/usr/bin' }, cwd: '/' };
    expect(await many(odd)).toEqual(new Set(['once back / /odd']));
    const path = present(ENVIRONMENT.PATH.split(':')[0], 'PATH is empty');
    expect(await many()).toEqual(new Set([`none x ${rig.folder} ${path}`]));
    await rig.close();
  });

  test('gives each command its own session', async () => {
    const rig = new CommandRig({ spawner: await readySpawner(ENVIRONMENT) });
    const effect = rig.command('ps -o pgid=,sid= -p $(sh -c "echo \\$PPID")', { captures: [from('stdout')] });
    const outcome = await start(rig, effect);
    const [leader = ''] = readFileSync(rig.stepFile(effect, 'status'), 'utf8').split(' ');
    expect(outcome).toMatchObject({
      outputs: { stdout: expect.stringMatching(new RegExp(`^${leader} +${leader}$`)) as unknown },
    });
    await rig.close();
  });

  test('that is killed leaves its commands running, and the driver continues without it', async () => {
    const spawner = await readySpawner(ENVIRONMENT);
    const rig = new CommandRig({ spawner });
    const effect = rig.effect('holds');
    const outcome = start(rig, effect);
    await rig.begun(effect);
    process.kill(spawner.pid, 'SIGKILL');
    while (spawner.ready) await setImmediate();
    expect(await rig.run('exit 3')).toMatchObject({ failure: { code: 3 } });
    await rig.release(effect);
    expect(await outcome).toMatchObject({ kind: 'success' });
    expect(rig.timesBegun(effect)).toBe(1);
    await rig.close();
  });

  test('that is killed during many starts has each of them run and answered once', async () => {
    const spawner = await readySpawner(ENVIRONMENT);
    const rig = new CommandRig({ spawner });
    const effects = Array.from({ length: 300 }, (_, index) => rig.effect(index % 3 === 0 ? 'fails' : 'succeeds'));
    const answers = effects.map((): Outcome[] => []);
    const answered = effects.map(
      (effect, index) =>
        new Promise<void>((resolve) => {
          rig.driver.start(effect, (outcome) => {
            answers[index]?.push(outcome);
            resolve();
          });
        }),
    );
    await Promise.all(answered.slice(0, 40));
    process.kill(spawner.pid, 'SIGKILL');
    await Promise.all(answered);
    expect(spawner.ready).toBe(false);
    expect(answers.map((all) => all.map(({ kind }) => kind))).toEqual(
      effects.map((_, index) => [index % 3 === 0 ? 'failure' : 'success']),
    );
    expect(new Set(effects.map((effect) => rig.timesBegun(effect)))).toEqual(new Set([1]));
    await rig.close();
  });

  test.for(['begun 1 12begun 2 13', 'begun 1', 'rubbish', ''])(
    'that sends an invalid message (%j) is stopped, and the driver continues without it',
    async (garbled) => {
      const rig = new CommandRig({ spawner: WITHOUT });
      writeFileSync(rig.path('garbling'), `#!/bin/sh\necho ready; read -r line; echo '${garbled}'; exec sleep 1000\n`, {
        mode: 0o755,
      });
      const spawner = new Spawner(ENVIRONMENT, rig.path('garbling'));
      spawner.launch();
      while (!spawner.ready) await setImmediate();
      const own = new CommandRig({ spawner });
      const effects = Array.from({ length: 12 }, () => own.effect('succeeds'));
      const outcomes = await Promise.all(effects.map((effect) => start(own, effect)));
      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['success']));
      expect(new Set(effects.map((effect) => own.timesBegun(effect)))).toEqual(new Set([1]));
      expect(spawner.ready).toBe(false);
      await gone(spawner.pid);
      await own.close();
      await rig.close();
    },
  );

  test('reports many ends and refusals at once without confusing them', async () => {
    const rig = new CommandRig({ spawner: await readySpawner(ENVIRONMENT) });
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, index) => rig.run(`exit ${index}`, { cwd: index % 2 === 0 ? null : 'nowhere' })),
    );
    expect(outcomes.map((outcome) => (outcome.kind === 'failure' ? outcome.failure.code : 0))).toEqual(
      Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? index : null)),
    );
    await rig.close();
  });
});

describe('the spare process of the spawner', () => {
  test('becomes the next command', async () => {
    const spawner = await readySpawner(ENVIRONMENT);
    const rig = new CommandRig({ spawner });
    const spare = await spareOf(spawner);
    const effect = rig.effect('succeeds');
    expect(await start(rig, effect)).toMatchObject({ kind: 'success' });
    expect(readFileSync(rig.stepFile(effect, 'status'), 'utf8').split(' ')[0]).toBe(String(spare));
    await rig.close();
  });

  test('may die before the request: another process becomes the command', async () => {
    const spawner = await readySpawner(ENVIRONMENT);
    const rig = new CommandRig({ spawner });
    const spare = await spareOf(spawner);
    process.kill(spare, 'SIGKILL');
    await gone(spare);
    const effect = rig.effect('succeeds');
    expect(await start(rig, effect)).toMatchObject({ kind: 'success' });
    expect(rig.timesBegun(effect)).toBe(1);
    await rig.close();
  });

  test('becomes one of many commands in a row, each with its own environment', async () => {
    const rig = new CommandRig({ spawner: await readySpawner(ENVIRONMENT) });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const env = name === 'c' ? { ONLY_C: 'c' } : {};
      const printed = await rig.printed('echo "$MEOW_STEP ${ONLY_C-}"', { step: name, env });
      expect(printed).toBe(`${name} ${name === 'c' ? 'c' : ''}`.trim());
    }
    await rig.close();
  });
});

async function readySpawner(environment: Readonly<Record<string, string>>): Promise<Spawner> {
  const spawner = new Spawner(environment);
  spawner.launch();
  while (!spawner.ready) await setImmediate();
  return spawner;
}
