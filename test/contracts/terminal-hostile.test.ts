// Hundreds of deliveries to a hostile program (test/fixtures/terminal/hostile.mjs). Each has a typed outcome, none
// counts as accepted that was not, and nothing is typed into a dialog. The program's own record decides.
//
// The same for one that is only slow: it discards its first input, shows it late, or is stopped. With MEOW_SWEEP=whole
// the machine has four times more load than cores meanwhile.
//
// And for one whose screen changes by itself (test/fixtures/terminal/restless.mjs), with no pattern but its prompt.
//
// MEOW_DELIVERIES=1000 makes more of them, MEOW_SEED=7 others.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import type { Handover, HostedAgent } from '../../src/drivers/agent/host.ts';
import { IS_WHOLE } from '../rig/sample.ts';
import { type AdapterWish, FIXTURES, onRig, TAKEN, type TerminalRig } from './terminal-rig.ts';

const DELIVERIES = Number(process.env['MEOW_DELIVERIES'] ?? (IS_WHOLE ? 200 : 24));
const SEED = Number(process.env['MEOW_SEED'] ?? 1);
const AT_ONCE = 12;
const TIME_MS = 180_000 + DELIVERIES * 1_000;

function adapter(seed: number, byHook: boolean, flags = ''): AdapterWish {
  const hooks = byHook ? '"$MEOW_HOOKS"' : "''";
  return {
    terminal: {
      command: `exec node '${join(FIXTURES, 'hostile.mjs')}' "$WORK/$MEOW_AGENT.record" ${seed} ${hooks} ${flags}`,
      ready: { patterns: ['^─{60}\\n❯'], deadlineMs: 60_000 },
      injection: { clearKeys: ['C-u'], draft: ['^─{60}\\n❯ \\S'] },
      acknowledge: { byHook, busy: ['^ {2}working…$'], timeoutMs: 400 },
      dialogs: [
        {
          name: 'permission',
          pattern: 'Do you want to proceed\\?',
          answer: null,
          approve: ['1'],
          reject: ['Escape'],
          cure: null,
          atStart: false,
        },
      ],
    },
    ...(byHook ? { hooks: {} } : {}),
  };
}

/** From one word to more than the box shows, each with a unique beginning. */
function textOf(name: string, number: number): string {
  const lines = [1, 1, 2, 3, 12, 40][number % 6] ?? 1;
  return Array.from({ length: lines }, (_, line) => `${name} ${line}: do what is to be done, and say so.`).join('\n');
}

interface Tried {
  readonly agent: string;
  readonly text: string;
  readonly handover: Handover;
}

/** One terminal after the other, as they die. */
async function deliverTo(rig: TerminalRig, lane: number, times: number, byHook: boolean): Promise<readonly Tried[]> {
  const tried: Tried[] = [];
  let agent: HostedAgent | null = null;
  for (let number = 0; number < times; number += 1) {
    if (agent === null || !agent.alive) {
      const name = `agent-${lane}-${number}`;
      agent = rig.begin(rig.host(adapter(SEED * 1_000_003 + lane * 1_009 + number, byHook)), name);
      const readiness = await agent.ready(60_000, rig.notes.note);
      if (readiness.kind === 'gone') continue;
      expect(readiness).toEqual({ kind: 'ready' });
    }
    const text = textOf(`${agent.start.agent}.${number}`, number);
    const handover = await rig.hand(agent, `try-${lane}-${number}#1`, text, 4_000);
    tried.push({ agent: agent.start.agent, text, handover });
    if (handover.kind === 'agent-gone') await agent.ended;
  }
  return tried;
}

interface Recorded {
  readonly kind: 'accepted' | 'swallowed' | 'pasted' | 'typed-into-question' | 'escape';
  readonly text?: string;
}

function recordOf(rig: TerminalRig, agent: string): readonly Recorded[] {
  const path = rig.path(`${agent}.record`);
  if (!existsSync(path)) return [];
  return (
    readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Recorded)
      // The probe of delivery/2 may follow a text that arrives late.
      .map((each) => (each.text === undefined ? each : { ...each, text: each.text.trim() }))
  );
}

