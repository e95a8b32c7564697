// How agents end, and who is notified: host/3, and kill.

import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { present } from '../../src/base/errors.ts';
import { AgentRig, failedWith, RUN_ENDS, SUCCESS } from './agent-rig.ts';
import { appears, gone } from './driver-command-rig.ts';

const SCRIPT = `
[[on]]
prompt = "crash"
do = [{ say = "oh" }, { crash = 3 }]
[[on]]
prompt = "killed"
do = [{ crash = "SIGKILL" }]
[[on]]
prompt = "deaf"
do = [{ hang = "hard" }]
[[on]]
prompt = "server"
do = [{ run = "setsid sh -c 'trap \\"\\" TERM; echo > server; sleep 1000; true' >/dev/null 2>&1 &" }, { say = "serving" }]
`;

let rig: AgentRig;
beforeEach(async () => {
  rig = new AgentRig({ script: SCRIPT });
  await rig.spawned('worker');
});
afterEach(() => rig.close());

describe('an agent that exits by itself', () => {
  test('is reported with its exit code and its last lines', async () => {
    const outcome = rig.start(rig.attending('worker'));
    void rig.start(rig.prompting('worker', 'crash'));
    expect(await outcome).toMatchObject({
      failure: {
        kind: 'agent-crashed',
        message: 'agent worker exited with status 3',
        code: 3,
        output: expect.stringMatching(/oh$/) as unknown,
      },
    });
  });

  test('is reported with the signal that killed it', async () => {
    const outcome = rig.start(rig.attending('worker'));
    void rig.start(rig.prompting('worker', 'killed'));
    expect(await outcome).toMatchObject({
      failure: { kind: 'agent-crashed', code: 137, message: expect.stringContaining('SIGKILL') as unknown },
    });
  });

  test('is reported even if it exited before anybody watched it', async () => {
    void rig.start(rig.prompting('worker', 'crash'));
    await gone(rig.leader('worker'));
    expect(await rig.start(rig.attending('worker'))).toMatchObject(failedWith('agent-crashed'));
  });

  test.each(['this engine', 'an earlier engine'])('is noticed quickly, when started by %s', async (engine) => {
    if (engine === 'an earlier engine') rig.nextLife();
    const outcome = rig.find(rig.attending('worker'));
    // The polling interval has reached its maximum.
    await pause(1_500);
    process.kill(-rig.leader('worker'), 'SIGKILL');
    expect(await outcome).toMatchObject(failedWith('agent-crashed'));
  });

  test('is reported at once if it recorded its exit code, also to an engine that found it', async () => {
    rig.nextLife();
    const outcome = rig.find(rig.attending('worker'));
    void rig.start(rig.prompting('worker', 'crash'));
    expect(await outcome).toMatchObject({ failure: { kind: 'agent-crashed', code: 3 } });
  });

  test('is killed completely if only its shell was killed', async () => {
    const outcome = rig.start(rig.attending('worker'));
    process.kill(rig.leader('worker'), 'SIGKILL');
    expect(await outcome).toMatchObject(failedWith('agent-crashed'));
    expect(rig.left()).toEqual([]);
  });

  test('while no engine was watching is lost', async () => {
    const pid = rig.leader('worker');
    process.kill(-pid, 'SIGKILL');
    await gone(pid);
    rig.nextLife();
    expect(await rig.find(rig.attending('worker'))).toMatchObject(failedWith('lost'));
  });
});

test('an agent that is no longer watched is left alone', async () => {
  const outcome = rig.start(rig.attending('worker'));
  rig.driver.stop('@worker#1', RUN_ENDS);
  expect(await outcome).toMatchObject(failedWith('stopped'));
  expect(rig.left()).toHaveLength(2);
});

describe('an agent that is killed', () => {
  test('exits, and its watcher learns that we killed it', async () => {
    const attended = rig.start(rig.attending('worker'));
    expect(await rig.start(rig.killing('worker'))).toMatchObject(SUCCESS);
    expect(rig.left()).toEqual([]);
    expect(await attended).toMatchObject(SUCCESS);
  });

  test('exits even if it ignores signals', async () => {
    void rig.start(rig.prompting('worker', 'deaf'));
    await rig.says('worker', 'hangs');
    expect(await rig.start(rig.killing('worker', 50))).toMatchObject(SUCCESS);
    expect(rig.left()).toEqual([]);
  });

  test('has its grace period, unless force is requested', async () => {
    void rig.start(rig.prompting('worker', 'deaf'));
    await rig.says('worker', 'hangs');
    const effect = rig.killing('worker');
    const outcome = rig.start(effect);
    await pause(100);
    expect(rig.left()).not.toEqual([]);
    rig.driver.stop(effect.id, { force: true, why: 'run-ending' });
    expect(await outcome).toMatchObject(SUCCESS);
    expect(rig.left()).toEqual([]);
  });

  test('is killed with all its processes', async () => {
    void rig.start(rig.prompting('worker', 'server'));
    await appears(rig.path('server'));
    expect(await rig.start(rig.killing('worker', 50))).toMatchObject(SUCCESS);
    expect(rig.left()).toEqual([]);
  });

  test('can be started again', async () => {
    await rig.start(rig.killing('worker'));
    expect(await rig.start(rig.prompting('worker', 'go'))).toMatchObject(failedWith('agent-not-found'));
    await rig.spawned('worker', { id: 'second#1' });
    void rig.start(rig.prompting('worker', 'go', { id: 'task#1' }));
    await rig.called('task|done');
  });

  test('by an engine that found it exits as well', async () => {
    rig.nextLife();
    const attended = rig.find(rig.attending('worker'));
    expect(await rig.find(rig.killing('worker'))).toMatchObject(SUCCESS);
    expect(await attended).toMatchObject(SUCCESS);
  });

  test('by an engine that died meanwhile is not lost', async () => {
    const effect = rig.killing('worker');
    await rig.start(effect);
    rig.nextLife();
    expect(await rig.find(rig.attending('worker'))).toMatchObject(SUCCESS);
    expect(await rig.find(effect)).toMatchObject(SUCCESS);
  });

  test('does not affect other agents', async () => {
    await rig.spawned('other');
    await rig.start(rig.killing('worker'));
    expect(rig.left()).toHaveLength(2);
    void rig.start(rig.prompting('other', 'go', { id: 'task#1' }));
    await rig.called('task|done');
  });
});

test.each(['nobody', ''])('killing an agent that was never started (%j) succeeds', async (name) => {
  expect(await rig.start(rig.killing(name))).toMatchObject(SUCCESS);
});

test('an agent exits by itself if its run folder is deleted', async () => {
  const pids = rig.left();
  await rig.close();
  for (const pid of pids) await gone(present(pid, 'a pid'));
  expect(existsSync(rig.folder)).toBe(false);
});
