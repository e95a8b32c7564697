// Failures of effects and steps, as data. The Program decides what follows: retry, route, recover, fail.

import type { Outputs } from './output.ts';
import type { Usage } from './usage.ts';

export type FailureKind =
  /** A command exited with a status other than 0. */
  | 'exit-nonzero'
  /** A signal that MEOW did not send killed the command. */
  | 'signal'
  /** A condition could not be evaluated: not found, not executable, or killed. */
  | 'condition-error'
  /** The step timed out. */
  | 'timeout'
  /** The command could not be started: no such folder, no such shell. */
  | 'not-started'
  /** A declared output is absent. */
  | 'output-missing'
  /** A declared output does not have its type. */
  | 'output-invalid'
  /** A `{{reference}}` has no value; nothing was started. */
  | 'unresolved'
  /** A child frame failed, or a workflow entered here ended as failed. */
  | 'child-failed'
  /** The run would exceed a limit. */
  | 'expansion-limit'
  /** The items of a foreach are not a list. */
  | 'invalid-items'
  /** A needed step can never exist. */
  | 'need-unmet'
  /** An outcome without a route. */
  | 'unrouted'
  /** A template named at run time does not exist. */
  | 'template-not-found'
  /** An agent could not be started, or is already running. */
  | 'spawn-failed'
  /** The agent to prompt was never started, or has exited. */
  | 'agent-not-found'
  /** An agent exited during the step. */
  | 'agent-crashed'
  /** An invalid answer: no transition, or not in the requested form. */
  | 'protocol'
  /** A prompt did not reach its agent. */
  | 'not-delivered'
  /** An agent was silent for too long. */
  | 'idle'
  /** The agent reached a usage limit, possibly until a known time. */
  | 'limit-reached'
  /** The changes violate the step's policy. */
  | 'policy'
  /** The step exceeded its budget. */
  | 'budget'
  /** A check by the engine contradicts the outcome. */
  | 'unproven'
  /** The rollback is impossible, or the run must not end this way. */
  | 'refused'
  /** Stopped by MEOW: the run was stopped, or was failing. */
  | 'stopped'
  /** Lost with an earlier engine, without a result: it is started again. */
  | 'lost';

export interface Failure {
  readonly kind: FailureKind;
  /** A sentence for people. */
  readonly message: string;
  readonly code: number | null;
  /** Last bytes of stderr, or of stdout if stderr is empty. */
  readonly output: string | null;
  /** Outputs captured despite the failure, and the names of those stored in files. */
  readonly outputs: Outputs;
  readonly kept: readonly string[];
  /** The session of a failed turn: the next attempt resumes it. */
  readonly session: string | null;
  /** Earliest time of the next attempt, if the failure is temporary. It does not count as a retry. */
  readonly retryAt: number | null;
  /** Replaces the prompt in the next attempt, in the same session; null repeats the prompt. */
  readonly reprompt: string | null;
  /** Cost despite the failure; null if none. */
  readonly usage: Usage | null;
}

export function failure(kind: FailureKind, message: string, more: Partial<Failure> = {}): Failure {
  const nothing = { code: null, output: null, outputs: {}, kept: [], session: null, retryAt: null };
  const unsaid = { reprompt: null, usage: null };
  return { ...nothing, ...unsaid, ...more, kind, message };
}

/** The name of a kind in workflows, `meow status` and recovery templates. */
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
