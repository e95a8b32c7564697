// Delivery of prompts into terminals: delivery/1 to delivery/8 with real programs, and host/2 and host/6.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import type { HostedAgent } from '../../src/drivers/agent/host.ts';
import { appears } from './driver-command-rig.ts';
import {
  actedBy,
  actor,
  type AdapterWish,
  FIXTURES,
  givenTo,
  NEVER,
  onRig,
  TAKEN,
  type TerminalRig,
} from './terminal-rig.ts';

describe('a program that reads lines', () => {
  const READS = 'while IFS= read -r line; do printf "%s\\n" "$line" >> "$WORK/got"; echo "heard"; done';

  test.concurrent('gets prompts of one line, and of several', () =>
    onRig(async (rig) => {
      const agent = await rig.started({ terminal: { command: READS, startupMs: 50 } });
      expect(await rig.hand(agent, 'one#1', 'first prompt')).toEqual(TAKEN);
      await appears(rig.path('got'), (text) => text === 'first prompt\n');
      expect(await rig.hand(agent, 'two#1', 'second\nof two lines')).toEqual(TAKEN);
      await appears(rig.path('got'), (text) => text === 'first prompt\nsecond\nof two lines\n');
      expect([agent.hasBegun('one#1'), agent.hasBegun('three#1')]).toEqual([true, false]);
    }));

  test.concurrent('without echo gets prompts if a pattern shows its work', () =>
    onRig(async (rig) => {
      const terminal = { command: `stty -echo; ${READS}`, startupMs: 50, acknowledge: { busy: ['^heard$'] } };
      const agent = await rig.started({ terminal });
      expect(await rig.hand(agent, 'one#1', 'unseen')).toEqual(TAKEN);
      await appears(rig.path('got'), (text) => text === 'unseen\n');
    }));

  test.concurrent('without echo and without a pattern gets nothing, because nothing could confirm it', () =>
    onRig(async (rig) => {
      const agent = await rig.started({ terminal: { command: `stty -echo; ${READS}`, startupMs: 50 } });
      const handover = await rig.hand(agent, 'one#1', 'unseen', 4_000);
      expect(handover).toMatchObject({ kind: 'not-taken', reason: expect.stringContaining('never appeared') });
      expect(rig.read('got')).toBe('');
    }));

  test.concurrent('and never answers does not count as having its prompt', () =>
    onRig(async (rig) => {
      for (const [name, command] of [
        ['echoes', READS.replace('echo "heard"', ':')],
        ['silent', `stty -echo; ${READS.replace('echo "heard"', ':')}`],
        ['stopped', 'sleep 1000'],
      ] as const) {
        const agent = rig.begin(rig.host({ terminal: { command, startupMs: 50 } }), name);
        expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
        const handover = await rig.hand(agent, `${name}#1`, `prompt for ${name}`, 3_000);
        expect(handover, name).toMatchObject({ kind: 'not-taken', delivery: 'draft-stuck' });
        expect(agent.hasBegun(`${name}#1`)).toBe(false);
      }
    }));

  test.concurrent('that starts slowly and discards earlier input gets nothing before it is ready', () =>
    onRig(async (rig) => {
      const flush = 'stty -icanon min 0 time 0; cat > /dev/null; stty sane';
      for (const [name, start] of [
        ['one', `sleep 0.8; ${flush}; echo welcome`],
        ['two', `sleep 0.3; echo wait; sleep 0.2; ${flush}; echo welcome`],
      ] as const) {
        const agent = rig.begin(rig.host({ terminal: { command: `${start}; ${READS}`, startupMs: 20 } }), name);
        expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
        expect(await rig.hand(agent, `${name}#1`, `prompt ${name}`)).toEqual(TAKEN);
        await appears(rig.path('got'), (text) => text.includes(`prompt ${name}\n`));
      }
    }));

  test.concurrent('gets key presses if the adapter asks for typing', () =>
    onRig(async (rig) => {
      const injection = { method: 'literal', postDelayMs: 20 } as const;
      const agent = await rig.started({ terminal: { command: READS, startupMs: 50, injection } });
      expect(await rig.hand(agent, 'one#1', "it's #{pid}; typed")).toEqual(TAKEN);
      await appears(rig.path('got'), (text) => text === "it's #{pid}; typed\n");
    }));

  test.concurrent('is told to read a file if its terminal would change the text', () =>
    onRig(async (rig) => {
      const agent = await rig.started({ terminal: { command: READS, startupMs: 50 } });
      const text = `a\ttab, a bell \u0007\r\n${'x'.repeat(9_000)}`;
      expect(await rig.hand(agent, 'odd step#1', text)).toEqual(TAKEN);
      await appears(rig.path('got'), (got) => got.endsWith('\n'));
      const [, file = ''] = /^Your task is in the file (\/.+\.md): read all of it/.exec(rig.read('got')) ?? [];
      expect(readFileSync(file, 'utf8')).toBe(text);
    }));
});

