// Agents at work in terminals: limits, failures, idleness, and silence.

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { appears } from './driver-command-rig.ts';
import { actedBy, actor, atWork, givenTo, onRig } from './terminal-rig.ts';

describe('a limit', () => {
  const LIMITS = [{ pattern: 'limit reached, resets in (\\S+)', reset: 'duration' as const }];
  const LIMIT = { kind: 'limit', limit: { text: expect.stringMatching(/^limit reached, resets in 2h$/) } };

  test.concurrent.for(['--hooks', ''])(
    'on the screen of an idle agent is reported, also after every restart (%s)',
    (flags) =>
      onRig(async (rig) => {
        const adapter = actor(flags, {}, LIMITS);
        const agent = await rig.started(adapter);
        const before = Date.now();
        const { end } = await atWork(rig, agent, 'one#1', 'work:300 say:limit_reached,_resets_in_2h work:300');
        const limit = await end;
        expect(limit).toMatchObject(LIMIT);
        const until = limit.kind === 'limit' ? (limit.limit.until ?? 0) : 0;
        expect(until - before).toBeGreaterThan(7_199_000);
        expect(until - Date.now()).toBeLessThanOrEqual(7_200_000);
        rig.nextLife();
        const found = rig.host(adapter).find(agent.start);
        if (found.kind !== 'alive') throw new Error(found.kind);
        expect(await (await atWork(rig, rig.found(agent.start, adapter), 'one#1', 'work:300')).end).toEqual(limit);
      }),
  );

  test.concurrent('that the error hook reports is reported', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', {}, LIMITS));
      expect(await (await atWork(rig, agent, 'one#1', 'work:100 fail:limit_reached,_resets_in_2h')).end).toMatchObject(
        LIMIT,
      );
    }));

  test.concurrent('that was on the screen before does not count for later prompts', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', {}, LIMITS));
      await (await atWork(rig, agent, 'one#1', 'say:limit_reached,_resets_in_2h')).end;
      const { end } = await atWork(rig, agent, 'two#1', 'work:100');
      await appears(rig.path('worker.record'), () => givenTo(rig).length === 2);
      expect(await Promise.race([end, pause(1_500)])).toBeUndefined();
      const third = await atWork(rig, agent, 'three#1', 'say:limit_reached,_resets_in_2h');
      expect(await third.end).toMatchObject(LIMIT);
    }));
});

describe('an error', () => {
  test.concurrent('that the agent does not recover from ends its work', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { timing: { recoverMs: 300 } }));
      const { end } = await atWork(rig, agent, 'one#1', 'work:100 fail:overloaded');
      expect(await end).toMatchObject({
        kind: 'over',
        outcome: {
          failure: { kind: 'agent-crashed', message: 'the agent stopped with an error: overloaded' },
        },
      });
    }));

  test.concurrent('that it recovers from does not count', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { timing: { recoverMs: 1_000 } }));
      const { end } = await atWork(rig, agent, 'one#1', 'work:100 fail:overloaded');
      await pause(300);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '-l', 'spin:2000');
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, 'Enter');
      expect(await Promise.race([end, pause(2_000)])).toBeUndefined();
    }));
});

describe('an error that only the screen shows', () => {
  const FAILED = { liveness: { firstMs: null, idleMs: null, failed: ['^■ (?!interrupted)(.+)'] } };
  const failed = (message: string) => ({
    kind: 'over',
    outcome: {
      failure: { kind: 'agent-crashed', message: `the agent stopped with an error: ${message}` },
    },
  });

  test.concurrent.for(['--hooks', ''])('ends the work of an agent that is idle below it (%s)', (flags) =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags, { ...FAILED, timing: { recoverMs: 300 } }));
      const { end } = await atWork(rig, agent, 'one#1', 'work:200 say:well halt:overloaded_by_far');
      expect(await end).toMatchObject(failed('overloaded by far'));
    }),
  );

  test.concurrent('does not count if the agent continues, if it was there before, or if the pattern excludes it', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { ...FAILED, timing: { recoverMs: 1_000 } }));
      const first = await atWork(rig, agent, 'one#1', 'work:100 halt:overloaded');
      await pause(300);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '-l', 'spin:3000');
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, 'Enter');
      expect(await Promise.race([first.end, pause(3_000)])).toBeUndefined();
      first.leave();
      const second = await atWork(rig, agent, 'two#1', 'work:100 say:well halt:interrupted');
      expect(await Promise.race([second.end, pause(6_000)])).toBeUndefined();
      second.leave();
      const third = await atWork(rig, agent, 'three#1', 'work:100 halt:overloaded');
      expect(await third.end).toMatchObject(failed('overloaded'));
    }));
});

