// Runs the kernel for tests of its state or journal: a Program as text, and the inputs.
//
//   const { state, records } = runKernel('a\nb needs a', ok('a#1'), bad('b#1'));

import { success } from '../../src/ir/effect.ts';
import { failure, type FailureKind } from '../../src/ir/failure.ts';
import type { Outputs } from '../../src/ir/output.ts';
import { UNLIMITED } from '../../src/ir/program.ts';
import { decide } from '../../src/kernel/decide.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import type { Input } from '../../src/kernel/input.ts';
import { initialState, type RunState } from '../../src/kernel/state.ts';
import { parseProgram } from './program-text.ts';

/** 2026-01-08T21:00:00Z, the time of the first input. */
export const START_TIME = 1_767_906_000_000;

export const START: Input = {
  kind: 'run-requested',
  request: {
    id: 'wf-1',
    mark: 'm',
    variables: { who: 'ann' },
    meta: { ticket: 'T-1' },
    cwd: '/project',
    allowOutside: false,
    allowance: UNLIMITED,
  },
  programHash: 'hash',
};

/** State and journal after these inputs, one second apart. */
export function runKernel(
  program: string,
  ...inputs: readonly Input[]
): { state: RunState; records: readonly JournalRecord[] } {
  const state = initialState(parseProgram(program.split('\n')));
  const records = [START, ...inputs].map((input, index): JournalRecord => {
    const at = START_TIME + index * 1_000;
    return { seq: index + 1, at, input, decisions: decide(state, input, at) };
  });
  return { state, records };
}

export function ok(effect: string, outputs: Outputs = {}): Input {
  return { kind: 'effect-finished', effect, outcome: success(outputs) };
}

/** A condition that takes a route. */
export function answered(effect: string, route: string): Input {
  return { kind: 'effect-finished', effect, outcome: success({}, { route }) };
}

export function bad(effect: string, kind: FailureKind = 'exit-nonzero'): Input {
  const problem = failure(kind, 'exited with status 3', { code: 3, output: 'compiling\nerror: no such file\n' });
  return { kind: 'effect-finished', effect, outcome: { kind: 'failure', failure: problem } };
}
