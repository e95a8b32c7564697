// What went wrong in the world, as data. The Program decides what follows: retry, route, recover, fail.

import type { Outputs } from './output.ts';
import type { Usage } from './usage.ts';

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
  /** A step below this one failed, or a workflow that was entered here ended as a failure. */
  | 'child-failed'
  /** The run would grow past a limit. */
  | 'expansion-limit'
  /** A foreach was given something that is no list. */
  | 'invalid-items'
  /** A need names a step that can no longer come into being. */
  | 'need-unmet'
  /** An outcome that the Program has no route for. */
  | 'unrouted'
  /** A template that is named at run time, and is none that the Program knows. */
  | 'template-not-found'
  /** An agent could not be started, or is there already. */
  | 'spawn-failed'
  /** An agent that is to be prompted was never started, or is gone. */
  | 'agent-not-found'
  /** An agent ended while it worked on the step. */
  | 'agent-crashed'
  /** An answer that will not do: it does not say how to go on, or not in the form that was asked for. */
  | 'protocol'
  /** A prompt did not reach its agent. */
  | 'not-delivered'
  /** An agent was silent for too long. */
  | 'idle'
  /** An agent may not work any more, or not until a moment that it tells. */
  | 'limit-reached'
  /** What was done is not what the step's policy allows. */
  | 'policy'
  /** It used up more than the step may. */
  | 'budget'
  /** The engine looked for itself, and an outcome is not borne out. */
  | 'unproven'
  /** The run cannot be put back, or must not end like this. */
  | 'refused'
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
  /** What the next attempt is told in place of its prompt, in the session of this one; null where it is told the same. */
  readonly reprompt: string | null;
  /** What it cost all the same; null where it costs nothing. */
  readonly usage: Usage | null;
}

export function failure(kind: FailureKind, message: string, more: Partial<Failure> = {}): Failure {
  const nothing = { code: null, output: null, outputs: {}, kept: [], session: null, retryAt: null };
  const unsaid = { reprompt: null, usage: null };
  return { ...nothing, ...unsaid, ...more, kind, message };
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
    case 'template-not-found':
      return 'template_not_found';
    case 'spawn-failed':
      return 'spawn_failed';
    case 'agent-not-found':
      return 'agent_not_found';
    case 'agent-crashed':
      return 'agent_crashed';
    case 'not-delivered':
      return 'not_delivered';
    case 'protocol':
      return 'protocol_error';
    case 'idle':
      return 'timeout';
    case 'limit-reached':
      return 'limit_reached';
    case 'policy':
      return 'policy_violation';
    case 'budget':
      return 'budget_spent';
    case 'unproven':
      return 'witness_failed';
    case 'refused':
      return 'refused';
    case 'need-unmet':
    case 'unrouted':
    case 'stopped':
    case 'lost':
      return 'internal';
  }
}