describe('a program that opens a menu upon every second Escape', () => {
  const menu = (rig: TerminalRig): AdapterWish => ({
    terminal: {
      command: `exec node '${join(FIXTURES, 'restless.mjs')}' '${rig.path('record')}' --menu`,
      startupMs: 50,
      injection: { preKeys: ['Escape'], preDelayMs: 50, method: 'literal', clearKeys: ['C-u'] },
    },
  });
  const recorded = (rig: TerminalRig): readonly unknown[] =>
    rig
      .read('record')
      .split('\n')
      .slice(0, -1)
      .map((line): unknown => JSON.parse(line));
  const accepted = (text: string) => ({ kind: 'accepted', text });
  const ESCAPE = { kind: 'escape' };

  test.concurrent('gets each prompt: pre_keys are not pressed again into an input that is seen empty', () =>
    onRig(async (rig) => {
      const agent = await rig.started(menu(rig));
      const texts = ['first prompt', 'second\nof two lines', 'third prompt'];
      for (const text of texts) expect(await rig.hand(agent, `${text}#1`, text)).toEqual(TAKEN);
      expect(recorded(rig)).toEqual([ESCAPE, ...texts.map(accepted)]);
    }));

  test.concurrent('gets its prompt from a later engine, if the first one died after pre_keys', () =>
    onRig(async (rig) => {
      const agent = await rig.started({
        terminal: { ...menu(rig).terminal, injection: { preKeys: ['Escape'], preDelayMs: 60_000 } },
      });
      void rig.hand(agent, 'one#1', 'first prompt').catch(() => undefined);
      await appears(rig.path('record'), (text) => text.includes('escape'));
      rig.nextLife();
      expect(await rig.hand(rig.found(agent.start, menu(rig)), 'one#1', 'first prompt')).toEqual(TAKEN);
      expect(recorded(rig)).toEqual([ESCAPE, accepted('first prompt')]);
    }));

  test.concurrent('gets its prompt after pre_keys closed the menu that they had opened', () =>
    onRig(async (rig) => {
      const agent = await rig.started(menu(rig));
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, 'Escape');
      await appears(rig.path('record'), (text) => text.includes('escape'));
      expect(await rig.hand(agent, 'one#1', 'first prompt')).toEqual(TAKEN);
      expect(recorded(rig)).toEqual([ESCAPE, ESCAPE, ESCAPE, accepted('first prompt')]);
    }));
});

