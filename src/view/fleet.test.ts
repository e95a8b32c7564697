import { expect, test } from 'vitest';

import { bad, ok, runKernel, START_TIME } from '../../test/kernel-rig/run-kernel.ts';
import { success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { Input } from '../kernel/input.ts';
import type { RunState } from '../kernel/state.ts';
import { type FleetEntry, fleetEntry, fleetView, unreadableEntry } from './fleet.ts';
import { shownStepStatus } from './shown-status.ts';

const NOW = START_TIME + 60_000;

function entryOf(state: RunState, more: Partial<Parameters<typeof fleetEntry>[0]> = {}): FleetEntry {
  return fleetEntry({ project: 'p', id: 'r', state, engine: { pid: 7 }, interrupted: false, now: NOW, ...more });
}

const limit = (effect: string): Input => ({
  kind: 'effect-finished',
  effect,
  outcome: { kind: 'failure', failure: failure('limit-reached', 'come back later', { retryAt: NOW + 3_600_000 }) },
});

const verdict = (gate: string): Input => ({
  kind: 'gate-decided',
  gate,
  verdict: { approved: true, by: 'ann', notes: null, answer: null },
  message: null,
});

const DIALOG: Input = {
  kind: 'effect-progressed',
  effect: 'b#1',
  progress: { dialog: { name: 'permission', text: 'Bash: rm -rf dist' } },
};

test('a run has every key of the contract', () => {
  const { run, needs, agents } = entryOf(runKernel('a\nb needs a agent w1', ok('a#1')).state);
  expect(run).toEqual({
    project: 'p',
    id: 'r',
    status: 'running',
    shown: 'running',
    language: 'meow',
    source: 'trace',
    started_at: '2026-01-08T21:00:00.000Z',
    ended_at: null,
    active_at: '2026-01-08T21:00:01.000Z',
    duration_ms: null,
    clock_from: '2026-01-08T21:00:00.000Z',
    counts: { pending: 0, running: 1, done: 1, failed: 0, skipped: 0 },
    now: 'b is running, by the agent w1',
    error: null,
    cost: { usd: 0, known_usd: 0, tokens: 0, unknown_turns: 0 },
    budget: { usd: null, tokens: null },
    engine: { pid: 7 },
    interrupted: false,
    limit: null,
    problem: null,
  });
  expect(needs).toEqual([]);
  expect(agents).toEqual([
    { project: 'p', run: 'r', id: 'w1', status: 'active', shown: 'active', adapter: null, step: 'b' },
  ]);
});

test('a turn without a price leaves the sum of the known prices', () => {
  const answer = (effect: string, usd: number | null): Input => {
    const outcome = { ...success(), usage: { usd, tokens: 10 } };
    return { kind: 'effect-finished', effect, outcome };
  };
  const { cost } = entryOf(runKernel('a\nb\nc', answer('a#1', 2), answer('b#1', null)).state).run;
  expect(cost).toEqual({ usd: null, known_usd: 2, tokens: 20, unknown_turns: 1 });
});

test('an open gate is a need, and the run is waiting', () => {
  const { run, needs } = entryOf(runKernel('a gate push for ann').state);
  expect(run).toMatchObject({ status: 'waiting', shown: 'waiting', now: 'a waits for a person' });
  expect(needs).toEqual([
    {
      project: 'p',
      run: 'r',
      gate: 'push',
      kind: 'gate',
      prompt: null,
      opened_at: '2026-01-08T21:00:00.000Z',
      step: 'a',
      agent: null,
      approvers: ['ann'],
      interrupted: false,
      consequences: {
        approve: [{ kind: 'ends', verdict: 'done', reason: null }],
        reject: [{ kind: 'ends', verdict: 'done', reason: null }],
      },
    },
  ]);
  expect(entryOf(runKernel('a gate push\nb needs a', verdict('push')).state).needs).toEqual([]);
});

test("an agent's dialog is a need that names the agent, which waits", () => {
  const { needs, agents } = entryOf(runKernel('a\nb agent w1', DIALOG).state);
  expect(needs).toMatchObject([{ gate: 'b.dialog.1', kind: 'dialog', prompt: 'Bash: rm -rf dist', agent: 'w1' }]);
  expect(agents).toMatchObject([{ id: 'w1', shown: 'waiting', step: 'b' }]);
});

test('the sentence about now counts iterations, and names what waits', () => {
  const each = 'each each [1,2,3] child\ngate gate push\nblock child\nfix';
  expect(entryOf(runKernel(each).state).run.now).toBe('each.*.fix × 3 are running; gate waits for a person');
  expect(entryOf(runKernel('a\nb\nc\nd').state).run.now).toBe('a, b and 2 more are running');
  expect(entryOf(runKernel('a retry 2 delay 10s', bad('a#1')).state).run.now).toBe('a waits for its next attempt');
});

test('a run in which everything waits for a usage limit is parked', () => {
  const both = runKernel('a\nb', limit('a#1')).state;
  expect(entryOf(both).run).toMatchObject({ shown: 'running', now: 'b is running; a waits for a usage limit' });
  const { state } = runKernel('a agent w1', limit('a#1'));
  expect(entryOf(state)).toMatchObject({
    run: { shown: 'parked', now: 'a waits for a usage limit' },
    agents: [{ id: 'w1', shown: 'parked' }],
  });
  expect([...state.steps.values()].map((step) => shownStepStatus(state, step))).toEqual(['parked']);
});

test('a step that waits for a person is waiting, and one whose gate is decided is not', () => {
  const { state } = runKernel('a gate g\nb gate h\nc', verdict('h'));
  expect([...state.steps.values()].map((step) => shownStepStatus(state, step))).toEqual(['waiting', 'done', 'running']);
});

test('the clock of an interrupted run stands still', () => {
  const { run } = entryOf(runKernel('a').state, { engine: null, interrupted: true, now: START_TIME + 5_000 });
  expect(run).toMatchObject({ status: 'running', shown: 'interrupted', duration_ms: 5_000, clock_from: null });
  expect(run.now).toBe('a was running; no engine works on the run');
});

test('a failed run says which step caused it, and has no agents', () => {
  const { run, agents } = entryOf(runKernel('a agent w', bad('a#1')).state);
  expect(run).toMatchObject({ status: 'failed', now: null, error: { step: 'a', message: 'exited with status 3' } });
  expect(agents).toEqual([]);
});

test('runs are sorted by need, then failed, running, parked and the rest, the newest first', () => {
  const at = (id: string, state: RunState, started: number): FleetEntry => {
    const entry = entryOf(state, { id });
    return { ...entry, run: { ...entry.run, started_at: new Date(started).toISOString() } };
  };
  const running = runKernel('a').state;
  const view = fleetView(
    [
      at('done', runKernel('a', ok('a#1')).state, 9),
      at('old', running, 1),
      at('new', running, 2),
      at('failed', runKernel('a', bad('a#1')).state, 1),
      at('gate', runKernel('a gate g').state, 1),
      unreadableEntry({ project: 'p', id: 'odd', engine: null, problem: { message: 'damaged', hint: null } }),
    ],
    NOW,
  );
  expect(view.runs.map(({ id }) => id)).toEqual(['gate', 'failed', 'odd', 'new', 'old', 'done']);
});

test('a run that ended more than a day ago is left out', () => {
  const ended = entryOf(runKernel('a', ok('a#1')).state);
  expect(fleetView([ended], NOW).runs).toHaveLength(1);
  expect(fleetView([ended], NOW + 25 * 3_600_000).runs).toEqual([]);
});
