import { expect, test } from 'vitest';

import { answered, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import type { Input } from '../kernel/input.ts';
import { gateConsequences, type GateConsequences } from './consequences.ts';

const after = (gate: string, program: string, ...inputs: readonly Input[]): GateConsequences | null =>
  gateConsequences(runKernel(program, ...inputs).state, gate);

const asked = (step: string, gate: string): Input => ({ kind: 'gate-asked', gate, step, prompt: null });

test('a command that asks: its dependents run, or it fails and ends the run', () => {
  expect(after('g', 'a\nb needs a\nc needs a,d\nd\ne needs b', asked('a', 'g'))).toEqual({
    approve: [{ kind: 'runs', steps: ['b'], count: 1 }],
    reject: [
      { kind: 'fails', step: 'a', handled: false },
      { kind: 'skips', steps: ['b', 'c', 'e'], count: 3 },
      { kind: 'ends', verdict: 'failed', reason: null },
    ],
  });
});

test('the last step of a run: approval ends it', () => {
  expect(after('g', 'a', asked('a', 'g'))?.approve).toEqual([{ kind: 'ends', verdict: 'done', reason: null }]);
  expect(after('g', 'a\nb', asked('a', 'g'))?.approve).toEqual([]);
});

test('a condition that asks: it goes one way or the other', () => {
  const program = 'a asks route true=expand:yes route false=expand:no\nblock yes\nship\nblock no\ntell\nlog needs tell';
  expect(after('g', program, asked('a', 'g'))).toEqual({
    approve: [{ kind: 'runs', steps: ['a.ship'], count: 1 }],
    reject: [{ kind: 'runs', steps: ['a.tell'], count: 1 }],
  });
  expect(after('g', 'a asks route false=reject\nb needs a', asked('a', 'g'))?.reject).toMatchObject([
    { kind: 'fails', step: 'a' },
    { kind: 'skips', steps: ['b'] },
    { kind: 'ends', verdict: 'failed' },
  ]);
});

test('a gate of a state machine enters the state that its route names', () => {
  const program =
    'block A visit-first\na gate g route approved=goto:B route rejected=stop:failed\nblock B visit-first\nb';
  expect(after('g', program)).toEqual({
    approve: [{ kind: 'runs', steps: ['b'], count: 1 }],
    reject: [{ kind: 'ends', verdict: 'failed', reason: null }],
  });
});

test('a failure that the workflow handles does not end the run', () => {
  expect(after('g', 'a on_error continue\nb needs a', asked('a', 'g'))?.reject).toEqual([
    { kind: 'fails', step: 'a', handled: true },
    { kind: 'runs', steps: ['b'], count: 1 },
  ]);
  expect(after('g', 'a on_error recover:fix\nblock fix\nrepair', asked('a', 'g'))?.reject).toEqual([
    { kind: 'fails', step: 'a', handled: true },
    { kind: 'runs', steps: ['a.repair'], count: 1 },
  ]);
  expect(after('g', 'a retry 3 delay 1s', asked('a', 'g'))?.reject).toEqual([{ kind: 'retries', step: 'a' }]);
});

test('the last step below another one goes on after that one', () => {
  const program = 'a pass route done=expand:sub\nb needs a\nblock sub\nx';
  expect(after('g', program, asked('a.x', 'g'))).toEqual({
    approve: [{ kind: 'runs', steps: ['b'], count: 1 }],
    reject: [
      { kind: 'fails', step: 'a.x', handled: false },
      { kind: 'fails', step: 'a', handled: false },
      { kind: 'skips', steps: ['b'], count: 1 },
      { kind: 'ends', verdict: 'failed', reason: null },
    ],
  });
});

test("an agent's dialog: the agent goes on, and is told yes or no", () => {
  const dialog: Input = {
    kind: 'effect-progressed',
    effect: 'a#1',
    progress: { dialog: { name: 'permission', text: 'May I?' } },
  };
  expect(after('a.dialog.1', 'a agent w1', dialog)).toEqual({
    approve: [{ kind: 'continues', step: 'a', agent: 'w1', allowed: true }],
    reject: [{ kind: 'continues', step: 'a', agent: 'w1', allowed: false }],
  });
});

test('a gate that nobody waits for changes nothing, and one that is not open has no consequences', () => {
  expect(after('g', 'n note g')).toEqual({ approve: [], reject: [] });
  expect(after('g', 'a', ok('a#1'))).toBeNull();
  expect(after('other', 'a gate g')).toBeNull();
});

test('what the consequences promise is what the kernel does', () => {
  const program = 'a asks route true=expand:yes route false=reject\nb needs a\nblock yes\nship';
  const { state } = runKernel(program, asked('a', 'g'));
  const approve = gateConsequences(state, 'g')?.approve[0];
  const real = runKernel(program, asked('a', 'g'), answered('a#1', 'true')).state;
  const running = [...real.steps.values()].filter(
    ({ status, children }) => status === 'running' && children.length === 0,
  );
  expect(approve).toMatchObject({ kind: 'runs', steps: running.map(({ id }) => id) });
});
