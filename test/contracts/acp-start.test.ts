// ACP agents: their start, their session, and their end.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Outcome } from '../../src/ir/effect.ts';
import { AcpRig, adapterWith, AGENT_COMMAND } from '../fixtures/acp/rig.ts';
import { failedWith, SUCCESS } from './agent-rig.ts';
import { driverContract } from './driver.ts';

driverContract('the driver of agents that speak ACP', () => Promise.resolve(new AcpRig()));

let rig: AcpRig;
beforeEach(() => {
  rig = new AcpRig();
});
afterEach(() => rig.close());

const failureOf = (outcome: Outcome): string => (outcome.kind === 'failure' ? outcome.failure.message : 'no failure');
const capabilities = (value: unknown): Record<string, string> => ({ CAPABILITIES: JSON.stringify(value) });

describe('an agent that is started', () => {
  test('gets a handshake, and a session in its folder with a way to report', async () => {
    const session = await rig.spawned('worker');
    const [hello, begin] = rig.received();
    expect(hello).toMatchObject({
      id: 'initialize',
      params: {
        protocolVersion: 1,
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      },
    });
    const { socket, inbox, binFolder } = rig.options;
    const args = ['mcp', '--agent', 'worker', '--workflow', rig.runId, '--socket', socket, '--inbox', inbox];
    expect(begin).toMatchObject({
      method: 'session/new',
      params: {
        cwd: rig.folder,
        mcpServers: [{ name: 'meow', command: join(binFolder ?? '', 'meow'), args, env: [] }],
      },
    });
    const attended = new Promise((resolve) => {
      rig.driver.start(
        rig.attending('worker'),
        () => undefined,
        (progress) => {
          resolve(progress);
          return Promise.resolve();
        },
      );
    });
    expect(await attended).toEqual({ session });
  });

  test('gets the spawn_args of the workflow', async () => {
    await rig.spawned('worker', { args: "--model 'x y' # the best" });
    expect(rig.argumentsOf()).toEqual(['--model', 'x y']);
  });

  test('may require a login, and says how', async () => {
    const outcome = await rig.start(rig.spawning('worker', { env: { LOGIN: 'You must log in' } }));
    expect(outcome).toMatchObject(failedWith('spawn-failed'));
    expect(failureOf(outcome)).toContain('You must log in (it offers these logins: Log in with a browser)');
    expect(rig.left()).toEqual([]);
  });

  test('with another protocol version is refused', async () => {
    const outcome = await rig.start(rig.spawning('worker', { env: { VERSION: '7' } }));
    expect(failureOf(outcome)).toContain('it speaks version 7 of the Agent Client Protocol');
  });

  test('that exits immediately is reported with its last lines', async () => {
    const outcome = await rig.start(rig.spawning('worker', { env: { FAILS: '9' } }));
    expect(outcome).toMatchObject({ failure: { kind: 'spawn-failed', code: 9, output: 'it cannot begin' } });
  });

  test('whose program does not exist is reported', async () => {
    await rig.close();
    rig = new AcpRig({ adapter: adapterWith({ command: 'no-such-agent --acp' }) });
    expect(await rig.start(rig.spawning('worker'))).toMatchObject({ failure: { kind: 'spawn-failed', code: 127 } });
  });

  test('whose command has a placeholder without a value is not started', async () => {
    await rig.close();
    const command = { parts: ['agent ', { path: ['session_id'], quote: [{ kind: 'bare' as const }] }] };
    rig = new AcpRig({ adapter: adapterWith({ command }) });
    const outcome = await rig.start(rig.spawning('worker'));
    expect(failureOf(outcome)).toContain('{{session_id}} has no value here');
  });

  test('that never answers times out', async () => {
    await rig.close();
    rig = new AcpRig({ readyMs: 100 });
    const outcome = await rig.start(rig.spawning('worker', { env: { HOLD: 'never' } }));
    expect(failureOf(outcome)).toContain('it did not answer');
    expect(rig.left()).toEqual([]);
  });
});

describe('an agent that continues a session', () => {
  const resumeSession = 'session-1';

  test('is asked to resume it if it can', async () => {
    const env = capabilities({ loadSession: true, sessionCapabilities: { resume: {} } });
    expect(await rig.spawned('worker', { resumeSession, env })).toBe(resumeSession);
    expect(rig.received('session/resume')).toMatchObject([{ params: { sessionId: resumeSession, cwd: rig.folder } }]);
  });

  test('is asked to load it if it can only do that, and the repeated messages are not an answer', async () => {
    const env = capabilities({ loadSession: true });
    expect(await rig.spawned('worker', { resumeSession, env })).toBe(resumeSession);
    expect(rig.received('session/load')).toHaveLength(1);
    const outcome = await rig.start(rig.prompting('worker', [{ cost: 3 }, { stop: 'end_turn' }]));
    // It is unknown whether the cost is that of this process or of the whole session.
    expect(outcome).toMatchObject({ outputs: { result: '' }, usage: { usd: null } });
    const next = await rig.start(rig.prompting('worker', [{ cost: 3.5 }]));
    expect(next).toMatchObject({ usage: { usd: 0.5 } });
  });

  test('is refused if it can do neither', async () => {
    const outcome = await rig.start(rig.spawning('worker', { resumeSession }));
    expect(failureOf(outcome)).toContain('it offers neither session/resume nor session/load');
  });

  test('continues in a fork if it can', async () => {
    const env = capabilities({ loadSession: true, sessionCapabilities: { fork: {} } });
    expect(await rig.spawned('worker', { resumeSession, forks: true, env })).not.toBe(resumeSession);
    expect(rig.received('session/fork')).toMatchObject([{ params: { sessionId: resumeSession } }]);
  });

  test('does not continue in a fork if it cannot', async () => {
    const env = capabilities({ loadSession: true, sessionCapabilities: { resume: {} } });
    const outcome = await rig.start(rig.spawning('worker', { resumeSession, forks: true, env }));
    expect(failureOf(outcome)).toContain('it does not offer session/fork');
  });
});

describe('an agent that is stopped', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('receives %s, and leaves nothing behind', async (signal) => {
    await rig.close();
    rig = new AcpRig({
      adapter: adapterWith({ signal, command: `trap 'echo ${signal} >>signals' ${signal.slice(3)}; ${AGENT_COMMAND}` }),
    });
    await rig.spawned('worker');
    const attended = rig.start(rig.attending('worker'));
    expect(await rig.start(rig.killing('worker'))).toMatchObject(SUCCESS);
    expect(await attended).toMatchObject(SUCCESS);
    expect(rig.left()).toEqual([]);
    expect(readFileSync(rig.path('signals'), 'utf8')).toBe(`${signal}\n`);
    expect(existsSync(rig.startFile('worker', 'acp-in'))).toBe(false);
  });
});