describe.each([
  ['that confirms prompts by a hook', '--hooks'],
  ['with only a screen', ''],
])('a program with an input %s', (_, flags) => {
  test.concurrent('gets prompts, and its work is detected', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      expect(await rig.hand(agent, 'one#1', 'work:300')).toEqual(TAKEN);
      expect(await rig.hand(agent, 'two#1', 'work:300\nwith more\nlines')).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300', 'work:300\nwith more\nlines']);
    }));

  test.concurrent('gets nothing twice', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      await rig.hand(agent, 'one#1', 'work:300');
      expect(await rig.hand(agent, 'one#1', 'work:300')).toEqual(TAKEN);
      rig.nextLife();
      expect(await rig.hand(rig.found(agent.start, actor(flags)), 'one#1', 'work:300')).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300']);
    }));

  test.concurrent('has an old draft cleared, however long, and never gets it together with a prompt', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '-l', 'half a thought');
      rig.asUser('set-buffer', '-b', 'old', 'one\ntwo\nthree\nfour');
      rig.asUser('paste-buffer', '-p', '-r', '-d', '-b', 'old', '-t', `=${agent.terminal}:`);
      expect(await rig.hand(agent, 'one#1', 'work:300')).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300']);
    }));

  test.concurrent('with a draft that cannot be cleared gets nothing', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(`${flags} --stubborn`));
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '-l', 'half a thought');
      const handover = await rig.hand(agent, 'one#1', 'work:300', 5_000);
      expect(handover).toMatchObject({ kind: 'not-taken', delivery: 'draft-stuck' });
      expect(givenTo(rig)).toEqual([]);
    }));

  test.concurrent('gets nothing while somebody types', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      const target = `=${agent.terminal}:`;
      rig.asUser('send-keys', '-t', target, '-l', 'w');
      const handed = rig.hand(agent, 'mine#1', 'work:300');
      for (const key of 'ork:10') {
        await pause(200);
        rig.asUser('send-keys', '-t', target, '-l', key);
      }
      rig.asUser('send-keys', '-t', target, 'Enter');
      expect(await handed).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:10', 'work:300']);
    }));

  test.concurrent('gets its prompt even if somebody scrolls in its terminal', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      rig.asUser('copy-mode', '-t', `=${agent.terminal}:`);
      expect(await rig.hand(agent, 'one#1', 'work:300')).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300']);
    }));

  test.concurrent.each([400, 4_000])('that shows its input %d ms late does not get it again', (ms) =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(`${flags} --late ${ms}`));
      expect(await rig.hand(agent, 'one#1', 'work:300')).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300']);
    }),
  );

  test.concurrent('that has discarded its first input gets its prompt again', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(`${flags} --discards 2500`));
      expect(await rig.hand(agent, 'one#1', 'work:300')).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300']);
    }));

  test.concurrent('that asked for bracketed paste gets several lines as one prompt, typed or not', () =>
    onRig(async (rig) => {
      for (const method of ['literal', 'keys'] as const) {
        const agent = rig.begin(rig.host(actor(flags, { injection: { method } })), method);
        expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
        expect(await rig.hand(agent, `${method}#1`, 'work:10\nand more')).toEqual(TAKEN);
        expect(givenTo(rig, method)).toEqual(['work:10\nand more']);
      }
    }));

  test.concurrent('that is stopped for longer than the acknowledge timeout gets its prompt once', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      const pid = Number(rig.asUser('list-panes', '-t', `=${agent.terminal}:`, '-F', '#{pane_pid}'));
      process.kill(-pid, 'SIGSTOP');
      const handed = rig.hand(agent, 'one#1', 'work:300');
      // Longer than every wait before a key is repeated.
      await pause(4_000);
      process.kill(-pid, 'SIGCONT');
      expect(await handed).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300']);
    }));

  test.concurrent('that works for long has prompts queued', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      expect(await rig.hand(agent, 'one#1', 'until:released')).toEqual(TAKEN);
      expect(await rig.hand(agent, 'two#1', 'work:10')).toEqual({ ...TAKEN, delivery: 'queued' });
      expect(agent.hasBegun('two#1')).toBe(false);
      writeFileSync(rig.path('released'), '');
      await appears(rig.path('worker.record'), () => givenTo(rig).length === 2);
    }));

  test.concurrent('gets no keys while it shows a dialog; the prompt follows after the answer', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      await rig.hand(agent, 'one#1', 'work:300 ask');
      const handed = rig.hand(agent, 'two#1', 'work:300', 5_000);
      const { dialog } = await rig.notes.until(({ dialog }) => Boolean(dialog));
      expect(dialog).toMatchObject({ name: 'permission', text: expect.stringContaining('Do you want to proceed?') });
      await rig.notes.until(({ delivery }) => delivery === 'blocked-on-dialog');
      // Longer than the time limit of a delivery that is possible.
      await pause(6_000);
      expect(actedBy(rig).filter(({ kind }) => /question/.test(kind))).toEqual([]);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '1');
      expect(await handed).toEqual(TAKEN);
      expect(givenTo(rig)).toEqual(['work:300 ask', 'work:300']);
      expect(actedBy(rig).filter(({ kind }) => /question/.test(kind))).toEqual([
        { kind: 'key-at-question', key: 0x31 },
      ]);
      expect(rig.notes.told.at(-1)).not.toMatchObject({ delivery: 'blocked-on-dialog' });
    }));

  test.concurrent('does not get a cancelled prompt, and keeps nothing of it', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(`${flags} --late 10`, { injection: { postDelayMs: 60_000 } }));
      let giveUp: (() => void) | undefined;
      const givenUp = new Promise<void>((resolve) => {
        giveUp = resolve;
      });
      const handed = rig.hand(agent, 'one#1', 'work:10', 30_000, givenUp);
      const screen = (): string => rig.asUser('capture-pane', '-p', '-t', `=${agent.terminal}:`);
      while (!screen().includes('❯ work:10')) await pause(20);
      giveUp?.();
      expect(await handed).toMatchObject({ kind: 'not-taken', delivery: 'draft-stuck' });
      while (screen().includes('work:10')) await pause(20);
      expect(givenTo(rig)).toEqual([]);
    }));

  test.concurrent('that exits is dead', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      await rig.hand(agent, 'one#1', 'work:50 exit:3');
      expect(await rig.hand(agent, 'two#1', 'work:10')).toEqual({ kind: 'agent-gone' });
      expect(await agent.ended).toMatchObject({
        status: 3,
        output: expect.stringContaining('these are my last words'),
      });
      expect(await rig.hand(agent, 'three#1', 'work:10')).toEqual({ kind: 'agent-gone' });
    }));

  test.concurrent('whose screen stops matching is not ready', () =>
    onRig(async (rig) => {
      const agent = await rig.started(
        actor(`${flags} --no-box`, { ready: { patterns: ['not what you think'], deadlineMs: 5_000 } }),
      );
      rig.asUser('clear-history', '-t', `=${agent.terminal}:`);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, 'x');
      while (rig.asUser('capture-pane', '-p', '-t', `=${agent.terminal}:`).includes('not what')) await pause(20);
      const handover = await rig.hand(agent, 'one#1', 'work:10', 1_500);
      expect(handover).toMatchObject({ kind: 'not-taken', delivery: 'not-ready' });
    }));
});

