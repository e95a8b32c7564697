// How turns are ended by us: because they are stopped, or because they give no sign of life.

import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';

import { processActivity } from '../../src/drivers/agent/headless/idle-watch.ts';
import { markerOf } from '../../src/drivers/environment.ts';
import { failedWith, RUN_ENDS, TIME_UP } from './agent-rig.ts';
import { appears, gone } from './driver-command-rig.ts';
import { outputsOf, shellAdapter, TurnRig } from './turn-rig.ts';

let rig: TurnRig;
afterEach(() => rig.close());

describe('a turn that is stopped', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'receives the signal of its adapter first: %s',
    async (signal) => {
      rig = new TurnRig(shellAdapter({ signal }));
      rig.pipe('hold');
      const name = signal.slice(3);
      const traps = `for name in INT TERM HUP; do trap "echo $name > got; TOTAL=0.2 error interrupted; exit 0" $name; done`;
      const effect = rig.turn(`${traps}; init; echo > there; while :; do sleep 0.05; done`);
      const outcome = rig.start(effect);
      await appears(rig.path('there'));
      rig.driver.stop(effect.id, TIME_UP);
      expect(await outcome).toMatchObject({
        failure: {
          kind: 'stopped',
          message: 'the agent was stopped',
          session: expect.any(String) as unknown,
          usage: { usd: 0.2 },
        },
      });
      expect(readFileSync(rig.path('got'), 'utf8')).toBe(`${name}\n`);
      expect(rig.left()).toEqual([]);
    },
  );

  test('is killed with its tools, in whatever session they are', async () => {
    rig = new TurnRig();
    const effect = rig.turn(
      "init; setsid sh -c 'echo $$ > tool; exec sleep 1000' & sleep 1000 & echo > there; trap 'exit 1' TERM; wait",
    );
    const outcome = rig.start(effect);
    await appears(rig.path('there'));
    const tool = Number(await appears(rig.path('tool')));
    rig.driver.stop(effect.id, RUN_ENDS);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    await gone(tool);
    expect(rig.left()).toEqual([]);
  });

  test('is killed with force after its grace period, or if it has none', async () => {
    rig = new TurnRig(shellAdapter(), { graceMs: 50 });
    const deaf = 'trap "" TERM INT HUP; init; echo > there; while :; do sleep 1000; done';
    const slow = rig.turn(deaf);
    const first = rig.start(slow);
    await appears(rig.path('there'));
    rig.driver.stop(slow.id, TIME_UP);
    expect(await first).toMatchObject(failedWith('stopped'));
    expect(rig.left()).toEqual([]);
    await rig.close();

    rig = new TurnRig(shellAdapter(), { graceMs: 600_000 });
    const other = rig.turn(deaf);
    const second = rig.start(other);
    await appears(rig.path('there'));
    rig.driver.stop(other.id, TIME_UP);
    rig.driver.stop(other.id, { force: true, why: 'timeout' });
    expect(await second).toMatchObject(failedWith('stopped'));
    expect(rig.left()).toEqual([]);
  });

  test('is stopped although it has forged a record of its exit', async () => {
    rig = new TurnRig();
    const effect = rig.turn('init; echo > there; sleep 1000');
    const outcome = rig.start(effect);
    await appears(rig.path('there'));
    appendFileSync(rig.turnFile(effect, 'status'), 'exit 0\n');
    rig.driver.stop(effect.id, TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(rig.left()).toEqual([]);
  });

  test('is known to have been stopped after a restart', async () => {
    rig = new TurnRig();
    const effect = rig.turn('init; echo > there; sleep 1000');
    const outcome = rig.start(effect);
    await appears(rig.path('there'));
    rig.driver.stop(effect.id, TIME_UP);
    await outcome;
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(failedWith('stopped'));
  });

  test('is known to have been stopped by an engine that died meanwhile, though its shell lives when its exit is recorded', async () => {
    rig = new TurnRig();
    const effect = rig.turn('init; echo > there; sleep 1000');
    void rig.start(effect);
    await appears(rig.path('there'));
    rig.nextLife();
    writeFileSync(rig.turnFile(effect, 'turn-end.json'), '{"how":"stopped"}');
    appendFileSync(rig.turnFile(effect, 'status'), 'exit 0\n');
    expect(await rig.find(effect)).toMatchObject(failedWith('stopped'));
    expect(rig.left()).toEqual([]);
  });
});

describe('a turn that is silent for too long', () => {
  const idleMs = 400;

  test('is killed, and reports that, with its output', async () => {
    rig = new TurnRig();
    const effect = rig.turn('init; say Thinking; setsid sleep 1000 & sleep 1000', { idleMs });
    const outcome = await rig.start(effect);
    expect(outcome).toMatchObject({
      failure: {
        kind: 'idle',
        message: 'the agent gave no sign of life for 400ms',
        output: 'Thinking',
        session: expect.any(String) as unknown,
        usage: { usd: null },
      },
    });
    expect(rig.left()).toEqual([]);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(failedWith('idle'));
  });

  test('is killed even if an earlier engine started it', async () => {
    rig = new TurnRig();
    rig.pipe('hold');
    const effect = rig.turn('init; echo > there; read -r line < hold.pipe', { idleMs });
    void rig.start({ ...effect, spec: { ...effect.spec, idleMs: null } as never });
    await appears(rig.path('there'));
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(failedWith('idle'));
  });

  test('is left alone while a tool that it called is silent', async () => {
    rig = new TurnRig();
    const outcome = await rig.run('init; tool_begins; sleep 1.5; tool_ends; result fine', { idleMs });
    expect(outputsOf(outcome)).toMatchObject({ result: 'fine' });
  });

  test('is left alone while its processes work, in whatever session', async () => {
    rig = new TurnRig();
    const busy = `setsid sh -c 'i=0; while [ ! -e enough ]; do i=$((i+1)); done' & sleep 1.5; echo > enough; wait; result fine`;
    expect(outputsOf(await rig.run(`init; ${busy}`, { idleMs }))).toMatchObject({ result: 'fine' });
  });

  test('is left alone as long as it prints something', async () => {
    rig = new TurnRig();
    const says = 'init; i=0; while [ $i -lt 20 ]; do i=$((i+1)); sleep 0.1; echo; done; result fine';
    const outcome = await rig.run(says, { idleMs: 1_500 });
    expect(outputsOf(outcome)).toMatchObject({ result: 'fine' });
  });
});

test('all processes with the marker give signs of life', async () => {
  rig = new TurnRig();
  const effect = rig.turn(
    `init; setsid sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; dd if=/dev/zero of=big bs=64k count=8 conv=fsync 2>/dev/null; echo > there; exec sleep 1000' & wait`,
  );
  const outcome = rig.start(effect);
  await appears(rig.path('there'));
  const signs = processActivity(markerOf(rig.options, effect.id));
  expect(signs?.cpu).toBeGreaterThan(0);
  expect(processActivity('nobody')).toEqual({ cpu: 0, written: 0 });
  rig.driver.stop(effect.id, RUN_ENDS);
  await outcome;
});
