// The engine is killed with -9 while an ACP agent starts, works, asks or is asked. The next engine continues from
// there: no message is sent twice.

import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Effect } from '../../src/ir/effect.ts';
import { AcpRig } from '../fixtures/acp/rig.ts';
import { sample } from '../rig/sample.ts';
import { expected, failedWith, SUCCESS, TIME_UP } from './agent-rig.ts';
import { appears, gone } from './driver-command-rig.ts';

let rig: AcpRig;
beforeEach(() => {
  rig = new AcpRig();
});
afterEach(() => rig.close());

/** An engine starts the agent and prompts it, and is killed at the given point. */
async function killedEngine(work: Effect, until: () => Promise<void>): Promise<void> {
  const engine = rig.engine([rig.spawning('worker'), work]);
  await engine.says(`asks ${work.id}`);
  await until();
  await engine.killed();
  rig.nextLife();
}

const idsOf = (method: string): readonly unknown[] => rig.received(method).map(({ id }) => id);

describe('if the engine dies while an agent starts', () => {
  test.each(sample([0, 5, 10, 20, 40, 60, 80, 120]))(
    '%i ms after the request, exactly one agent exists, in one session',
    async (ms) => {
      const engine = rig.engine([rig.spawning('worker')]);
      await engine.says('asks spawn-worker#1');
      await pause(ms);
      await engine.killed();
      rig.nextLife();
      expect(await rig.find(rig.spawning('worker'))).toMatchObject({ kind: 'success' });
      expect(idsOf('initialize')).toEqual(['initialize']);
      expect(idsOf('session/new')).toEqual(['session']);
      const outcome = await rig.start(rig.prompting('worker', [{ say: 'here' }]));
      expect(outcome).toMatchObject({ outputs: { result: 'here' } });
    },
  );

  test('a session that was created meanwhile is found and reported', async () => {
    const spawning = rig.spawning('worker', { env: { HOLD: 'go' } });
    const engine = rig.engine([spawning]);
    await rig.receives((text) => text.includes('session/new'));
    await engine.killed();
    rig.let('go');
    await rig.says('worker', 'sessionId');
    rig.nextLife();
    const found = await rig.find(spawning);
    expect(found).toMatchObject({ kind: 'success', session: expect.stringMatching(/^[0-9a-f-]{36}$/) as string });
    void rig.find(rig.attending('worker'));
    const { session } = await rig.noted('@worker#1', (progress) => progress.session !== undefined);
    expect(found).toMatchObject({ session });
  });
});

