// Agents in terminals from start to stop: host/1, host/3, host/4, host/6.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import { markEnded } from '../../src/drivers/agent/files.ts';
import type { AgentHost, HostedAgent } from '../../src/drivers/agent/host.ts';
import type { Text } from '../../src/ir/text.ts';
import { MARKER } from '../../src/sys/process.ts';
import { appears } from './driver-command-rig.ts';
import { actedBy, actor, type AdapterWish, onRig, PERMISSION, type TerminalRig } from './terminal-rig.ts';

async function started(rig: TerminalRig, adapter: AdapterWish): Promise<{ agent: HostedAgent; host: AgentHost }> {
  const host = rig.host(adapter);
  const agent = rig.begin(host);
  expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
  return { agent, host };
}

describe('a start', () => {
  test.concurrent('starts the agent in its own session, with a fixed size, in its folder, with its environment', () =>
    onRig(async (rig) => {
      const { agent } = await started(rig, actor('--hooks'));
      expect(agent.terminal).toBe(`meow-${rig.runId}-worker`);
      expect(actedBy(rig)[0]).toMatchObject({ cwd: rig.folder, run: agent.start.marker, columns: 200, rows: 50 });
      expect(existsSync(join(agent.start.folder.path, 'hooks'))).toBe(true);
      expect(rig.asUser('list-sessions', '-F', '#{session_name}')).toContain(agent.terminal);
    }));

  test.concurrent('uses a session name that tmux accepts', () =>
    onRig(async (rig) => {
      const agent = rig.begin(rig.host(actor('')), 'team.1:lead');
      expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
      // An agent called team_1_lead is a different one.
      expect(agent.terminal).toMatch(new RegExp(`^meow-${rig.runId}-team_1_lead-[0-9a-f]{6}$`));
    }));

  test.concurrent('resumes a session, forks one, and passes more arguments, each with its own command', () =>
    onRig(async (rig) => {
      const command = (words: string, ...holes: readonly string[]): Text => ({
        parts: [
          `node '${import.meta.dirname}/../fixtures/terminal/actor.mjs' ${words}`,
          ...holes.flatMap((hole) => [' ', { path: [hole], quote: [{ kind: 'bare' } as const] }]),
        ],
      });
      const host = rig.host(
        actor('', {
          command: command('begin', 'session_id'),
          resumeCommand: command('resume', 'session_id'),
          forkCommand: command('fork', 'session_id', 'new_session_id'),
        }),
      );
      const begin = async (name: string, session: string, resumeSession: string | null, forks: boolean) => {
        const start = rig.makeStart(name, { session });
        const environment = { ...rig.environment, MEOW_AGENT: name, [MARKER]: start.marker };
        const agent = host.start({ start, environment, resumeSession, forks, args: '--more "of it"' });
        expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
        return agent;
      };
      const given = (name: string): unknown => actedBy(rig, name)[0]?.['args'];
      const first = await begin('a', 'one', null, false);
      expect(given('a')).toEqual(['begin', 'one', '--more', 'of it']);
      // Nothing has been said in it, so it cannot be resumed.
      await begin('b', 'one', 'one', false);
      expect(given('b')).toEqual(['begin', 'one', '--more', 'of it']);
      await rig.hand(first, 'a#1', 'work:300');
      await begin('c', 'one', 'one', false);
      expect(given('c')).toEqual(['resume', 'one', '--more', 'of it']);
      await begin('d', 'two', 'one', true);
      expect(given('d')).toEqual(['fork', 'one', 'two', '--more', 'of it']);
    }));

  test.concurrent('that would resume a session is refused if the adapter cannot', () =>
    onRig(async (rig) => {
      const start = rig.makeStart('worker', { session: 'one' });
      const request = { start, environment: rig.environment, resumeSession: 'one', forks: false, args: null };
      const agent = rig.host(actor('')).start(request);
      expect(await agent.ended).toMatchObject({
        status: null,
        refusal: expect.stringContaining('cannot resume a session'),
      });
      expect(await agent.ready(1_000, rig.notes.note)).toEqual({ kind: 'gone' });
    }));

  test.concurrent('with the name of a foreign session is refused', () =>
    onRig(async (rig) => {
      await rig.tmux.run(['new-session', '-d', '-s', `meow-${rig.runId}-worker`, 'sleep', '100']);
      const agent = rig.begin(rig.host(actor('')));
      expect(await agent.ended).toMatchObject({ refusal: `session meow-${rig.runId}-worker already exists` });
    }));

  test.concurrent('of a program that exits immediately fails with its last lines', () =>
    onRig(async (rig) => {
      const agent = rig.begin(rig.host({ terminal: { command: 'echo no key >&2; exit 7', startupMs: 5_000 } }));
      expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'gone' });
      expect(await agent.ended).toEqual({ status: 7, refusal: null, output: 'no key' });
    }));

  test.concurrent('of a program that shows something else fails with its screen', () =>
    onRig(async (rig) => {
      const command = 'echo I am not what you think.; exec sleep 1000';
      const ready = { patterns: ['^❯'], deadlineMs: 10_000 };
      const agent = rig.begin(rig.host({ terminal: { command, ready } }));
      expect(await agent.ready(60_000, rig.notes.note)).toEqual({
        kind: 'unready',
        reason: 'its screen ends with:\nI am not what you think.',
      });
    }));

  test.concurrent('is found again after a restart, as ready as it was', () =>
    onRig(async (rig) => {
      const { agent } = await started(rig, actor('--hooks'));
      rig.nextLife();
      const found = rig.host(actor('--hooks')).find(agent.start);
      expect(found).toMatchObject({ kind: 'alive', agent: { session: 'first', terminal: agent.terminal } });
      if (found.kind === 'alive') expect(await found.agent.ready(1_000, rig.notes.note)).toEqual({ kind: 'ready' });
    }));

  test.concurrent('that never happened is found as such, and one that ended with its exit code', () =>
    onRig(async (rig) => {
      const host = rig.host(actor(''));
      const start = rig.makeStart('worker');
      expect(host.find(start)).toEqual({ kind: 'never' });
      const { agent } = await started(rig, actor(''));
      await rig.hand(agent, 'one#1', 'work:50 exit:4');
      await agent.ended;
      expect(rig.host(actor('')).find(agent.start)).toMatchObject({
        kind: 'gone',
        wasReady: true,
        exit: { status: 4 },
      });
    }));
});

