import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { present } from '../../src/base/assert.ts';
import { findLauncher } from '../../src/drivers/launcher.ts';
import type { Launcher } from '../../src/drivers/launcher.ts';
import { CommandRig, from } from './driver-command-rig.ts';
import { driverContract, start } from './driver.ts';

const ENVIRONMENT = { PATH: process.env['PATH'] ?? '', PERL5OPT: '-Mnonsense', ODD: 'a\nb=c', GONE: 'x' };

driverContract('the driver of commands, without a launcher', async () => new CommandRig({ launcher: null }));

driverContract(
  'the driver of commands, with a launcher',
  async () => new CommandRig({ launcher: await readyLauncher() }),
);

describe('the launcher', () => {
  test('starts commands as they are started without it', async () => {
    const script = 'echo "$0 $# $ODD $PERL5OPT $STEP_VAR"; umask; ls /proc/self/fd | wc -l';
    const both = [null, await readyLauncher()].map(async (launcher) => {
      const rig = new CommandRig({ launcher, environment: ENVIRONMENT });
      const wish = { env: { STEP_VAR: 'x\n\ny' }, captures: [from('stdout')], step: 'same' };
      const outcome = await rig.run(script, wish);
      await rig.close();
      return outcome;
    });
    const [without, withLauncher] = await Promise.all(both);
    expect(without).toMatchObject({ kind: 'success' });
    expect(withLauncher).toEqual(without);
  });

  test('gives each command a session of its own', async () => {
    const rig = new CommandRig({ launcher: await readyLauncher() });
    const effect = rig.command('ps -o pgid=,sid= -p $(sh -c "echo \\$PPID")', { captures: [from('stdout')] });
    const outcome = await start(rig, effect);
    const [leader = ''] = readFileSync(rig.stepFile(effect, 'status'), 'utf8').split(' ');
    expect(outcome).toMatchObject({
      outputs: { stdout: expect.stringMatching(new RegExp(`^${leader} +${leader}$`)) as unknown },
    });
    await rig.close();
  });

  test('that is killed leaves what it started running, and the driver goes on without it', async () => {
    const launcher = await readyLauncher();
    const rig = new CommandRig({ launcher });
    const effect = rig.effect('holds');
    const outcome = start(rig, effect);
    await rig.begun(effect);
    process.kill(launcher.pid, 'SIGKILL');
    while (launcher.ready) await setImmediate();
    expect(await rig.run('exit 3')).toMatchObject({ failure: { code: 3 } });
    await rig.release(effect);
    expect(await outcome).toMatchObject({ kind: 'success' });
    expect(rig.timesBegun(effect)).toBe(1);
    await rig.close();
  });
});

async function readyLauncher(): Promise<Launcher> {
  const launcher = present(findLauncher(ENVIRONMENT), 'there is no perl here');
  while (!launcher.ready) await setImmediate();
  return launcher;
}
