import { expect, test } from 'vitest';

import { parseProgram } from '../../test/kernel-rig/program-text.ts';
import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { success } from '../ir/effect.ts';
import type { Usage } from '../ir/output.ts';
import type { Input } from '../kernel/input.ts';
import { initialState, type RunState } from '../kernel/state.ts';
import { runStatus, statusView, type StatusView } from './status.ts';

test('a run before its first record is pending, and has the given id', () => {
  const state = initialState(parseProgram(['a']));
  expect(statusView(state, { id: 'wf-9' })).toEqual({
    id: 'wf-9',
    language: 'meow',
    source: 'trace',
    status: 'pending',
    started_at: null,
    ended_at: null,
    forked_from: null,
    result: null,
    error: null,
    vars: {},
    meta: {},
    steps: {},
    agents: [],
    gates: [],
    counts: { pending: 0, running: 0, done: 0, failed: 0, skipped: 0 },
    cost: { usd: 0, tokens: 0, unknown_turns: 0 },
    pause: null,
    warnings: [],
  });
});

test('a step has every key of the contract, whether it ran or not', () => {
  const { state } = runKernel('a\nb needs a', ok('a#1', { path: '/x' }));
  const { steps, id, vars, meta, started_at } = statusView(state);
  expect({ id, vars, meta, started_at }).toEqual({
    id: 'wf-1',
    vars: { who: 'ann' },
    meta: { ticket: 'T-1' },
    started_at: '2026-01-08T21:00:00.000Z',
  });
  expect(steps['a']).toEqual({
    executor: 'shell',
    status: 'done',
    outcome: null,
    attempt: 1,
    needs: [],
    agent: null,
    delivery: null,
    outputs: { path: '/x' },
    notes: null,
    error: null,
    waiting_for: null,
    started_at: '2026-01-08T21:00:00.000Z',
    finished_at: '2026-01-08T21:00:01.000Z',
    kept_from: null,
    expanded_from: null,
    expanded_into: [],
  });
  expect(steps['b']).toMatchObject({ status: 'running', needs: ['a'], finished_at: null });
});

test('a step that waits for its retry is pending and shows its last error', () => {
  const { state } = runKernel('a retry 2 delay 10s', bad('a#1'));
  expect(statusView(state).steps['a']).toMatchObject({
    status: 'pending',
    attempt: 1,
    error: {
      type: 'command_failed',
      message: 'exited with status 3',
      code: 3,
      output: 'compiling\nerror: no such file\n',
      attempt: 1,
    },
  });
});

test('a failed run names the original failure, not a step that failed because of it', () => {
  const { state } = runKernel('a pass route done=expand:sub\nb needs a\nblock sub\nx', bad('a.x#1'));
  const { status, error, counts, ended_at } = statusView(state);
  expect({ status, error, counts, ended_at }).toEqual({
    status: 'failed',
    error: { type: 'command_failed', message: 'exited with status 3', step: 'a.x' },
    counts: { pending: 0, running: 0, done: 0, failed: 2, skipped: 1 },
    ended_at: '2026-01-08T21:00:01.000Z',
  });
});

test('growth is listed at both ends; a foreach lists its iterations', () => {
  const { state } = runKernel('e each [1,2] sub\nx pass route done=inline:sub\nblock sub\na\nb needs a');
  const { steps } = statusView(state);
  expect(steps['e']?.expanded_into).toEqual(['e.0', 'e.1']);
  expect(steps['x']?.expanded_into).toEqual(['x.a', 'x.b']);
  expect(steps['e.1.b']).toMatchObject({ expanded_from: 'e', needs: ['e.1.a'] });
});

test('a run is waiting if only gates are open; a pending retry is not waiting', () => {
  expect(runStatus(runKernel('a gate g\nb', ok('b#1')).state)).toBe('waiting');
  expect(runStatus(runKernel('a gate g\nb').state)).toBe('running');
  expect(runStatus(runKernel('a gate g\nb retry 2 delay 10s', bad('b#1')).state)).toBe('running');
});

