// Dialogs of agents in terminals, with a real program: dialog/1 to dialog/4, and post-dialog/1 and post-dialog/2 after the decision.

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import type { HostedAgent } from '../../src/drivers/agent/host.ts';
import type { Dialog } from '../../src/ir/effect.ts';
import { appears } from './driver-command-rig.ts';
import { actedBy, actor, atWork, givenTo, onRig, prompt, type TerminalRig } from './terminal-rig.ts';

async function asked(rig: TerminalRig): Promise<Dialog> {
  const { dialog } = await rig.notes.until(({ dialog }) => Boolean(dialog));
  return dialog ?? { name: '', text: '' };
}

function keysOf(rig: TerminalRig): readonly unknown[] {
  return actedBy(rig)
    .filter(({ kind }) => kind === 'key-at-question')
    .map(({ key }) => key);
}

describe('a dialog during work', () => {
  test.concurrent('is reported, and answered as a person decides', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await atWork(rig, agent, 'one#1', 'work:100 ask:rm');
      const dialog = await asked(rig);
      expect(dialog).toMatchObject({ name: 'permission', text: expect.stringContaining('Do you want to proceed? rm') });
      agent.decide({ dialog, approved: true, answer: null });
      await rig.notes.until(({ dialog }) => dialog === null);
      expect(keysOf(rig)).toEqual([0x31]);
    }));

  test.concurrent('may be rejected, or answered with a text', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await atWork(rig, agent, 'one#1', 'work:100 ask:first ask:second');
      agent.decide({ dialog: await asked(rig), approved: false, answer: null });
      const second = await rig.notes.until(({ dialog }) => dialog?.text.includes('second') === true);
      agent.decide({ dialog: second.dialog ?? { name: '', text: '' }, approved: true, answer: 'not now' });
      await rig.notes.until(({ dialog }) => dialog === null && keysOf(rig).length > 7);
      expect(keysOf(rig)).toEqual([0x1b, ...Buffer.from('not now'), 0x0d]);
    }));

  test.concurrent('is not answered by a decision about another one', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await atWork(rig, agent, 'one#1', 'work:100 ask:first');
      const dialog = await asked(rig);
      agent.decide({
        dialog: { ...dialog, text: dialog.text.replace('first', 'other') },
        approved: true,
        answer: null,
      });
      await pause(500);
      expect(keysOf(rig)).toEqual([]);
    }));

  test.concurrent('may be answered in the terminal, and is then closed', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      await atWork(rig, agent, 'one#1', 'work:100 ask');
      await asked(rig);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '1');
      await rig.notes.until(({ dialog }) => dialog === null);
      expect(keysOf(rig)).toEqual([0x31]);
    }));

  test.concurrent('is known after a restart, with the decision that was made meanwhile', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      const { leave } = await atWork(rig, agent, 'one#1', 'work:100 ask');
      const dialog = await asked(rig);
      leave();
      rig.nextLife();
      const found = rig.found(agent.start, actor('--hooks'));
      found.decide({ dialog, approved: true, answer: null });
      await atWork(rig, found, 'one#1', 'work:100 ask');
      await appears(rig.path('worker.record'), () => keysOf(rig).length > 0);
      expect(keysOf(rig)).toEqual([0x31]);
      expect(givenTo(rig)).toHaveLength(1);
    }));
});

describe.each([
  ['many times a second', 30],
  ['every second', 1_000],
])('an animated dialog %s', (_, ticks) => {
  const STAYS = /^ Do you want to proceed\? now\n closes in ⋯\n⋯\n ❯ 1\. Yes\n {3}2\. No$/;
  const told = (rig: TerminalRig): readonly unknown[] =>
    rig.notes.told.flatMap(({ dialog }) => (dialog === undefined ? [] : [dialog]));

  test.concurrent.for([
    [true, 0x31],
    [false, 0x1b],
  ] as const)('is reported once during work, and answered as a person decides (approved: %s)', ([approved, key]) =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(`--hooks --ticks ${ticks}`));
      await atWork(rig, agent, 'one#1', 'work:100 ask:now');
      const dialog = await asked(rig);
      expect(dialog.text).toMatch(STAYS);
      await pause(2_500);
      expect(told(rig)).toEqual([dialog]);
      agent.decide({ dialog, approved, answer: null });
      await rig.notes.until(({ dialog }) => dialog === null);
      expect(keysOf(rig)).toEqual([key]);
      expect(told(rig)).toEqual([dialog, null]);
    }),
  );

  test.concurrent.for([
    [true, 0x31],
    [false, 0x1b],
  ] as const)('is reported once at the start, and answered as a person decides (approved: %s)', ([approved, key]) =>
    onRig(async (rig) => {
      const agent = rig.begin(rig.host(actor(`--ticks ${ticks} --asks 'Do you want to proceed? now'`)));
      const ready = agent.ready(60_000, rig.notes.note);
      const dialog = await asked(rig);
      expect(dialog.text).toMatch(STAYS);
      await pause(2_500);
      expect(told(rig)).toEqual([dialog]);
      agent.decide({ dialog, approved, answer: null });
      expect(await ready).toEqual({ kind: 'ready' });
      expect(keysOf(rig)).toEqual([key]);
    }),
  );

  test.concurrent('is not answered by a decision about another one', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(`--hooks --ticks ${ticks}`));
      await atWork(rig, agent, 'one#1', 'work:100 ask:now ask:later');
      const dialog = await asked(rig);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '1');
      agent.decide({ dialog, approved: true, answer: null });
      const { dialog: later } = await rig.notes.until(({ dialog }) => dialog?.text.includes('later') === true);
      expect(later?.text).toContain('⋯');
      expect(keysOf(rig)).toEqual([0x31]);
    }));
});

