// Prompting agents: agent/2, agent/3, agent/4.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Outcome } from '../../src/ir/effect.ts';
import { AgentRig, expected, failedWith, RUN_ENDS, SUCCESS, TIME_UP } from './agent-rig.ts';
import { appears, gone } from './driver-command-rig.ts';

const HANGS = '[[on]]\nprompt = "hang"\ndo = [{ say = "begins" }, { hang = true }]\n';
const DEAF = '[[on]]\nprompt = "deaf"\ndo = [{ say = "begins" }, { hang = "hard" }]\n';
const LIMITED = `
[[on]]
prompt = "limit"
do = [{ limit = "resets at 5pm" }]
[[on]]
prompt = "pause"
do = [{ limit = "1h" }]
`;
const CRASHES = '[[on]]\nprompt = "crash"\ndo = [{ crash = 3 }]\n';

let rig: AgentRig;
beforeEach(async () => {
  rig = new AgentRig({ script: `${HANGS}${DEAF}${CRASHES}${LIMITED}` });
  await rig.spawned('worker');
});
afterEach(() => rig.close());

/** Settles with the answer, or with null if there is none yet. */
async function answerOf(outcome: Promise<Outcome>): Promise<Outcome | null> {
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return Promise.race([outcome, Promise.resolve(null)]);
}

describe('a prompt', () => {
  test('is shown with its declared outputs', async () => {
    void rig.start(rig.prompting('worker', 'Build it.', { id: 'build#1', expects: [expected('file', 'number')] }));
    await rig.called('build|done --json {"file":1}');
    expect(rig.transcript('worker')).toContain('> Build it.\n');
    expect(rig.transcript('worker')).toContain('>   meow done --output file=<number>\n');
  });

  test('is open until it is concluded', async () => {
    const outcome = rig.start(rig.prompting('worker', 'go', { id: 'task#1' }));
    await rig.called('task|done');
    expect(await answerOf(outcome)).toBeNull();
    rig.driver.conclude?.('task#1');
    expect(await outcome).toMatchObject({ kind: 'success', outputs: {} });
  });

  test('that is concluded before it was taken is answered', async () => {
    const outcome = rig.start(rig.prompting('worker', 'go', { id: 'task#1' }));
    rig.driver.conclude?.('task#1');
    expect(await outcome).toMatchObject(SUCCESS);
  });

  test('without a report is answered when the agent has it', async () => {
    const effect = rig.prompting('worker', '/compact', { mode: 'fire-forget' });
    expect(await rig.start(effect)).toMatchObject(SUCCESS);
    await rig.says('worker', '> /compact');
    expect(rig.calls()).toEqual([]);
  });

  test('is delivered after earlier ones', async () => {
    const script = '[[on]]\ndo = [{ wait = "20ms" }, { done = true }]';
    await using own = { rig: new AgentRig({ script }), [Symbol.asyncDispose]: () => own.rig.close() };
    await own.rig.spawned('worker');
    for (const step of ['a', 'b', 'c']) void own.rig.start(own.rig.prompting('worker', 'go', { id: `${step}#1` }));
    await own.rig.called('c|done');
    expect(own.rig.calls()).toEqual(['a|done', 'b|done', 'c|done']);
  });

  test('for an agent that was never started fails', async () => {
    expect(await rig.start(rig.prompting('nobody', 'go'))).toMatchObject(failedWith('agent-not-found'));
  });

  test('for an agent that is gone fails', async () => {
    const crashed = rig.start(rig.attending('worker'));
    void rig.start(rig.prompting('worker', 'crash'));
    await crashed;
    expect(await rig.start(rig.prompting('worker', 'go'))).toMatchObject(failedWith('agent-not-found'));
  });

  test('for an agent that died with an earlier engine is lost, because the agent can be started again', async () => {
    process.kill(-rig.leader('worker'), 'SIGKILL');
    await gone(rig.leader('worker'));
    rig.nextLife();
    expect(await rig.start(rig.prompting('worker', 'go'))).toMatchObject(failedWith('lost'));
  });

  test('for an agent that we stopped fails, also after a restart', async () => {
    await rig.start(rig.killing('worker'));
    expect(await rig.start(rig.prompting('worker', 'go'))).toMatchObject(failedWith('agent-not-found'));
    rig.nextLife();
    expect(await rig.start(rig.prompting('worker', 'go'))).toMatchObject(failedWith('agent-not-found'));
  });

  test('that is not taken in time is withdrawn', async () => {
    await using own = {
      rig: new AgentRig({ script: DEAF, deliveryMs: 100 }),
      [Symbol.asyncDispose]: () => own.rig.close(),
    };
    await own.rig.spawned('worker');
    void own.rig.start(own.rig.prompting('worker', 'deaf'));
    await own.rig.says('worker', 'hangs');
    const late = own.rig.prompting('worker', 'go', { id: 'late#1' });
    expect(await own.rig.start(late)).toMatchObject(failedWith('not-delivered'));
    expect(readdirSync(own.rig.startFile('worker', 'mail'))).toContain('000002-late#1.withdrawn');
    own.rig.nextLife();
    expect(await own.rig.find(late)).toMatchObject(failedWith('not-delivered'));
  });

  test('that cannot be written is not delivered', async () => {
    writeFileSync(`${rig.runFolder}/agents/worker/prompts`, 'a file where a folder should be');
    expect(await rig.start(rig.prompting('worker', 'go'))).toMatchObject(failedWith('not-delivered'));
  });
});