describe.each([
  ['that confirms prompts by a hook', true],
  ['with only a screen', false],
])('a hostile program %s', (_, byHook) => {
  test(
    'never counts as having a prompt that it does not have, and never gets keys into a dialog',
    { timeout: TIME_MS },
    () =>
      onRig(async (rig) => {
        const lanes = Array.from({ length: AT_ONCE }, (_, lane) =>
          deliverTo(rig, lane, Math.ceil(DELIVERIES / AT_ONCE), byHook),
        );
        const tried = (await Promise.all(lanes)).flat();
        const records = new Map(
          [...new Set(tried.map(({ agent }) => agent))].map((agent) => [agent, recordOf(rig, agent)]),
        );
        const accepted = (agent: string): readonly (string | undefined)[] =>
          (records.get(agent) ?? []).filter(({ kind }) => kind === 'accepted').map(({ text }) => text);
        const everything = [...records.values()].flat();

        expect(everything.filter(({ kind }) => kind === 'typed-into-question')).toEqual([]);
        for (const { agent, text, handover } of tried) {
          const times = accepted(agent).filter((each) => each === text).length;
          expect(times, `${text.slice(0, 40)} was accepted`).toBeLessThanOrEqual(1);
          if (handover.kind === 'taken') expect(times, `${text.slice(0, 40)} was taken to be accepted`).toBe(1);
        }
        // Nothing reached it in pieces, or together with other text.
        const texts = new Set(tried.map(({ text }) => text));
        expect(everything.filter(({ kind, text = '' }) => kind === 'accepted' && !texts.has(text))).toEqual([]);
        expect(tried.filter(({ handover }) => handover.kind === 'taken').length).toBeGreaterThan(tried.length / 2);
      }, TIME_MS - 5_000),
  );
});

type Slowness = readonly [what: string, flags: string, stopMs: number];

const SLOW: readonly Slowness[] = [
  ...[500, 5_000].map((ms): Slowness => [`discards-${ms}`, `--discards ${ms}`, 0]),
  ...[100, 2_500, 10_000].map((ms): Slowness => [`late-${ms}`, `--late ${ms}`, 0]),
  ...[1_500, 6_000].map((ms): Slowness => [`stopped-${ms}`, '', ms]),
];

/** An adapter with as little as possible: no pattern tells whether the program is ready, has the text, or works. */
function bare(wish: AdapterWish): AdapterWish {
  const { command } = wish.terminal;
  return { terminal: { ...(command === undefined ? {} : { command }), injection: { clearKeys: ['C-u'] } } };
}

/** Several prompts, one after the other; the program is stopped once during each. */
async function deliverSlowly(
  rig: TerminalRig,
  wish: AdapterWish,
  [name, , stopMs]: Slowness,
): Promise<readonly Tried[]> {
  const agent = rig.begin(rig.host(wish), name);
  expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
  const pid = Number(rig.asUser('list-panes', '-t', `=${agent.terminal}:`, '-F', '#{pane_pid}'));
  const tried: Tried[] = [];
  for (const number of [0, 3]) {
    const text = textOf(`${name}.${number}`, number);
    const handed = rig.hand(agent, `${name}-${number}#1`, text, 60_000);
    if (stopMs > 0) {
      await pause(stopMs % 700);
      process.kill(-pid, 'SIGSTOP');
      await pause(stopMs);
      process.kill(-pid, 'SIGCONT');
    }
    tried.push({ agent: name, text, handover: await handed });
  }
  return tried;
}

/** `receives`: it does, whatever time passes before the delivery. Otherwise its record tells. */
type Restless = readonly [flags: string, receives: boolean];