describe('a dialog at the start', () => {
  const TRUST = {
    ...PERMISSION,
    name: 'trust',
    pattern: 'Trust this folder\\?',
    cure: 'Trust it before.',
    atStart: true,
  };

  test.concurrent('is shown to a person, with advice, and does not count against the start-up time', () =>
    onRig(async (rig) => {
      const wish = { ready: { patterns: ['^─{60}\\n❯'], deadlineMs: 15_000 }, dialogs: [TRUST] };
      const agent = rig.begin(rig.host(actor('--asks "Trust this folder?"', wish)));
      const ready = agent.ready(1_000, rig.notes.note);
      const { dialog } = await rig.notes.until(({ dialog }) => Boolean(dialog));
      expect(dialog?.text).toMatch(/^ Trust this folder\?\n ❯ 1. Yes\n {3}2. No\n\nTrust it before\.$/);
      await pause(16_000);
      agent.decide({ dialog: dialog ?? { name: '', text: '' }, approved: true, answer: null });
      expect(await ready).toEqual({ kind: 'ready' });
      await rig.notes.until(({ dialog }) => dialog === null);
      expect(actedBy(rig).filter(({ kind }) => kind === 'key-at-question')).toEqual([
        { kind: 'key-at-question', key: 0x31 },
      ]);
    }));

  test.concurrent('is answered by the rule of the adapter, once, and nobody is asked', () =>
    onRig(async (rig) => {
      const wish = { dialogs: [{ ...TRUST, answer: ['1'] }] };
      const agent = rig.begin(rig.host(actor('--asks "Trust this folder?"', wish)));
      expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
      expect(actedBy(rig).filter(({ kind }) => kind === 'key-at-question')).toHaveLength(1);
      expect(rig.notes.told).toEqual([]);
    }));
});