describe('a key', () => {
  const press = (rig: TerminalRig, agent: HostedAgent, id: string, key: string, timeoutMs = 10_000) =>
    agent.hand({ kind: 'key', id, key }, { timeoutMs, note: rig.notes.note, givenUp: NEVER });

  test.concurrent('is pressed once', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(''));
      expect(await press(rig, agent, 'key#1', 'Escape')).toEqual(TAKEN);
      expect(await press(rig, agent, 'key#1', 'Escape')).toEqual(TAKEN);
      await appears(rig.path('worker.record'), (text) => text.includes('escape'));
      expect(actedBy(rig).filter(({ kind }) => kind === 'escape')).toHaveLength(1);
    }));

  test.concurrent('is not pressed into a dialog before it has been answered', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await rig.hand(agent, 'one#1', 'ask');
      const pressed = press(rig, agent, 'enter#1', 'Enter', 2_000);
      await rig.notes.until(({ delivery }) => delivery === 'blocked-on-dialog');
      await pause(3_000);
      expect(actedBy(rig).filter(({ kind }) => kind === 'key-at-question')).toEqual([]);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '1');
      expect(await pressed).toEqual(TAKEN);
    }));

  test.concurrent('that rejects a dialog is pressed', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await rig.hand(agent, 'one#1', 'ask');
      expect(await press(rig, agent, 'escape#1', 'Escape')).toEqual(TAKEN);
      await appears(rig.path('worker.record'), (text) => text.includes('key-at-question'));
      expect(actedBy(rig).at(-1)).toEqual({ kind: 'key-at-question', key: 0x1b });
    }));
});
