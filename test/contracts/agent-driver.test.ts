// Starting agents: agent/1 and host/1.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { SIM_SCRIPT } from '../../src/drivers/agent/sim-host.ts';
import type { Outcome } from '../../src/ir/effect.ts';
import type { Outputs } from '../../src/ir/output.ts';
import { AgentRig, failedWith, SUCCESS } from './agent-rig.ts';
import { driverContract } from './driver.ts';

driverContract('the driver of agents, where it starts them,', () => Promise.resolve(new AgentRig()));

let rig: AgentRig;
beforeEach(() => {
  rig = new AgentRig();
});
afterEach(() => rig.close());

const outputsOf = (outcome: Outcome): Outputs => (outcome.kind === 'success' ? outcome.outputs : {});

describe('an agent that is started', () => {
  test('is reported with its folder and its session', async () => {
    mkdirSync(rig.path('deep'));
    const outcome = await rig.start(rig.spawning('worker', { cwd: 'deep' }));
    expect(outcome).toMatchObject({
      kind: 'success',
      outputs: { agent: 'worker', adapter: 'sim', workdir: rig.path('deep'), terminal: null },
      session: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
    });
    expect(outcome).toMatchObject({ outputs: { session_id: (outcome as { session: unknown }).session } });
  });

  test('continues the given session', async () => {
    expect(await rig.spawned('worker', { resumeSession: 'abc' })).toMatchObject({ session: 'abc' });
  });

  test('has the variables of its run in its environment, and no step of another agent', async () => {
    const env = { MINE: 'x', MEOW_AGENT: 'somebody else' };
    const script = '[[on]]\ndo = [{ run = "env > environment" }, { done = true }]';
    await using own = { rig: new AgentRig({ script }), [Symbol.asyncDispose]: () => own.rig.close() };
    await own.rig.spawned('worker', { env });
    void own.rig.start(own.rig.prompting('worker', 'go', { id: 'task#1' }));
    await own.rig.called('task|done');
    const lines = readFileSync(own.rig.path('environment'), 'utf8').split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'MINE=x',
        'MEOW_AGENT=worker',
        `MEOW_WORKFLOW=${own.rig.runId}`,
        `MEOW_ORCH_SOCK=${own.rig.options.socket}`,
        `MEOW_INBOX=${own.rig.options.inbox}`,
        'MEOW_STEP=task',
      ]),
    );
    expect(lines.filter((line) => line.startsWith('MEOW_ATTEMPT'))).toEqual([]);
  });

  test('may have any name', async () => {
    const name = '../a b/ö"';
    await rig.spawned(name);
    void rig.start(rig.prompting(name, 'go', { id: 'task#1' }));
    await rig.called('task|done');
  });

  test('is private to its user', async () => {
    await rig.spawned('worker');
    for (const name of ['', 'start.json', 'status', 'stdout', 'mail', 'ready']) {
      expect(statSync(rig.startFile('worker', name)).mode & 0o077, name).toBe(0);
    }
  });
});