describe('an agent', () => {
  const ends: readonly (readonly [string, (rig: TerminalRig, target: string) => void])[] = [
    ['whose session is killed', (rig, target) => rig.asUser('kill-session', '-t', target)],
    ['whose pane is closed', (rig, target) => rig.asUser('kill-pane', '-t', `${target}:`)],
    ['whose server is killed', (rig) => rig.asUser('kill-server')],
  ];

  test.concurrent.for(ends)('%s is gone, with its last lines', ([, end]) =>
    onRig(async (rig) => {
      const { agent } = await started(rig, actor('--hooks'));
      end(rig, `=${agent.terminal}`);
      expect(await agent.ended).toMatchObject({ output: expect.stringContaining('? for shortcuts') });
      expect(rig.left()).toEqual([]);
      expect(await rig.hand(agent, 'one#1', 'work:10')).toEqual({ kind: 'agent-gone' });
    }),
  );

  test.concurrent('that survives its terminal is killed as soon as it is needed', () =>
    onRig(async (rig) => {
      const { agent } = await started(rig, actor('--hooks --stubborn'));
      rig.asUser('kill-server');
      expect(await rig.hand(agent, 'one#1', 'work:10')).toEqual({ kind: 'agent-gone' });
      expect(rig.left()).toEqual([]);
    }));

  test.concurrent('whose session is renamed is prompted as before', () =>
    onRig(async (rig) => {
      const { agent } = await started(rig, actor('--hooks'));
      rig.asUser('rename-session', '-t', `=${agent.terminal}`, 'mine now');
      expect(await rig.hand(agent, 'one#1', 'work:10')).toEqual({ kind: 'taken' });
      rig.nextLife();
      const found = rig.found(agent.start, actor('--hooks'));
      expect(await rig.hand(found, 'two#1', 'work:10')).toEqual({ kind: 'taken' });
    }));

  test.concurrent('reports its session, and every change of it', () =>
    onRig(async (rig) => {
      const { agent } = await started(rig, actor('--hooks'));
      const told: string[] = [];
      agent.watchSession((session) => told.push(session));
      expect(told).toEqual(['first']);
      const changed = new Promise<void>((resolve) => {
        agent.watchSession((session) => session === 'second' && resolve());
      });
      await rig.hand(agent, 'one#1', 'session:second work:10');
      await changed;
      expect(agent.session).toBe('second');
      expect(told).toEqual(['first', 'second']);
    }));
});

describe('an agent is stopped', () => {
  async function cleared(rig: TerminalRig, adapter: AdapterWish, graceMs: number): Promise<readonly string[]> {
    const { agent, host } = await started(rig, adapter);
    await rig.hand(agent, 'one#1', 'leave work:10');
    expect(rig.left().length).toBeGreaterThan(2);
    markEnded(agent.start);
    expect(await host.clear(agent.start, graceMs).done).toEqual([]);
    await agent.ended;
    expect(rig.left()).toEqual([]);
    expect(() => rig.asUser('has-session', '-t', `=${agent.terminal}`)).toThrow(/no server|can't find/);
    return actedBy(rig).map(({ kind }) => kind);
  }

  test.concurrent('with its own keys, with all processes that its tools left', () =>
    onRig(async (rig) => {
      expect(await cleared(rig, actor('--hooks', { stop: { keys: ['C-d'] } }), 10_000)).not.toContain('SIGTERM');
    }));

  test.concurrent('with the signal that it expects', () =>
    onRig(async (rig) => {
      expect(await cleared(rig, actor('--hooks'), 10_000)).toContain('SIGTERM');
      const told = readFileSync(rig.path('worker.record'), 'utf8');
      expect(told).not.toContain('SIGINT');
    }));

  test.concurrent('with another signal if the adapter says so', () =>
    onRig(async (rig) => {
      const kinds = await cleared(rig, actor('--hooks', { stop: { signal: 'SIGINT' } }), 10_000);
      expect(kinds).toContain('SIGINT');
      expect(kinds).not.toContain('SIGTERM');
    }));

  test.concurrent('with force if it does not react, or has no grace period', () =>
    onRig(async (rig) => {
      expect(await cleared(rig, actor('--hooks --stubborn'), 300)).toContain('SIGTERM');
    }));

  test.concurrent('at once if urgent', () =>
    onRig(async (rig) => {
      const { agent, host } = await started(rig, actor('--hooks --stubborn'));
      const ending = host.clear(agent.start, 600_000);
      await appears(rig.path('worker.record'), (text) => text.includes('SIGTERM'));
      ending.atOnce();
      expect(await ending.done).toEqual([]);
      expect(rig.left()).toEqual([]);
    }));

  test.concurrent('without a key press into a dialog', () =>
    onRig(async (rig) => {
      const { agent, host } = await started(rig, actor('--hooks', { stop: { keys: ['1'] } }));
      await rig.hand(agent, 'one#1', 'ask');
      await host.clear(agent.start, 5_000).done;
      expect(actedBy(rig).map(({ kind }) => kind)).not.toContain('key-at-question');
    }));

  test.concurrent('even if an earlier engine started it', () =>
    onRig(async (rig) => {
      const { agent } = await started(rig, actor('--hooks'));
      rig.nextLife();
      expect(await rig.host(actor('--hooks')).clear(agent.start, 5_000).done).toEqual([]);
      expect(rig.left()).toEqual([]);
    }));

  test.concurrent('or has already exited', () =>
    onRig(async (rig) => {
      const host = rig.host(actor('--hooks'));
      mkdirSync(join(rig.runFolder, 'agents'), { recursive: true });
      expect(await host.clear(rig.makeStart('nobody'), 5_000).done).toEqual([]);
    }));
});
