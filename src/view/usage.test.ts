import { expect, test } from 'vitest';

import { parseProgram } from '../../test/kernel-rig/program-text.ts';
import { runKernel, START } from '../../test/kernel-rig/run-kernel.ts';
import { present } from '../base/errors.ts';
import { type Outcome, success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import { decide } from '../kernel/decide.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';
import { initialState, type RunState } from '../kernel/state.ts';
import { plainPalette } from './row.ts';
import { runLines, stepLines } from './step-lines.ts';
import { runView, stepView, stepViews } from './step.ts';
import { summaryLines } from './summary.ts';
import { renderTimelineLine, Timeline } from './timeline.ts';
import { treeLines } from './tree-lines.ts';
import { costText, runDuration, stepDuration } from './usage.ts';

const RESUMED: Input = { kind: 'run-resumed', retryFailed: true, allowance: null };
const APPROVED: Input = {
  kind: 'gate-decided',
  gate: 'g',
  verdict: { approved: true, by: 'ann', notes: null, answer: null },
  message: null,
};

test('a command that ended without an engine lasted until its real end, and the run until then', () => {
  const run = play('a', [100, RESUMED], [101, finished('a#1', success(), 20)]);
  expect(durations(run, 'a')).toEqual({ run: 21, step: 20, attempts: [20], trace: 'a done 20.0s' });
  expect(stepView(run.state, 'a', run.records)).toMatchObject({ finished_at: '1970-01-01T00:00:20.000Z' });
});

test('a command that was found running lasted from its start to its end', () => {
  const run = play('a', [100, RESUMED], [130, finished('a#1', success(), 129)]);
  expect(durations(run, 'a')).toEqual({ run: 130, step: 130, attempts: [130], trace: 'a done 2m10s' });
});

test('the clock of a command that was found running never stood still', () => {
  const { state } = play('a', [100, RESUMED]);
  expect(runDuration(state, 110_000)).toBe(110_000);
  expect(stepDuration(state, present(state.steps.get('a'), 'a'), 110_000)).toBe(110_000);
});

test('a gate and the run leave out the time without an engine', () => {
  const run = play('a gate g', [100, RESUMED], [105, APPROVED]);
  expect(durations(run, 'a')).toEqual({ run: 5, step: 5, attempts: [5], trace: 'a done 5.0s' });
});

test('a step that waits for others counts the time in which one of them ran', () => {
  const run = play('e each [1] sub\nblock sub\na', [100, RESUMED], [101, finished('e.0.a#1', success(), 30)]);
  expect(durations(run, 'e')).toEqual({ run: 31, step: 31, attempts: [31], trace: 'e done 31.0s' });
});

test('a lost attempt does not count, and its successor does', () => {
  const lost: Outcome = { kind: 'failure', failure: failure('lost', 'gone') };
  const run = play('a', [100, RESUMED], [101, finished('a#1', lost)], [111, finished('a#2', success())]);
  expect(durations(run, 'a')).toMatchObject({ run: 11, step: 10, trace: 'a done 10.0s' });
});

test('a failed attempt of which only a later engine heard ended when it ended', () => {
  const bad: Outcome = { kind: 'failure', failure: failure('exit-nonzero', 'exit 3') };
  const retry: Input = { kind: 'deadline-passed', timer: 'a retry' };
  const run = play(
    'a retry 2 delay 1s',
    [100, RESUMED],
    [100, finished('a#1', bad, 40)],
    [101, retry],
    [103, finished('a#2', success())],
  );
  expect(durations(run, 'a')).toMatchObject({ run: 43, step: 2, attempts: [40, 2] });
});

function finished(effect: string, outcome: Outcome, endedAtSeconds?: number): Input {
  const ended = endedAtSeconds === undefined ? {} : { endedAt: endedAtSeconds * 1_000 };
  return { kind: 'effect-finished', effect, outcome: { ...outcome, ...ended } };
}

interface Played {
  readonly state: RunState;
  readonly records: readonly JournalRecord[];
}

/** Starts at 0; each input comes at its second. */
function play(program: string, ...inputs: readonly (readonly [number, Input])[]): Played {
  const state = initialState(parseProgram(program.split('\n')));
  const records = [[0, START] as const, ...inputs].map(([second, input], index): JournalRecord => {
    const at = second * 1_000;
    return { seq: index + 1, at, input, decisions: decide(state, input, at) };
  });
  return { state, records };
}

/** In seconds, as each view tells them. */
function durations({ state, records }: Played, id: string): object {
  const now = records.at(-1)?.at ?? 0;
  const step = present(state.steps.get(id), id);
  const timeline = new Timeline();
  const lines = records.flatMap((record) => timeline.lines(record));
  const line = lines.find((one) => one.step === id && one.text.startsWith('done'));
  return {
    run: (runDuration(state, now) ?? 0) / 1_000,
    step: (stepDuration(state, step, now) ?? 0) / 1_000,
    attempts: stepView(state, id, records)?.attempts.map((attempt) => (attempt.duration_ms ?? 0) / 1_000),
    trace: line && renderTimelineLine(line, { kind: 'moment' }, 0, plainPalette).replace(/^\S+ /, ''),
  };
}

test.each([
  [{ usd: 0.42, tokens: 120_034, unpriced: 0 }, '$0.42'],
  [{ usd: 12, tokens: 0, unpriced: 0 }, '$12.00'],
  [{ usd: 0.0042, tokens: 9, unpriced: 0 }, '$0.004'],
  [{ usd: 0.42, tokens: 9, unpriced: 1 }, '≥ $0.42, 9 tokens'],
  [{ usd: 24.69, tokens: 0, unpriced: 1 }, '≥ $24.69'],
  [{ usd: 0, tokens: 999, unpriced: 1 }, '999 tokens'],
  [{ usd: 0, tokens: 120_034, unpriced: 1 }, '120.0k tokens'],
  [{ usd: 0, tokens: 3_400_000, unpriced: 1 }, '3.4M tokens'],
  [{ usd: 0, tokens: 0, unpriced: 2 }, ''],
])('%j is shown as %j', (cost, text) => {
  expect(costText(cost)).toBe(text);
});

const costs = (effect: string, usd: number | null, tokens: number | null): Input => ({
  kind: 'effect-finished',
  effect,
  outcome: success({}, { usage: { usd, tokens } }),
});

test('costs are shown in the tree, at the end, and of runs and steps', () => {
  const { state, records } = runKernel('a turn x\nb turn x\nc', costs('a#1', 0.25, 9), costs('b#1', 0.5, null));
  const tree = {
    now: 0,
    width: 80,
    height: 30,
    palette: plainPalette,
    ascii: false,
    closing: false,
    interrupted: false,
  };
  expect(treeLines(state, tree)[0]).toContain('  $0.75  ');
  expect(treeLines(state, tree)[1]).toBe('✓ a  1.0s  $0.25');
  expect(runLines(runView(state), state.cost, plainPalette).some((line) => /cost: +\$0\.75$/.test(line))).toBe(true);
  const [a, , c] = stepViews(state, records);
  expect(a?.cost).toEqual({ usd: 0.25, tokens: 9, unknown_turns: 0 });
  expect(
    a && stepLines(a, { usd: 0.25, tokens: 9, unpriced: 0 }, plainPalette).some((line) => /cost: +\$0\.25/.test(line)),
  ).toBe(true);
  expect(c?.cost).toBeNull();
  const ended = runKernel('a turn x', costs('a#1', 0.25, 9)).state;
  expect(summaryLines(ended, plainPalette)[0]).toBe('done in 1.0s for $0.25: 1 done');
});

test('one turn without a price leaves a lower bound of the cost, with the tokens', () => {
  const { state } = runKernel('a turn x\nb turn x', costs('a#1', 24.69, 6_000), costs('b#1', null, 4_000));
  expect(summaryLines(state, plainPalette)[0]).toBe('done in 2.0s for ≥ $24.69, 10.0k tokens: 2 done');
  expect(runLines(runView(state), state.cost, plainPalette)).toContain('  cost:      ≥ $24.69, 10.0k tokens');
  const tree = { now: 0, width: 80, height: 30, palette: plainPalette, closing: false, interrupted: false };
  expect(treeLines(state, { ...tree, ascii: false })[0]).toContain('  ≥ $24.69, 10.0k tokens  ');
  expect(treeLines(state, { ...tree, ascii: true })[0]).toContain('  >= $24.69, 10.0k tokens  ');
});
