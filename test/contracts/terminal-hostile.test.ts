// Hundreds of deliveries to a hostile program (test/fixtures/terminal/hostile.mjs). Each has a typed outcome, none
// counts as accepted that was not, and nothing is typed into a dialog. The program's own record decides.
//
// MEOW_DELIVERIES=1000 makes more of them, MEOW_SEED=7 others.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Handover, HostedAgent } from '../../src/drivers/agent/host.ts';
import { FIXTURES, onRig } from './terminal-rig.ts';
import type { AdapterWish, TerminalRig } from './terminal-rig.ts';

const DELIVERIES = Number(process.env['MEOW_DELIVERIES'] ?? 200);
const SEED = Number(process.env['MEOW_SEED'] ?? 1);
const AT_ONCE = 12;
const TIME_MS = 60_000 + DELIVERIES * 1_000;

function adapter(seed: number, byHook: boolean): AdapterWish {
  const hooks = byHook ? '"$MEOW_HOOKS"' : "''";
  return {
    terminal: {
      command: `exec node '${join(FIXTURES, 'hostile.mjs')}' "$WORK/$MEOW_AGENT.record" ${seed} ${hooks}`,
      ready: { patterns: ['^─{60}\\n❯'], deadlineMs: 20_000 },
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
      const readiness = await agent.ready(20_000, rig.notes.note);
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
  readonly kind: 'accepted' | 'swallowed' | 'pasted' | 'typed-into-question';
  readonly text?: string;
}

function recordOf(rig: TerminalRig, agent: string): readonly Recorded[] {
  const path = rig.path(`${agent}.record`);
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Recorded);
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
