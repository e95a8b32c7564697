// Agents that keep working while their run is paused or stopped: after a resume they are not prompted twice (host/2, across attempts too).

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import type { HostedAgent } from '../../src/drivers/agent/host.ts';
import { appears } from './driver-command-rig.ts';
import { actedBy, actor, type AdapterWish, atWork, givenTo, onRig, TAKEN, type TerminalRig } from './terminal-rig.ts';

/** After a restart, as the next attempt. */
function takenUp(rig: TerminalRig, agent: HostedAgent, adapter: AdapterWish): HostedAgent {
  rig.nextLife();
  return rig.found(agent.start, adapter);
}

describe.each([
  ['with hooks', '--hooks'],
  ['with only a screen', ''],
])('an agent %s', (_, flags) => {
  test.concurrent('that was left at a dialog continues when that is decided', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      const text = 'work:200 ask:rm work:600000';
      (await atWork(rig, agent, 'make#1', text)).leave();
      const found = takenUp(rig, agent, actor(flags));
      await atWork(rig, found, 'make#2', text);
      expect(found.hasBegun('make#2')).toBe(true);
      const { dialog } = await rig.notes.until(({ dialog }) => Boolean(dialog));
      found.decide({ dialog: dialog ?? expect.fail(), approved: true, answer: null });
      await appears(rig.path('worker.record'), (record) => record.includes('key-at-question'));
      await pause(1_000);
      expect(givenTo(rig)).toEqual([text]);
    }));

  test.concurrent('that is idle by now is told to continue', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      (await atWork(rig, agent, 'make#1', 'work:600')).leave();
      await pause(1_000);
      await atWork(rig, takenUp(rig, agent, actor(flags)), 'make#2', 'work:600');
      await appears(rig.path('worker.record'), () => givenTo(rig).length === 2);
      await pause(4_000);
      expect(givenTo(rig)).toEqual(['work:600', expect.stringMatching(/^You stopped before[^]*\n\nwork:600$/)]);
    }));

  test.concurrent('is told if it is another prompt, or that of another step', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      (await atWork(rig, agent, 'make#1', 'work:100')).leave();
      await agent.conclude('other#1', 5_000);
      (await atWork(rig, agent, 'make#2', 'work:101')).leave();
      await agent.conclude('other#1', 5_000);
      (await atWork(rig, agent, 'take#1', 'work:101')).leave();
      expect(givenTo(rig)).toEqual(['work:100', 'work:101', 'work:101']);
    }));

  test.concurrent('is told again after its work was interrupted or reported', () =>
    onRig(async (rig) => {
      const agent = await rig.started(actor(flags));
      const again = async (attempt: number): Promise<void> => {
        (await atWork(rig, agent, `make#${attempt}`, 'work:200')).leave();
      };
      await again(1);
      await agent.interrupt('make#1', 5_000);
      await again(2);
      await agent.conclude('make#2', 5_000);
      await again(3);
      expect(givenTo(rig)).toHaveLength(3);
    }));
});

test.concurrent('a prompt that was cancelled while a dialog hid its state is not delivered again', () =>
  onRig(async (rig) => {
    // The adapter detects no work, before the dialog or after it.
    const adapter = actor('', { acknowledge: { busy: [] } });
    const agent = await rig.started(adapter);
    let giveUp: (() => void) | undefined;
    const givenUp = new Promise<void>((resolve) => {
      giveUp = resolve;
    });
    const handed = rig.hand(agent, 'make#1', 'ask:rm work:300', 10_000, givenUp);
    await rig.notes.until(({ delivery }) => delivery === 'blocked-on-dialog');
    giveUp?.();
    expect(await handed).toMatchObject({ kind: 'not-taken', delivery: 'blocked-on-dialog' });
    const found = takenUp(rig, agent, adapter);
    const again = rig.hand(found, 'make#2', 'ask:rm work:300');
    await pause(500);
    rig.asUser('send-keys', '-t', `=${agent.terminal}:`, '1');
    expect(await again).toEqual(TAKEN);
    expect(givenTo(rig)).toEqual(['ask:rm work:300']);
    expect(actedBy(rig).filter(({ kind }) => kind === 'pasted-at-question')).toEqual([]);
  }));