const RESTLESS: readonly Restless[] = [
  ['--discards 2000 --banner 3000', false],
  ['--discards 3000 --clock 500', false],
  ['--discards 4000 --notices 800', false],
  ['--discards 4500 --banner 3000', false],
  ['--plain --discards 2000 --banner 3000', false],
  ['--plain --drops', false],
  ['--plain --drops --clock 300', false],
  ['--drops --notices 700', false],
  ['--mute --banner 3000', false],
  ['--clock 300', true],
  ['--banner 700', true],
  ['--notices 600 --clock 500', true],
  ['--plain --clock 300', true],
];
const RESTLESS_LIMIT_MS = 9_000;

describe.each([
  ['a pattern for its prompt', { patterns: ['^fox>'], deadlineMs: 60_000 }],
  ['no pattern', null],
])('a program whose screen changes by itself, with %s', (_, ready) => {
  test('counts as having its prompt only if it received it', { timeout: TIME_MS }, () =>
    onRig(async (rig) => {
      const lanes = RESTLESS.map(async ([flags, receives]) => {
        const name = flags.replaceAll(/[^a-z0-9]+/g, '-').slice(1);
        const command = `exec node '${join(FIXTURES, 'restless.mjs')}' "$WORK/$MEOW_AGENT.record" ${flags}`;
        const terminal = { command, ready, startupMs: 300, injection: { clearKeys: ['C-u'] } };
        const agent = rig.begin(rig.host({ terminal }), name);
        expect(await agent.ready(60_000, rig.notes.note)).toEqual({ kind: 'ready' });
        const text = `${name}: do it once.\nWhen it is done, say so.`;
        // Without bracketed paste, each line is a prompt.
        const sent = flags.includes('--plain') ? text.split('\n') : [text];
        const handover = await rig.hand(agent, `${name}#1`, text, RESTLESS_LIMIT_MS);
        return { flags, receives, handover, texts: recordOf(rig, name).map((each) => each.text), sent };
      });
      for (const { flags, receives, handover, texts, sent } of await Promise.all(lanes)) {
        const received = receives || texts.length > 0;
        expect({ flags, handover, texts }).toEqual({
          flags,
          handover: received ? TAKEN : { kind: 'not-taken', delivery: 'draft-stuck', reason: expect.anything() },
          texts: received ? sent : [],
        });
      }
    }, TIME_MS - 5_000),
  );
});

describe('a slow program', () => {
  let loops: readonly ChildProcess[] = [];
  beforeAll(() => {
    const count = IS_WHOLE ? 4 * availableParallelism() : 0;
    loops = Array.from({ length: count }, () => spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));
  });
  afterAll(() => {
    for (const loop of loops) loop.kill('SIGKILL');
  });

  test.concurrent.each([
    ['with a hook', (flags: string) => adapter(SEED, true, flags)],
    ['with patterns for its screen', (flags: string) => adapter(SEED, false, flags)],
    ['without hooks and patterns', (flags: string) => bare(adapter(SEED, false, flags))],
  ])('%s gets each prompt once, and counts as having it when it does', { timeout: TIME_MS }, (how, wish) =>
    onRig(async (rig) => {
      const lanes = SLOW.map((slow) => deliverSlowly(rig, wish(`--calm ${slow[1]}`), slow));
      for (const { agent, text, handover } of (await Promise.all(lanes)).flat()) {
        const texts = recordOf(rig, agent).flatMap(({ kind, text: its }) => (kind === 'accepted' ? [its] : []));
        const times = texts.filter((each) => each === text).length;
        const parts = texts.filter((each) => each?.startsWith(text.slice(0, 20)));
        expect(parts.length, `${agent} got a part of it`).toBe(times);
        // Without patterns nothing tells that a text was discarded.
        const mayFail = how === 'without hooks and patterns' && agent.startsWith('discards');
        if (mayFail && handover.kind !== 'taken') expect(times, `${agent} lost it`).toBe(0);
        else expect({ agent, handover, times }).toEqual({ agent, handover: TAKEN, times: 1 });
      }
    }, TIME_MS - 5_000),
  );
});