describe('silence', () => {
  const liveness = { firstMs: null, idleMs: 800 };

  test.concurrent('that lasts too long ends the watch, and is reported with the screen', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { liveness }));
      const { end } = await atWork(rig, agent, 'one#1', 'quiet:600000');
      expect(await end).toMatchObject({ kind: 'idle', reason: expect.stringContaining('working, esc to interrupt') });
    }));

  test.concurrent('of an agent at its prompt also counts', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { liveness }));
      expect(await (await atWork(rig, agent, 'one#1', 'work:100')).end).toMatchObject({ kind: 'idle' });
    }));

  test.concurrent('is interrupted by output and by a running tool', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { liveness }));
      const { end } = await atWork(rig, agent, 'one#1', 'spin:2500 tool:2500 spin:600000');
      expect(await Promise.race([end, pause(6_500)])).toBeUndefined();
    }));

  test.concurrent('does not count while a person is awaited', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { liveness }));
      const { end } = await atWork(rig, agent, 'one#1', 'ask');
      expect(await Promise.race([end, pause(3_000)])).toBeUndefined();
    }));

  test.concurrent('from the start has its own limit', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks', { liveness: { firstMs: 500, idleMs: 15_000 } }));
      // On a busy machine the screen may still be drawn when the work begins, and then the other limit counts.
      expect(await (await atWork(rig, agent, 'one#1', 'quiet:600000')).end).toMatchObject({ kind: 'idle' });
      await agent.interrupt('one#1', 0);
    }));
});

describe('work that has been reported', () => {
  const UNTOLD = { usage: { usd: null, tokens: null } };

  test.concurrent.for(['--hooks', ''])('ends when the agent is idle (%s)', (flags) =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      await atWork(rig, agent, 'one#1', 'work:1200');
      expect(await agent.conclude('one#1', 10_000)).toMatchObject(UNTOLD);
      expect(rig.asUser('capture-pane', '-p', '-t', `=${agent.terminal}:`)).not.toContain('esc to interrupt');
      expect(actedBy(rig).map(({ kind }) => kind)).not.toContain('escape');
    }),
  );

  test.concurrent('is interrupted if the agent does not become idle in time', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await atWork(rig, agent, 'one#1', 'work:600000');
      expect(await agent.conclude('one#1', 300)).toEqual({ session: 'first', ...UNTOLD });
      await appears(rig.path('worker.record'), (text) => text.includes('escape'));
    }));

  test.concurrent('ends at once if nothing indicates idleness', () =>
    onRig(async (rig) => {
      const agent = await rig.started({ terminal: { command: 'cat', startupMs: 20 } });
      expect(await agent.conclude('one#1', 60_000)).toEqual({ session: null, ...UNTOLD });
    }));
});

describe('an interruption', () => {
  test.concurrent('makes the agent stop its work', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await atWork(rig, agent, 'one#1', 'work:100 work:600 work:600000');
      await agent.interrupt('one#1', 10_000);
      expect(actedBy(rig).map(({ kind }) => kind)).toContain('escape');
    }));

  test.concurrent('is not sent to an idle agent', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await atWork(rig, agent, 'one#1', 'work:50');
      await agent.conclude('one#1', 10_000);
      await agent.interrupt('one#1', 10_000);
      expect(actedBy(rig).map(({ kind }) => kind)).not.toContain('escape');
    }));

  test.concurrent('is sent into a dialog only if it rejects the dialog', () =>
    onRig(async (rig) => {
      for (const [name, interruptKeys, pressed] of [
        ['one', ['C-c'], []],
        ['two', ['Escape'], [0x1b]],
      ] as const) {
        const agent = rig.begin(rig.host(actor('--hooks', { stop: { interruptKeys } })), name);
        await agent.ready(60_000, rig.notes.note);
        await rig.hand(agent, `${name}#1`, 'ask');
        await agent.interrupt(`${name}#1`, 500);
        const at = actedBy(rig, name).filter(({ kind }) => kind === 'key-at-question');
        expect(at.map(({ key }) => key)).toEqual(pressed);
      }
    }));
});
