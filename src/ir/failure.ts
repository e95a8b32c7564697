// What went wrong in the world, as data. The Program decides what follows: retry, route, recover, fail.

import type { Outputs } from './output.ts';

export type FailureKind =
  /** A command ended with another status than 0. */
  | 'exit-nonzero'
  /** A command was ended by a signal that we did not send. */
  | 'signal'
  /** A condition could not be evaluated: not found, not executable, or killed. */
  | 'condition-error'
  /** The step's own time limit passed. */
  | 'timeout'
  /** The command could not be started: no such folder, no such shell. */
  | 'not-started'
  /** A declared output is absent. */
  | 'output-missing'
  /** A declared output does not have its type. */
  | 'output-invalid'
  /** A `{{reference}}` has no value; nothing was started. */
  | 'unresolved'
  /** A step below this one failed. */
  | 'child-failed'
  /** The run would grow past a limit. */
  | 'expansion-limit'
  /** A foreach was given something that is no list. */
  | 'invalid-items'
  /** A need names a step that can no longer come into being. */
  | 'need-unmet'
  /** An outcome that the Program has no route for. */
  | 'unrouted'
  /** We stopped it: the run was stopped, or was failing. */
  | 'stopped'
  /** It was started in an earlier life of the engine and left no result: it is run again. */
  | 'lost';

export interface Failure {
  readonly kind: FailureKind;
  /** A sentence for people. */
  readonly message: string;
  readonly code: number | null;
  /** The end of what the command said on stderr, or stdout where stderr is empty. */
  readonly output: string | null;
  /** What could be captured all the same, and which of it is kept in files. */
  readonly outputs: Outputs;
  readonly kept: readonly string[];
  /** The session that a turn took place in, though it failed: the next attempt goes on there. */
  readonly session: string | null;
  /** When it may be tried again, where the world said so. That is no fault of the step, and costs it no retry. */
  readonly retryAt: number | null;
}

export function failure(kind: FailureKind, message: string, more: Partial<Failure> = {}): Failure {
  return { code: null, output: null, outputs: {}, kept: [], session: null, retryAt: null, ...more, kind, message };
}

/** The word that workflows, `meow status` and recovery templates use for a kind. */
export function errorType(kind: FailureKind): string {
  switch (kind) {
    case 'exit-nonzero':
    case 'signal':
    case 'not-started':
      return 'command_failed';
    case 'condition-error':
      return 'condition_error';
    case 'timeout':
      return 'timeout';
    case 'output-missing':
    case 'output-invalid':
      return 'output_missing';
    case 'unresolved':
      return 'variable_unresolved';
    case 'child-failed':
      return 'child_failed';
    case 'expansion-limit':
      return 'expansion_limit';
    case 'invalid-items':
      return 'invalid_items';
    case 'need-unmet':
    case 'unrouted':
    case 'stopped':
    case 'lost':
      return 'internal';
  }
}
