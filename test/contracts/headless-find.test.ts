// Headless agents across restarts of the engine: the next engine finds what the previous one started.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Progress } from '../../src/ir/effect.ts';
import { failedWith, SUCCESS } from './agent-rig.ts';
import { appears } from './driver-command-rig.ts';
import { HeadlessRig, until } from './headless-rig.ts';

let rig: HeadlessRig;
beforeEach(async () => {
  rig = new HeadlessRig();
  await rig.spawned('worker');
});
afterEach(() => rig.close());

test('an agent is found again after a restart, in its session', async () => {
  rig.nextLife();
  const found = await rig.find(rig.spawning('worker'));
  expect(found).toMatchObject({ kind: 'success', session: expect.any(String) as unknown });
  const told: Progress[] = [];
  void rig.find(rig.attending('worker'), told);
  expect(await rig.start(rig.effect('succeeds'))).toMatchObject(SUCCESS);
  expect(told).toEqual([{ session: found.kind === 'success' ? found.session : null }]);
});

test('a delivered prompt is not delivered again, and its answer is accepted', async () => {
  const effect = rig.effect('holds');
  void rig.start(effect);
  await rig.begun(effect);
  rig.nextLife();
  await rig.release(effect);
  expect(await rig.find(effect)).toMatchObject({ outputs: { result: 'yes' }, usage: { usd: 0.5 } });
  rig.nextLife();
  expect(await rig.find(effect)).toMatchObject({ outputs: { result: 'yes' }, usage: { usd: 0.5 } });
  expect(rig.timesBegun(effect)).toBe(1);
});

test('a turn that is still running is awaited, and others wait for it', async () => {
  const effect = rig.effect('holds');
  void rig.start(effect);
  await rig.begun(effect);
  rig.nextLife();
  const outcome = rig.find(effect);
  const next = rig.effect('succeeds');
  const later = rig.start(next);
  await rig.release(effect);
  expect(await outcome).toMatchObject({ outputs: { result: 'yes' } });
  expect(await later).toMatchObject(SUCCESS);
  expect([rig.timesBegun(effect), rig.timesBegun(next)]).toEqual([1, 1]);
});

test('a prompt that was never delivered is delivered', async () => {
  const effect = rig.effect('succeeds');
  rig.nextLife();
  expect(await rig.find(effect)).toMatchObject(SUCCESS);
  expect(rig.timesBegun(effect)).toBe(1);
});

describe('an agent whose turn died with the engine', () => {
  test('is lost with it, and its processes are killed; started again, it continues its session', async () => {
    const script = "init; setsid sh -c 'echo $$ > tool; exec sleep 1000' & echo > there; sleep 1000";
    const effect = rig.prompting('worker', script);
    void rig.start(effect);
    await appears(rig.path('tool'));
    await appears(rig.path('there'));
    rig.nextLife();
    await rig.lose(effect);
    expect(await rig.find(rig.attending('worker'))).toMatchObject(failedWith('lost'));
    expect(await rig.find(effect)).toMatchObject(failedWith('lost'));
    await appears(rig.turnFile(effect, 'turn-end.json'));
    expect(rig.run.left()).toEqual([]);

    const again = await rig.start(rig.spawning('worker', { id: '@spawn worker#2', resumeSession: 'its' }));
    expect(again).toMatchObject({ kind: 'success', session: 'its' });
    const next = rig.prompting('worker', 'init; result "$1 $2"', { id: 'prompt-9#2' });
    expect(await rig.start(next)).toMatchObject({ outputs: { result: 'resume its' } });
  });

  test('under this engine fails its prompt, and takes the next', async () => {
    const effect = rig.effect('holds');
    const first = rig.start(effect);
    await rig.begun(effect);
    await rig.lose(effect);
    expect(await first).toMatchObject(failedWith('agent-crashed'));
    expect(await rig.start(rig.effect('succeeds'))).toMatchObject(SUCCESS);
    rig.nextLife();
    expect(await rig.find(rig.effect('succeeds'))).toMatchObject(SUCCESS);
  });

  test('while the next engine watched fails its prompt, and takes the next', async () => {
    const effect = rig.effect('holds');
    void rig.start(effect);
    await rig.begun(effect);
    rig.nextLife();
    const told: Progress[] = [];
    const found = rig.find(effect, told);
    await until(() => told.some(({ delivery }) => delivery === 'accepted'));
    await rig.lose(effect);
    expect(await found).toMatchObject(failedWith('agent-crashed'));
    expect(await rig.start(rig.effect('succeeds'))).toMatchObject(SUCCESS);
  });
});