describe('the acceptance of a prompt', () => {
  test('is reported when the agent starts with it, not while it is queued', async () => {
    expect(rig.driver.hasTaken('worker', 'task#1')).toBe(false);
    void rig.start(rig.prompting('worker', 'hang', { id: 'task#1' }));
    await rig.says('worker', 'hangs');
    expect(rig.driver.hasTaken('worker', 'task#1')).toBe(true);
    void rig.start(rig.prompting('worker', 'go', { id: 'next#1' }));
    await appears(rig.startFile('worker', 'mail/000002-next#1.taken'));
    expect(rig.driver.hasTaken('worker', 'next#1')).toBe(false);
    void rig.start(rig.prompting('worker', 'C-c', { mode: 'fire-forget' }));
    await rig.called('next|done');
    expect(rig.driver.hasTaken('worker', 'next#1')).toBe(true);
  });

  test('is known after a restart', async () => {
    void rig.start(rig.prompting('worker', 'hang', { id: 'task#1' }));
    await rig.says('worker', 'hangs');
    rig.nextLife();
    expect(rig.driver.hasTaken('worker', 'task#1')).toBe(true);
    expect(rig.driver.hasTaken('worker', 'task#2')).toBe(false);
    expect(rig.driver.hasTaken('nobody', 'task#1')).toBe(false);
  });
});

describe('an agent that has reached a limit', () => {
  test('parks its step until a resume if the reset is unknown, and can be prompted again', async () => {
    const outcome = await rig.start(rig.prompting('worker', 'limit', { id: 'task#1' }));
    const message = 'agent worker has reached a usage limit: resets at 5pm';
    expect(outcome).toMatchObject({ failure: { kind: 'limit-reached', message, retryAt: null, parks: true } });
    void rig.start(rig.prompting('worker', 'go', { id: 'next#1' }));
    await rig.called('next|done');
  });

  test('reports the reset time if it knows it', async () => {
    const before = Date.now();
    const outcome = await rig.start(rig.prompting('worker', 'pause', { id: 'task#1' }));
    if (outcome.kind !== 'failure') throw new Error(outcome.kind);
    expect(outcome.failure).toMatchObject({
      kind: 'limit-reached',
      message: 'agent worker has reached a usage limit: ends in 1h',
    });
    expect(outcome.failure.retryAt).toBeGreaterThanOrEqual(before + 3_600_000);
    expect(outcome.failure.retryAt).toBeLessThanOrEqual(Date.now() + 3_600_000);
  });

  test('also fails it after a restart', async () => {
    const effect = rig.prompting('worker', 'limit', { id: 'task#1' });
    void rig.start(effect);
    await rig.says('worker', 'usage limit reached');
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(failedWith('limit-reached'));
  });
});

