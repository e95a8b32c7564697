// Turns in sessions: which are begun, gone on with and forked, when they become known, and what their turns cost.

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Effect, Outcome, Progress, Session } from '../../src/ir/effect.ts';
import { failedWith } from './agent-rig.ts';
import { appears } from './driver-command-rig.ts';
import { outputsOf, shellAdapter, TurnRig } from './turn-rig.ts';

let rig: TurnRig;
beforeEach(() => {
  rig = new TurnRig();
});
afterEach(() => rig.close());

const resume = (id: string): Session => ({ kind: 'resume', id });
const fork = (id: string): Session => ({ kind: 'fork', id });
const sessionOf = (outcome: Outcome): string => outputsOf(outcome)['session_id'] as string;
/** An agent that says how it was begun. */
const TELLS = 'init; result "$1 $2"';

describe('a session', () => {
  test('is begun under an id that we choose, gone on with, and forked', async () => {
    const first = await rig.run(TELLS);
    const id = sessionOf(first);
    expect(outputsOf(first)).toMatchObject({ result: `fresh ${id}` });
    expect(outputsOf(await rig.run(TELLS, { session: resume(id) }))).toEqual({
      result: `resume ${id}`,
      session_id: id,
      denied: 0,
    });
    const forked = await rig.run(TELLS, { session: fork(id) });
    expect(outputsOf(forked)).toMatchObject({ result: `fork ${id}` });
    expect(sessionOf(forked)).not.toBe(id);
  });

  test('that we choose is noted at once, and one that is told as soon as it is', async () => {
    rig.pipe('hold');
    const told: Progress[] = [];
    const effect = rig.turn('read -r line < hold.pipe; init; result fine');
    const chosen = rig.start(effect, told);
    await appears(rig.turnFile(effect, 'status'));
    expect(told).toEqual([{ session: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown }]);
    await rig.write('hold');
    expect((await chosen).kind).toBe('success');

    const other = new TurnRig(shellAdapter({ sessionId: 'told', command: 'sh -s fresh given-by-agent' }));
    other.pipe('hold');
    const later: Progress[] = [];
    const outcome = other.start(other.turn('init; echo > seen; read -r line < hold.pipe; result fine'), later);
    await appears(other.path('seen'));
    expect(await noted(later)).toEqual({ session: 'given-by-agent' });
    await other.write('hold');
    expect(await outcome).toMatchObject({ session: 'given-by-agent' });
    await other.close();
  });

  test('is known after a failure, so that the next attempt goes on in it', async () => {
    const outcome = await rig.run('init; exit 3');
    const { session } = (outcome as Extract<Outcome, { kind: 'failure' }>).failure;
    expect(outputsOf(await rig.run(TELLS, { session: resume(session ?? '') }))['result']).toBe(`resume ${session}`);
  });

  test('that never came to be is begun when it is to be gone on with', async () => {
    const outcome = await rig.run('exit 3');
    const { session } = (outcome as Extract<Outcome, { kind: 'failure' }>).failure;
    const next = await rig.run(TELLS, { session: resume(session ?? '') });
    expect(outputsOf(next)['result']).toBe(`fresh ${sessionOf(next)}`);
    // It may be there after all.
    expect(sessionOf(next)).not.toBe(session);
  });

  test('is none where the adapter has none', async () => {
    await rig.close();
    rig = new TurnRig(shellAdapter({ sessionId: 'none', reader: 'text', command: 'sh' }));
    const told: Progress[] = [];
    expect(await rig.start(rig.turn('echo fine'), told)).toMatchObject({
      session: null,
      outputs: { session_id: null },
    });
    expect(told).toEqual([]);
  });
});

