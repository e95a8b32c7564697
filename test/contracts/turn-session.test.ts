// Turns in sessions: which are started, resumed and forked, when they become known, and the cost of their turns.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
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
/** An agent that prints how it was started. */
const TELLS = 'init; result "$1 $2"';

describe('a session', () => {
  test('is started under a chosen id, resumed, and forked', async () => {
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

  test('with a chosen id is recorded at once, and one with a reported id as soon as it is reported', async () => {
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

  test('is known after a failure, so the next attempt resumes it', async () => {
    const outcome = await rig.run('init; exit 3');
    const { session } = (outcome as Extract<Outcome, { kind: 'failure' }>).failure;
    expect(outputsOf(await rig.run(TELLS, { session: resume(session ?? '') }))['result']).toBe(`resume ${session}`);
  });

  test('that was never created is started instead of resumed', async () => {
    const outcome = await rig.run('exit 3');
    const { session } = (outcome as Extract<Outcome, { kind: 'failure' }>).failure;
    const next = await rig.run(TELLS, { session: resume(session ?? '') });
    expect(outputsOf(next)['result']).toBe(`fresh ${sessionOf(next)}`);
    // It may exist after all.
    expect(sessionOf(next)).not.toBe(session);
  });

  test('does not exist if the adapter has none', async () => {
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

describe('the cost of a turn', () => {
  const costs = (total: number, tokens: number): string => `init; TOTAL=${total} TOKENS=${tokens} result fine`;

  test('is the difference, if the agent reports the cost of its session', async () => {
    const first = await rig.run(costs(1, 100));
    expect(first).toMatchObject({ usage: { usd: 1, tokens: 100 } });
    const id = sessionOf(first);
    expect(await rig.run(costs(3, 150), { session: resume(id) })).toMatchObject({ usage: { usd: 2, tokens: 50 } });
    expect(await rig.run(costs(3.5, 160), { session: resume(id) })).toMatchObject({ usage: { usd: 0.5, tokens: 10 } });
  });

  test('in a fork is counted from the cost of its parent, and not in the parent', async () => {
    const id = sessionOf(await rig.run(costs(1, 100)));
    const forked = await rig.run(costs(1.5, 120), { session: fork(id) });
    expect(forked).toMatchObject({ usage: { usd: 0.5, tokens: 20 } });
    expect(await rig.run(costs(1.25, 105), { session: resume(id) })).toMatchObject({ usage: { usd: 0.25, tokens: 5 } });
    const child = sessionOf(forked);
    expect(await rig.run(costs(2.5, 121), { session: resume(child) })).toMatchObject({ usage: { usd: 1, tokens: 1 } });
  });

  test('is unknown in an unknown session, and known from then on', async () => {
    expect(await rig.run(costs(5, 500), { session: resume('foreign') })).toMatchObject({
      usage: { usd: null, tokens: null },
    });
    expect(await rig.run(costs(6, 501), { session: resume('foreign') })).toMatchObject({
      usage: { usd: 1, tokens: 1 },
    });
  });

  test('is the reported one, if the agent reports the cost of the turn', async () => {
    const script = 'VERSION=2.1.197 init; TOTAL=0.25 result fine';
    const id = sessionOf(await rig.run(script));
    expect(await rig.run(script, { session: resume(id) })).toMatchObject({ usage: { usd: 0.25 } });
  });

  test('is unknown after the first turn, if it is unknown what the agent reports', async () => {
    const script = 'VERSION=2.1.250 init; TOTAL=0.25 result fine';
    const first = await rig.run(script);
    expect(first).toMatchObject({ usage: { usd: 0.25 } });
    expect(await rig.run(script, { session: resume(sessionOf(first)) })).toMatchObject({ usage: { usd: null } });
  });

  test('includes the cost of an earlier turn that was not reported', async () => {
    const id = sessionOf(await rig.run(costs(1, 100)));
    expect(await rig.run('init; exit 1', { session: resume(id) })).toMatchObject({ failure: { usage: { usd: null } } });
    expect(await rig.run(costs(4, 100), { session: resume(id) })).toMatchObject({ usage: { usd: 3 } });
  });

  test('is the same after every restart, however often it is requested', async () => {
    const id = sessionOf(await rig.run(costs(1, 100)));
    const second = rig.turn(costs(3, 150), { session: resume(id) });
    const asked = async (effect: Effect): Promise<Outcome> => {
      rig.nextLife();
      return rig.find(effect);
    };
    const first = await rig.start(second);
    expect(await asked(second)).toMatchObject(first);
    const third = rig.turn(costs(4, 151), { session: resume(id) });
    expect(await asked(third)).toMatchObject({ usage: { usd: 1, tokens: 1 } });
    // Another request for the result does not change the cost of the next turn.
    expect(await asked(second)).toMatchObject(first);
    expect(await rig.run(costs(5, 152), { session: resume(id) })).toMatchObject({ usage: { usd: 1, tokens: 1 } });
  });
});

describe('a turn that an earlier engine started', () => {
  test('is read from its beginning: its session is recorded again, and it ends normally', async () => {
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

  test('and that died without an exit code is lost, with its session, and its processes are killed', async () => {
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

  test('is lost after a reboot', async () => {
    const effect = rig.turn('init; result fine');
    // As after a power failure: started, in another boot, and nothing more.
    mkdirSync(rig.turnFile(effect, ''), { recursive: true });
    writeFileSync(rig.turnFile(effect, 'status'), '1 5.00 another-boot\n');
    expect(await rig.find(effect)).toMatchObject(failedWith('lost'));
  });

  test('is started under another id, if a process was to start it and never began', async () => {
    const effect = rig.turn(TELLS);
    const id = sessionOf(await rig.start(effect));
    for (const name of ['status', 'stdout', 'stderr']) rmSync(rig.turnFile(effect, name));
    rig.nextLife();
    expect(sessionOf(await rig.find(effect))).not.toBe(id);
  });
});

/** The first report; it may have arrived already. */
async function noted(told: readonly Progress[]): Promise<Progress> {
  for (;;) {
    const [first] = told;
    if (first !== undefined) return first;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