test('a loop lists its rounds, and has the outputs of the last one', () => {
  const program = 'fix loop round max 2 until check\nblock round\nwork\nblock check\nuntil asks';
  const { state } = runKernel(program, ok('fix.1.work#1'), ok('fix.1.until#1'), ok('fix.2.work#1', { left: 0 }));
  const ended = runKernel(
    program,
    ok('fix.1.work#1'),
    ok('fix.1.until#1'),
    ok('fix.2.work#1', { left: 0 }),
    ok('fix.2.until#1'),
  );
  expect(statusView(state).steps['fix']).toMatchObject({ status: 'running', expanded_into: ['fix.1', 'fix.2'] });
  expect(statusView(ended.state).steps['fix']).toMatchObject({
    status: 'failed',
    outputs: { rounds: 2, outcome: 'exhausted', work: { left: 0 } },
    error: { type: 'rounds_exhausted', message: 'the loop is not over after 2 rounds' },
  });
});

test('gates are shown open, and with who decided them', () => {
  const decided: Input = {
    kind: 'gate-decided',
    gate: 'g',
    verdict: { approved: false, by: 'bob', notes: 'no', answer: null },
    message: null,
  };
  const { state: open } = runKernel('a gate g');
  expect(statusView(open).gates).toEqual([
    {
      id: 'g',
      step: 'a',
      status: 'open',
      kind: 'approval',
      prompt: null,
      opened_at: '2026-01-08T21:00:00.000Z',
      approvers: null,
      decided_by: null,
      notes: null,
    },
  ]);
  const { state } = runKernel('a gate g\nb', decided);
  expect(statusView(state).gates).toMatchObject([
    { id: 'g', step: 'a', status: 'rejected', decided_by: 'bob', notes: 'no' },
  ]);
});

test("a gate's kind says whether it asks for a yes or no, a text, or an agent's dialog", () => {
  const dialog: Input = {
    kind: 'effect-progressed',
    effect: 'b#1',
    progress: { dialog: { name: 'permission', text: 'May I?' } },
  };
  const { state } = runKernel('a gate b.dialog\nb agent w1', dialog);
  expect(statusView(state).gates.map(({ id, kind }) => ({ id, kind }))).toEqual([
    { id: 'b.dialog', kind: 'approval' },
    { id: 'b.dialog.1', kind: 'dialog' },
  ]);
});

test('a gate that several steps ask for shows all their questions, and who may decide', () => {
  const asked = (step: string, prompt: string | null, approvers: readonly string[]): Input => ({
    kind: 'gate-asked',
    gate: 'g',
    step,
    prompt,
    approvers,
  });
  const { state } = runKernel(
    'a\nb\nc',
    asked('a', 'Delete it?', ['ada']),
    asked('b', 'Is it sunny?', ['ada', 'ssh:bob']),
  );
  expect(statusView(state).gates).toMatchObject([
    { prompt: 'a: Delete it?\nb: Is it sunny?', approvers: ['ada', 'ssh:bob'], status: 'open' },
  ]);
});

test('an agent with a step is active', () => {
  const { state } = runKernel('a agent w1\nb agent w1\nc needs a agent w2', ok('a#1'));
  expect(statusView(state).agents).toMatchObject([
    { id: 'w1', status: 'active', current_step: 'b', stack: [] },
    { id: 'w2', status: 'active', current_step: 'c' },
  ]);
});

test.each<[RunState['phase'], string]>([
  ['running', 'running'],
  ['ending', 'running'],
  ['cleaning', 'cleaning_up'],
])('the phase %s is called %s', (phase, status) => {
  const { state } = runKernel('a');
  state.phase = phase;
  expect(runStatus(state)).toBe(status);
});

test('a stopped run has no error', () => {
  const { state } = runKernel('a', { kind: 'stop-requested', by: 'ann', force: false }, bad('a#1', 'stopped'));
  expect(statusView(state)).toMatchObject({ status: 'stopped', error: null, steps: { a: { status: 'skipped' } } });
});

test('the cost is unknown if an agent does not report it', () => {
  const costOf = (...usages: readonly Usage[]): StatusView['cost'] => {
    const steps = usages.map((_, index) => `s${index}`).join('\n');
    const answers = usages.map((usage, index): Input => {
      const outcome = { ...success(), usage };
      return { kind: 'effect-finished', effect: `s${index}#1`, outcome };
    });
    return statusView(runKernel(steps, ...answers).state).cost;
  };
  expect(costOf({ usd: 1, tokens: 10 })).toEqual({ usd: 1, tokens: 10, unknown_turns: 0 });
  expect(costOf({ usd: null, tokens: null })).toEqual({ usd: null, tokens: null, unknown_turns: 1 });
  expect(costOf({ usd: null, tokens: 7 }, { usd: null, tokens: null })).toEqual({
    usd: null,
    tokens: 7,
    unknown_turns: 2,
  });
});