describe('what a turn costs', () => {
  const costs = (total: number, tokens: number): string => `init; TOTAL=${total} TOKENS=${tokens} result fine`;

  test('is the difference, where the agent tells what its session has cost', async () => {
    const first = await rig.run(costs(1, 100));
    expect(first).toMatchObject({ usage: { usd: 1, tokens: 100 } });
    const id = sessionOf(first);
    expect(await rig.run(costs(3, 150), { session: resume(id) })).toMatchObject({ usage: { usd: 2, tokens: 50 } });
    expect(await rig.run(costs(3.5, 160), { session: resume(id) })).toMatchObject({ usage: { usd: 0.5, tokens: 10 } });
  });

  test('is counted in a fork from where its parent was, and not in the parent', async () => {
    const id = sessionOf(await rig.run(costs(1, 100)));
    const forked = await rig.run(costs(1.5, 120), { session: fork(id) });
    expect(forked).toMatchObject({ usage: { usd: 0.5, tokens: 20 } });
    expect(await rig.run(costs(1.25, 105), { session: resume(id) })).toMatchObject({ usage: { usd: 0.25, tokens: 5 } });
    const child = sessionOf(forked);
    expect(await rig.run(costs(2.5, 121), { session: resume(child) })).toMatchObject({ usage: { usd: 1, tokens: 1 } });
  });

  test('is not known in a session of which nothing is known, and is from then on', async () => {
    expect(await rig.run(costs(5, 500), { session: resume('foreign') })).toMatchObject({
      usage: { usd: null, tokens: null },
    });
    expect(await rig.run(costs(6, 501), { session: resume('foreign') })).toMatchObject({
      usage: { usd: 1, tokens: 1 },
    });
  });

  test('is what the agent tells, where it tells what the turn has cost', async () => {
    const script = 'VERSION=2.1.197 init; TOTAL=0.25 result fine';
    const id = sessionOf(await rig.run(script));
    expect(await rig.run(script, { session: resume(id) })).toMatchObject({ usage: { usd: 0.25 } });
  });

  test('is not known after the first turn, where it is not known what the agent tells', async () => {
    const script = 'VERSION=2.1.250 init; TOTAL=0.25 result fine';
    const first = await rig.run(script);
    expect(first).toMatchObject({ usage: { usd: 0.25 } });
    expect(await rig.run(script, { session: resume(sessionOf(first)) })).toMatchObject({ usage: { usd: null } });
  });

  test('includes what a turn has cost of which that was not told', async () => {
    const id = sessionOf(await rig.run(costs(1, 100)));
    expect(await rig.run('init; exit 1', { session: resume(id) })).toMatchObject({ failure: { usage: { usd: null } } });
    expect(await rig.run(costs(4, 100), { session: resume(id) })).toMatchObject({ usage: { usd: 3 } });
  });

  test('is told the same by every life of the engine that asks, however often', async () => {
    const id = sessionOf(await rig.run(costs(1, 100)));
    const second = rig.turn(costs(3, 150), { session: resume(id) });
    const asked = async (effect: Effect): Promise<Outcome> => {
      rig.nextLife();
      return rig.find(effect);
    };
    const first = await rig.start(second);
    expect(await asked(second)).toEqual(first);
    const third = rig.turn(costs(4, 151), { session: resume(id) });
    expect(await asked(third)).toMatchObject({ usage: { usd: 1, tokens: 1 } });
    // What is asked for once more does not change what the next turn costs.
    expect(await asked(second)).toEqual(first);
    expect(await rig.run(costs(5, 152), { session: resume(id) })).toMatchObject({ usage: { usd: 1, tokens: 1 } });
  });
});

describe('a turn that an earlier life of the engine began', () => {
  test('is read from its beginning: its session is noted again, and it ends as it would have', async () => {
    rig.pipe('hold');
    const effect = rig.turn('init; say early; echo > there; read -r line < hold.pipe; result late');
    void rig.start(effect);
    await appears(rig.path('there'));
    rig.nextLife();
    const told: Progress[] = [];
    const outcome = rig.find(effect, told);
    const { session } = await noted(told);
    await rig.write('hold');
    expect(await outcome).toMatchObject({ session, outputs: { result: 'late' }, usage: { usd: 0.5 } });
  });

  test('and that died without a status is lost, with its session, and what it left is ended', async () => {
    const effect = rig.turn("init; setsid sh -c 'echo $$ > tool; exec sleep 1000' & echo > there; sleep 1000");
    void rig.start(effect);
    await appears(rig.path('tool'));
    await appears(rig.path('there'));
    rig.nextLife();
    await rig.lose(effect);
    expect(await rig.find(effect)).toMatchObject({
      failure: { kind: 'lost', session: expect.any(String) as unknown, usage: { usd: null } },
    });
    expect(rig.left()).toEqual([]);
  });

  test('is lost after a start of the machine', async () => {
    const effect = rig.turn('init; result fine');
    // As a machine that went down leaves it: begun, in another boot, and nothing more.
    mkdirSync(rig.turnFile(effect, ''), { recursive: true });
    writeFileSync(rig.turnFile(effect, 'status'), '1 5.00 another-boot\n');
    expect(await rig.find(effect)).toMatchObject(failedWith('lost'));
  });

  test('is begun under the same id, where it was planned and not begun', async () => {
    const effect = rig.turn(TELLS);
    const id = sessionOf(await rig.start(effect));
    for (const name of ['status', 'stdout', 'stderr']) rmSync(rig.turnFile(effect, name));
    expect(existsSync(join(rig.runFolder, 'sessions', `${id}.json`))).toBe(true);
    rig.nextLife();
    expect(sessionOf(await rig.find(effect))).toBe(id);
  });
});

/** The first that is told; it may have been told already. */
async function noted(told: readonly Progress[]): Promise<Progress> {
  for (;;) {
    const [first] = told;
    if (first !== undefined) return first;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
