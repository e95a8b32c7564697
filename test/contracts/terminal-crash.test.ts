// An engine dies while it delivers a prompt, before or after any of its actions on the terminal. The next one finds the
// agent, and the agent gets the prompt once: rules host/2 and delivery/6.

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import type { HostedAgent } from '../../src/drivers/agent/host.ts';
import type { TerminalPane } from '../../src/drivers/agent/tmux/terminal-pane.ts';
import type { Tmux } from '../../src/drivers/agent/tmux/tmux.ts';
import { sample } from '../rig/sample.ts';
import { actor, type AdapterWish, givenTo, NEVER, onRig, TAKEN, type TerminalRig } from './terminal-rig.ts';

interface Death {
  /** Before or after the Nth action on a pane. */
  readonly at: number;
  readonly when: 'before' | 'after';
}

/** A connection of an engine that dies: from then on nothing is done, and nothing answered. */
class Doom {
  readonly died: Promise<void>;
  #acts = 0;
  #isDead = false;
  #tellDeath: () => void = () => undefined;
  readonly #death: Death;

  constructor(death: Death) {
    this.#death = death;
    this.died = new Promise((resolve) => {
      this.#tellDeath = resolve;
    });
  }

  over(tmux: Tmux): Tmux {
    return this.#proxy(tmux, (name, call) => {
      if (name !== 'find' && name !== 'open') return call();
      return call().then((found: unknown) => {
        if (typeof found !== 'object' || found === null) return found;
        if ('ok' in found && 'value' in found) return { ok: true, value: this.#pane(found.value as TerminalPane) };
        return 'capture' in found ? this.#pane(found as TerminalPane) : found;
      });
    });
  }

  #pane(pane: TerminalPane): TerminalPane {
    return this.#proxy(pane, async (_, call) => {
      this.#acts += 1;
      const { at, when } = this.#death;
      if (this.#isDead || (this.#acts === at && when === 'before')) return this.#die();
      const answer = await call();
      return this.#acts >= at ? this.#die() : answer;
    });
  }

  #die(): Promise<never> {
    this.#isDead = true;
    this.#tellDeath();
    return NEVER;
  }

  #proxy<T extends object>(target: T, around: (name: string, call: () => Promise<unknown>) => Promise<unknown>): T {
    return new Proxy(target, {
      get: (_, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) =>
          around(String(name), () => Promise.resolve(Reflect.apply(member, target, args) as unknown));
      },
    });
  }
}

const TEXT = 'work:300\nand a second line';

/** Whether it lived until the prompt was delivered. */
async function deliversWith(
  rig: TerminalRig,
  death: Death,
  adapter: AdapterWish,
  { start }: HostedAgent,
): Promise<boolean> {
  const doom = new Doom(death);
  rig.nextLife();
  const agent = rig.found(start, adapter, { tmux: doom.over(rig.tmux) });
  return Promise.race([rig.hand(agent, 'one#1', TEXT).then(() => true), doom.died.then(() => false)]);
}

async function deliversLater(rig: TerminalRig, adapter: AdapterWish, { start }: HostedAgent): Promise<void> {
  rig.nextLife();
  const agent = rig.found(start, adapter);
  expect(await rig.hand(agent, 'one#1', TEXT)).toEqual(TAKEN);
  expect(agent.hasBegun('one#1')).toBe(true);
}

const DEATHS = Array.from({ length: 9 }, (_, n): Death[] => [
  { at: n + 1, when: 'before' },
  { at: n + 1, when: 'after' },
]).flat();

describe.each([
  ['that confirms prompts by a hook', '--hooks', 0],
  ['with only a screen', '', 1],
] as const)('an agent %s', (_, flags, first) => {
  test.concurrent.for(sample(DEATHS, first))('is prompted once if the engine dies $when act $at', (death) =>
    onRig(async (rig) => {
      const adapter = actor(flags);
      const agent = await rig.started(adapter);
      await deliversWith(rig, death, adapter, agent);
      await deliversLater(rig, adapter, agent);
      // A duplicate would have arrived by then.
      await pause(400);
      expect(givenTo(rig)).toEqual([TEXT]);
    }),
  );

  test.concurrent('is prompted once if several engines die in a row', () =>
    onRig(async (rig) => {
      const adapter = actor(flags);
      const agent = await rig.started(adapter);
      for (const death of DEATHS.slice(2, 12)) await deliversWith(rig, death, adapter, agent);
      await deliversLater(rig, adapter, agent);
      await pause(400);
      expect(givenTo(rig)).toEqual([TEXT]);
    }));

  test.concurrent('that was killed together with the engine is gone, and gets nothing', () =>
    onRig(async (rig) => {
      const adapter = actor(flags);
      const agent = await rig.started(adapter);
      await deliversWith(rig, { at: 5, when: 'after' }, adapter, agent);
      rig.asUser('kill-server');
      await agent.ended;
      rig.nextLife();
      expect(rig.host(adapter).find(agent.start)).toMatchObject({ kind: 'gone', wasReady: true });
    }));
});

test.concurrent.for(sample(DEATHS, 2))(
  'a program that reads lines gets nothing twice if the engine dies $when act $at',
  (death) =>
    onRig(async (rig) => {
      const answer = 'case $line in *second*) echo heard ;; esac';
      const command = `while IFS= read -r line; do printf "%s\\n" "$line" >> "$WORK/got"; ${answer}; done`;
      const adapter = { terminal: { command, startupMs: 50 } };
      const agent = await rig.started(adapter);
      await deliversWith(rig, death, adapter, agent);
      await deliversLater(rig, adapter, agent);
      await pause(100);
      expect(['', `${TEXT}\n`]).toContain(rig.read('got'));
    }),
);

test.concurrent('the delivery starts after all of these', () =>
  onRig(async (rig) => {
    const adapter = actor('--hooks');
    const agent = await rig.started(adapter);
    expect(await deliversWith(rig, { at: DEATHS.length, when: 'before' }, adapter, agent)).toBe(true);
  }));