describe('a key', () => {
  test.each(['Escape', 'C-c'])('%s interrupts the agent', async (key) => {
    const outcome = rig.start(rig.prompting('worker', 'hang', { id: 'task#1' }));
    await rig.says('worker', 'hangs');
    expect(await rig.start(rig.prompting('worker', key, { mode: 'fire-forget' }))).toMatchObject(SUCCESS);
    expect(rig.transcript('worker')).toContain('[interrupted]');
    expect(await answerOf(outcome)).toBeNull();
    void rig.start(rig.prompting('worker', 'go', { id: 'next#1' }));
    await rig.called('next|done');
  });

  test('that the agent does not know is accepted', async () => {
    expect(await rig.start(rig.prompting('worker', 'Up', { mode: 'fire-forget' }))).toMatchObject(SUCCESS);
    expect(rig.transcript('worker')).toContain('[Up]');
  });

  test('is text if a report is expected', async () => {
    void rig.start(rig.prompting('worker', 'Escape', { id: 'task#1' }));
    await rig.called('task|done');
    expect(rig.transcript('worker')).toContain('> Escape');
  });
});

describe('stopping a prompt', () => {
  test('at its timeout interrupts the agent, and answers when the agent is idle', async () => {
    const outcome = rig.start(rig.prompting('worker', 'hang', { id: 'task#1' }));
    await rig.says('worker', 'hangs');
    rig.driver.stop('task#1', TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(rig.transcript('worker')).toContain('[interrupted]');
    void rig.start(rig.prompting('worker', 'go', { id: 'next#1' }));
    await rig.called('next|done');
  });

  test('at its timeout waits no longer than allowed', async () => {
    await using own = {
      rig: new AgentRig({ script: DEAF, graceMs: 50 }),
      [Symbol.asyncDispose]: () => own.rig.close(),
    };
    await own.rig.spawned('worker');
    const outcome = own.rig.start(own.rig.prompting('worker', 'deaf', { id: 'task#1' }));
    await own.rig.says('worker', 'hangs');
    own.rig.driver.stop('task#1', TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(own.rig.left()).not.toEqual([]);
  });

  test('can be made more urgent', async () => {
    const outcome = rig.start(rig.prompting('worker', 'deaf', { id: 'task#1' }));
    await rig.says('worker', 'hangs');
    rig.driver.stop('task#1', TIME_UP);
    rig.driver.stop('task#1', { ...TIME_UP, force: true });
    expect(await outcome).toMatchObject(failedWith('stopped'));
  });

  test('at the end of the run leaves the agent working', async () => {
    const outcome = rig.start(rig.prompting('worker', 'hang', { id: 'task#1' }));
    await rig.says('worker', 'hangs');
    rig.driver.stop('task#1', RUN_ENDS);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(rig.transcript('worker')).not.toContain('[interrupted]');
  });

  test('before its delivery prevents the delivery', async () => {
    const outcome = rig.start(rig.prompting('worker', 'go', { id: 'task#1' }));
    rig.driver.stop('task#1', RUN_ENDS);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(readdirSync(rig.startFile('worker', 'mail'))).toEqual([]);
  });
});

describe('stopping a prompt that the agent has not taken', () => {
  test.each([TIME_UP, RUN_ENDS])('withdraws it (%j)', async (how) => {
    void rig.start(rig.prompting('worker', 'deaf'));
    await rig.says('worker', 'hangs');
    const outcome = rig.start(rig.prompting('worker', 'go', { id: 'late#1' }));
    await appears(rig.startFile('worker', 'mail/000002-late#1.json'));
    rig.driver.stop('late#1', how);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(readdirSync(rig.startFile('worker', 'mail'))).toContain('000002-late#1.withdrawn');
  });
});

describe('a prompt whose agent dies', () => {
  test('is not answered: the agent’s watcher reports the death', async () => {
    const outcome = rig.start(rig.prompting('worker', 'crash', { id: 'task#1' }));
    expect(await rig.start(rig.attending('worker'))).toMatchObject(failedWith('agent-crashed'));
    expect(await answerOf(outcome)).toBeNull();
    rig.driver.stop('task#1', TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
  });

  test('can still be concluded: the agent may have reported just before it died', async () => {
    const outcome = rig.start(rig.prompting('worker', 'crash', { id: 'task#1' }));
    await rig.start(rig.attending('worker'));
    rig.driver.conclude?.('task#1');
    expect(await outcome).toMatchObject(SUCCESS);
  });

  test('is not delivered if it needs no report and was not taken', async () => {
    void rig.start(rig.prompting('worker', 'deaf'));
    await rig.says('worker', 'hangs');
    const outcome = rig.start(rig.prompting('worker', '/compact', { mode: 'fire-forget' }));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    process.kill(-rig.leader('worker'), 'SIGKILL');
    expect(await outcome).toMatchObject(failedWith('not-delivered'));
  });
});

describe('after a restart, a prompt', () => {
  const given = (): number => rig.transcript('worker').split('> hang').length - 1;

  test('that was delivered is not delivered again', async () => {
    const effect = rig.prompting('worker', 'hang', { id: 'task#1' });
    void rig.start(effect);
    await rig.says('worker', 'hangs');
    rig.nextLife();
    const outcome = rig.find(effect);
    void rig.find(rig.prompting('worker', 'C-c', { mode: 'fire-forget' }));
    await rig.says('worker', '[interrupted]');
    rig.driver.conclude?.('task#1');
    expect(await outcome).toMatchObject(SUCCESS);
    expect(given()).toBe(1);
  });

  test('that was not delivered is delivered', async () => {
    rig.nextLife();
    void rig.find(rig.prompting('worker', 'go', { id: 'task#1' }));
    await rig.called('task|done');
  });

  test('in mode fire_forget is answered without another delivery', async () => {
    const effect = rig.prompting('worker', 'note this', { mode: 'fire-forget' });
    await rig.start(effect);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(SUCCESS);
    void rig.start(rig.prompting('worker', 'go', { id: 'next#1' }));
    await rig.called('next|done');
    expect(rig.transcript('worker').split('> note this')).toHaveLength(2);
  });

  test('can be stopped', async () => {
    const effect = rig.prompting('worker', 'hang', { id: 'task#1' });
    void rig.start(effect);
    await rig.says('worker', 'hangs');
    rig.nextLife();
    const outcome = rig.find(effect);
    rig.driver.stop('task#1', TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(rig.transcript('worker')).toContain('[interrupted]');
  });

  test('whose agent is gone is lost', async () => {
    const effect = rig.prompting('worker', 'hang', { id: 'task#1' });
    void rig.start(effect);
    await rig.says('worker', 'hangs');
    const pid = rig.leader('worker');
    process.kill(-pid, 'SIGKILL');
    await gone(pid);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(failedWith('lost'));
  });

  test('that went to an earlier agent of the same name is lost, and not delivered to this one', async () => {
    const effect = rig.prompting('worker', 'hang', { id: 'task#1' });
    void rig.start(effect);
    await rig.says('worker', 'hangs');
    await rig.start(rig.killing('worker', 0));
    await rig.spawned('worker', { id: '@spawn worker#2' });
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(failedWith('lost'));
    expect(readFileSync(rig.startFile('worker', 'stdout', '@spawn worker#2'), 'utf8')).toBe('');
  });
});