describe('an agent is not started', () => {
  test('if its folder is missing', async () => {
    expect(await rig.start(rig.spawning('worker', { cwd: 'nowhere' }))).toMatchObject({
      failure: {
        kind: 'spawn-failed',
        message: expect.stringContaining(`${rig.path('nowhere')} does not exist`) as unknown,
      },
    });
  });

  test('if its adapter is unknown; the error lists the known ones', async () => {
    expect(await rig.start(rig.spawning('worker', { adapter: 'clod' }))).toMatchObject({
      failure: { kind: 'spawn-failed', message: expect.stringMatching(/no adapter "clod": there is sim/) as unknown },
    });
  });

  test('if its name has control characters, which no message may contain', async () => {
    const message = 'the agent could not be started: the name "a\\nb" contains control characters';
    expect(await rig.start(rig.spawning('a\nb'))).toMatchObject({ failure: { kind: 'spawn-failed', message } });
  });

  test('if an agent of its name is running', async () => {
    await rig.spawned('worker');
    expect(await rig.start(rig.spawning('worker', { id: 'again#1' }))).toMatchObject({
      failure: { kind: 'spawn-failed', message: expect.stringContaining('started by spawn-worker#1') as unknown },
    });
    rig.nextLife();
    expect(await rig.start(rig.spawning('worker', { id: 'again#2' }))).toMatchObject(failedWith('spawn-failed'));
  });

  test('if the folder of its run is not writable', async () => {
    writeFileSync(`${rig.runFolder}/agents`, 'a file where a folder should be');
    expect(await rig.start(rig.spawning('worker'))).toMatchObject(failedWith('spawn-failed'));
  });

  test('if it exits before it is ready; the error has its last lines', async () => {
    await using own = {
      rig: new AgentRig({ command: ['sh', '-c', 'echo no account >&2; exit 3'] }),
      [Symbol.asyncDispose]: () => own.rig.close(),
    };
    expect(await own.rig.start(own.rig.spawning('worker'))).toMatchObject({
      failure: { kind: 'spawn-failed', code: 3, output: 'no account' },
    });
  });

  test('if it is not ready in time; then nothing of it remains', async () => {
    await using own = {
      rig: new AgentRig({ command: ['sh', '-c', "trap '' TERM; sleep 1000; true"], readyMs: 50 }),
      [Symbol.asyncDispose]: () => own.rig.close(),
    };
    expect(await own.rig.start(own.rig.spawning('worker'))).toMatchObject(failedWith('spawn-failed'));
    expect(own.rig.left()).toEqual([]);
  });

  test('if its script cannot be read; the error has the position', async () => {
    await using own = {
      rig: new AgentRig({ script: '[[on]]\ndo = [{ sya = "x" }]' }),
      [Symbol.asyncDispose]: () => own.rig.close(),
    };
    expect(await own.rig.start(own.rig.spawning('worker'))).toMatchObject({
      failure: { kind: 'spawn-failed', output: expect.stringContaining('sim.toml:2:7:') as unknown },
    });
  });
});

describe('after a restart', () => {
  test('a running agent is found, with its session', async () => {
    const first = outputsOf(await rig.spawned('worker'));
    rig.nextLife();
    expect(outputsOf(await rig.find(rig.spawning('worker')))).toEqual(first);
    expect(rig.left()).toHaveLength(2);
  });

  test('an agent whose start was interrupted keeps its session', async () => {
    const first = outputsOf(await rig.spawned('worker'));
    const ended = rig.start(rig.attending('worker'));
    await rig.lose({ ...rig.spawning('worker'), step: 'worker' });
    await ended;
    // As if the engine had died between the record and the start.
    for (const name of ['status', 'ready']) rmSync(rig.startFile('worker', name));
    rig.nextLife();
    expect(outputsOf(await rig.find(rig.spawning('worker')))).toEqual(first);
  });

  test('an agent that died is lost, and can be started again in its session', async () => {
    const { session_id: session } = outputsOf(await rig.spawned('worker'));
    await rig.lose({ ...rig.spawning('worker'), step: 'worker' });
    rig.nextLife();
    expect(await rig.find(rig.spawning('worker'))).toMatchObject(failedWith('lost'));
    const revival = { id: '@spawn worker#2', resumeSession: session as string };
    expect(await rig.start(rig.spawning('worker', revival))).toMatchObject({ ...SUCCESS, session });
  });

  test('an agent that is stopped before anybody searched for it exits', async () => {
    await rig.spawned('worker');
    rig.nextLife();
    const outcome = rig.find(rig.spawning('worker'));
    rig.driver.stop('spawn-worker#1', { force: false, why: 'run-ending' });
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(rig.left()).toEqual([]);
  });

  test('a script that was changed in the folder of the run is the old one again', async () => {
    const script = '[[on]]\ndo = [{ done = { first = true } }]';
    await using own = { rig: new AgentRig({ script }), [Symbol.asyncDispose]: () => own.rig.close() };
    await own.rig.spawned('a');
    writeFileSync(join(own.rig.runFolder, SIM_SCRIPT), '');
    await own.rig.spawned('b');
    void own.rig.start(own.rig.prompting('b', 'go', { id: 'task#1' }));
    await own.rig.called('task|done --json {"first":true}');
  });
});

test('concurrent engines start one agent', async () => {
  const outcomes = Array.from({ length: 4 }, () => {
    rig.nextLife();
    return rig.start(rig.spawning('worker'));
  });
  const sessions = (await Promise.all(outcomes)).map((outcome) =>
    outcome.kind === 'success' ? outcome.session : null,
  );
  expect(sessions).not.toContain(null);
  expect(rig.timesBegun({ ...rig.spawning('worker'), step: 'worker' })).toBe(1);
  expect(rig.left()).toHaveLength(2);
});