describe('an agent that stops its work after a rejection', () => {
  const TOLD =
    /^A person has rejected what you asked for \(permission\)\.\n\nDo not ask for it again: [^\n]*\n\nwork:200 ask:rm$/;

  async function rejected(rig: TerminalRig, agent: HostedAgent, notes: string | null = null): Promise<Dialog> {
    const dialog = await asked(rig);
    const verdict = { dialog, approved: false, answer: null, notes };
    agent.decide(verdict);
    await appears(rig.path('worker.record'), (text) => text.includes('interrupted'));
    return dialog;
  }

  const told = (rig: TerminalRig, times: number): Promise<unknown> =>
    appears(rig.path('worker.record'), () => givenTo(rig).length >= times);

  test.concurrent.for(['--hooks', ''])('is told once to continue without it (%s)', (flags) =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(`${flags} --halts`));
      await atWork(rig, agent, 'one#1', 'work:200 ask:rm');
      await rejected(rig, agent);
      await told(rig, 2);
      expect(givenTo(rig)).toEqual(['work:200 ask:rm', expect.stringMatching(TOLD)]);
      await pause(4_000);
      expect(givenTo(rig)).toHaveLength(2);
    }),
  );

  test.concurrent('is told the person’s comment, after each rejection', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks --halts'));
      await atWork(rig, agent, 'one#1', 'work:200 ask:rm');
      await rejected(rig, agent, ' use trash ');
      await told(rig, 2);
      expect(givenTo(rig)[1]).toContain('(permission). They say: use trash\n');
    }));

  test.concurrent('is told after a restart if the engine died before telling it, and only once', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks --halts'));
      const { leave } = await atWork(rig, agent, 'one#1', 'work:200 ask:rm');
      await rejected(rig, agent);
      leave();
      for (let life = 0; life < 2; life += 1) {
        rig.nextLife();
        const found = rig.found(agent.start, actor('--hooks --halts'));
        const later = await atWork(rig, found, 'one#1', 'work:200 ask:rm');
        await told(rig, 2);
        await pause(life * 4_000);
        later.leave();
      }
      expect(givenTo(rig).filter((text) => TOLD.test(text))).toHaveLength(1);
    }));

  test.concurrent('is told nothing while a person types, or after the person has typed', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks --halts'));
      await atWork(rig, agent, 'one#1', 'work:200 ask:rm');
      await rejected(rig, agent);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '-l', 'work:50');
      await pause(4_000);
      rig.asUser('send-keys', '-t', `=${agent.terminal}:`, 'Enter');
      await told(rig, 2);
      await pause(4_000);
      expect(givenTo(rig)).toEqual(['work:200 ask:rm', 'work:50']);
    }));

  test.concurrent('is told nothing in an interactive step', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks --halts'));
      const message = { ...prompt('one#1', 'work:200 ask:rm'), mode: 'interactive' } as const;
      await rig.hand(agent, message.id, message.text);
      void agent.atWork(message, new AbortController().signal, rig.notes.note);
      await rejected(rig, agent);
      await pause(4_000);
      expect(givenTo(rig)).toEqual(['work:200 ask:rm']);
    }));
});

test.concurrent('an agent that continues after a rejection is told nothing', () =>
  onRig(async (rig) => {
    const agent = await rig.started(actor('--hooks'));
    await atWork(rig, agent, 'one#1', 'ask:rm work:500');
    agent.decide({ dialog: await asked(rig), approved: false, answer: null });
    await pause(5_000);
    expect(givenTo(rig)).toEqual(['ask:rm work:500']);
  }));