describe('if the engine dies while an agent works', () => {
  test('the agent keeps working, and its answer is accepted', async () => {
    const work = rig.prompting('worker', [{ say: 'works, ' }, { hold: 'go' }, { say: 'done' }]);
    await killedEngine(work, () => rig.says('worker', 'works'));
    const outcome = rig.find(work);
    rig.let('go');
    expect(await outcome).toMatchObject({ kind: 'success', outputs: { result: 'works, done' } });
    expect(idsOf('session/prompt')).toEqual([`prompt ${work.id}`]);
  });

  test('an answer that arrived without an engine is accepted', async () => {
    const work = rig.prompting('worker', [{ cost: 0.5 }, { hold: 'go' }, { say: 'done' }]);
    await killedEngine(work, () => rig.says('worker', 'cost'));
    rig.let('go');
    await rig.says('worker', 'end_turn');
    expect(await rig.find(work)).toMatchObject({ outputs: { result: 'done' }, usage: { usd: 0.5 } });
    expect(idsOf('session/prompt')).toHaveLength(1);
  });

  test('a report that arrived without an engine is accepted, and no reminder is sent', async () => {
    const work = rig.prompting('worker', [{ run: 'meow done --output file=a' }], { expects: [expected('file')] });
    const engine = rig.engine([rig.spawning('worker', { env: { DEAF: 'go' } }), work]);
    await engine.says(`asks ${work.id}`);
    await appears(rig.startFile('worker', 'acp-in.sent'), (text) => text.includes(`["sent","prompt ${work.id}"]`));
    await engine.killed();
    rig.let('go');
    await rig.says('worker', 'end_turn');
    rig.nextLife(() => {
      rig.driver.conclude?.(work.id);
      return new Promise((resolve) => setImmediate(resolve));
    });
    expect(await rig.find(work)).toMatchObject(SUCCESS);
    expect(idsOf('session/prompt')).toEqual([`prompt ${work.id}`]);
  });

  test('a reminder is not repeated', async () => {
    const acts = [{ again: [{ hold: 'go' }, { run: 'meow done' }, { say: 'reported' }] }];
    const work = rig.prompting('worker', acts, { expects: [expected('file')] });
    await killedEngine(work, () => rig.receives((text) => text.includes('again 1')));
    const outcome = rig.find(work);
    rig.let('go');
    await rig.called('done');
    rig.driver.conclude?.(work.id);
    expect(await outcome).toMatchObject(SUCCESS);
    expect(idsOf('session/prompt').slice(0, 2)).toEqual([`prompt ${work.id}`, `again 1 ${work.id}`]);
  });

  test('the number of reminders does not grow with a restart', async () => {
    const work = rig.prompting('worker', [{ again: [{ hold: 'go' }] }], { expects: [expected('file')] });
    await killedEngine(work, () => rig.receives((text) => text.includes('again 1')));
    const outcome = rig.find(work);
    rig.let('go');
    expect(await outcome).toMatchObject(failedWith('output-missing'));
    expect(idsOf('session/prompt')).toHaveLength(4);
  });

  test('the next engine can interrupt the agent', async () => {
    const work = rig.prompting('worker', [{ say: 'works' }, { hang: true }]);
    await killedEngine(work, () => rig.says('worker', 'works'));
    const outcome = rig.find(work);
    await rig.noted(work.id, ({ delivery }) => delivery === 'accepted');
    rig.driver.stop(work.id, TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(idsOf('session/cancel')).toHaveLength(1);
  });

  test('an agent that died meanwhile is lost', async () => {
    const work = rig.prompting('worker', [{ say: 'works' }, { hold: 'go' }, { die: 4 }]);
    await killedEngine(work, () => rig.says('worker', 'works'));
    rig.let('go');
    await gone(rig.leader('worker'));
    expect(await rig.find(rig.attending('worker'))).toMatchObject(failedWith('lost'));
    expect(await rig.find(work)).toMatchObject(failedWith('lost'));
  });

  test('an agent that dies under the next engine has crashed', async () => {
    const work = rig.prompting('worker', [{ say: 'works' }, { hold: 'go' }, { die: 4 }]);
    await killedEngine(work, () => rig.says('worker', 'works'));
    const attended = rig.find(rig.attending('worker'));
    void rig.find(work);
    await rig.noted('@worker#1', ({ session }) => session !== undefined);
    rig.let('go');
    expect(await attended).toMatchObject({ failure: { kind: 'agent-crashed', code: 4 } });
  });
});

describe('if the engine dies while an agent waits for a permission', () => {
  const ASKS = [{ ask: 'Run it', rawInput: { command: 'make' } }];

  test('the same question is asked again, and answered once', async () => {
    const work = rig.prompting('worker', ASKS, { id: 'task#1' });
    const engine = rig.engine([rig.spawning('worker'), work]);
    await engine.says('noted task#1 {"dialog"');
    await engine.killed();
    rig.nextLife();
    const outcome = rig.find(work);
    const dialog = await rig.dialog('task#1');
    expect(dialog.text).toBe(
      'Run it\ninput: {"command":"make"}\noptions: Always (yes-always), Allow (yes), Reject (no)\nrequest: 1',
    );
    rig.driver.decide?.('task#1', { dialog, approved: true, answer: null });
    expect(await outcome).toMatchObject({ outputs: { result: 'outcome yes;' } });
    expect(rig.received().filter(({ id }) => id === 1)).toHaveLength(1);
  });

  test('a decision that arrives before the question is not lost', async () => {
    const work = rig.prompting('worker', ASKS, { id: 'task#1' });
    const engine = rig.engine([rig.spawning('worker'), work]);
    await engine.says('noted task#1 {"dialog"');
    await engine.killed();
    rig.nextLife();
    const text =
      'Run it\ninput: {"command":"make"}\noptions: Always (yes-always), Allow (yes), Reject (no)\nrequest: 1';
    const outcome = rig.find(work);
    rig.driver.decide?.('task#1', { dialog: { name: 'permission', text }, approved: false, answer: null });
    expect(await outcome).toMatchObject({ outputs: { result: 'outcome no;' } });
  });
});

describe('if the engine dies while it writes a prompt', () => {
  test('a half-written prompt is sent completely, and once', async () => {
    // More than fits into the pipe.
    const work = rig.prompting('worker', [{ again: [{ words: 'ünd '.repeat(20_000) }] }, { say: 'read' }]);
    const engine = rig.engine([rig.spawning('worker', { env: { DEAF: 'go' } }), work]);
    await engine.says(`asks ${work.id}`);
    await appears(rig.startFile('worker', 'acp-in.sent'), (text) => text.includes(`["begun","prompt ${work.id}"]`));
    await engine.killed();
    rig.nextLife();
    const outcome = rig.find(work);
    rig.let('go');
    expect(await outcome).toMatchObject({ outputs: { result: 'read' } });
    // The killed engine may have written the whole line without recording it: then that line is spoilt, and not a message.
    expect(rig.received().filter(({ length }) => Number(length) > 80_000)).toHaveLength(1);
    expect(await rig.start(rig.prompting('worker', [{ say: 'next' }]))).toMatchObject({ outputs: { result: 'next' } });
  });

  test('a completely written prompt is not sent again', async () => {
    const work = rig.prompting('worker', [{ say: 'read' }]);
    const engine = rig.engine([rig.spawning('worker', { env: { DEAF: 'go' } }), work]);
    await engine.says(`asks ${work.id}`);
    await appears(rig.startFile('worker', 'acp-in.sent'), (text) => text.includes(`["whole","prompt ${work.id}"]`));
    await engine.killed();
    rig.nextLife();
    const outcome = rig.find(work);
    rig.let('go');
    expect(await outcome).toMatchObject({ outputs: { result: 'read' } });
    expect(idsOf('session/prompt')).toEqual([`prompt ${work.id}`]);
  });
});

test('an engine with nothing else to do exits, although its agent is alive', async () => {
  const engine = rig.engine([rig.spawning('worker'), rig.attending('worker')], { ENDS: '1' });
  expect(await engine.status()).toBe(0);
  expect(rig.left().length).toBeGreaterThan(0);
});
