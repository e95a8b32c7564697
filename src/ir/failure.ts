// Failures of effects and steps, as data. The Program decides what follows: retry, route, recover, fail.

import type { Outputs, Usage } from './output.ts';

/** Kinds of failure, and their names in workflows, `meow status` and recovery templates. */
const ERROR_TYPES = {
  /** A command exited with a status other than 0. */
  'exit-nonzero': 'command_failed',
  /** A signal that MEOW did not send killed the command. */
  signal: 'command_failed',
  /** A condition could not be evaluated: not found, not executable, or killed. */
  'condition-error': 'condition_error',
  timeout: 'timeout',
  /** The command could not be started: no such folder, no such shell. */
  'not-started': 'command_failed',
  'output-missing': 'output_missing',
  /** A declared output does not have its type. */
  'output-invalid': 'output_missing',
  /** A `{{reference}}` has no value; nothing was started. */
  unresolved: 'variable_unresolved',
  /** A child frame failed, or a workflow entered here ended as failed. */
  'child-failed': 'child_failed',
  /** A person rejected the gate that the step requires. */
  'gate-rejected': 'gate_rejected',
  /** A loop is not over after its last round. */
  'rounds-exhausted': 'rounds_exhausted',
  /** The run would exceed a limit. */
  'expansion-limit': 'expansion_limit',
  /** The items of a foreach are not a list. */
  'invalid-items': 'invalid_items',
  /** A needed step can never exist. */
  'need-unmet': 'internal',
  /** An outcome without a route. */
  unrouted: 'internal',
  /** A template named at run time does not exist. */
  'template-not-found': 'template_not_found',
  /** An agent could not be started, or is already running. */
  'spawn-failed': 'spawn_failed',
  /** The agent to prompt was never started, or has exited. */
  'agent-not-found': 'agent_not_found',
  'agent-crashed': 'agent_crashed',
  /** An invalid answer: no transition, or not in the requested form. */
  protocol: 'protocol_error',
  'not-delivered': 'not_delivered',
  /** An agent was silent for too long. */
  idle: 'timeout',
  /** The agent reached a usage limit, possibly until a known time. */
  'limit-reached': 'limit_reached',
  /** The changes violate the step's policy. */
  policy: 'policy_violation',
  budget: 'budget_spent',
  /** A check by the engine contradicts the outcome. */
  unproven: 'witness_failed',
  /** The rollback is impossible, or the run must not end this way. */
  refused: 'refused',
  /** Stopped by MEOW: the run was stopped, or was failing. */
  stopped: 'internal',
  /** Lost with an earlier engine, without a result: it is started again. */
  lost: 'internal',
} as const;
export type FailureKind = keyof typeof ERROR_TYPES;

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
  /** Temporary, but its end is unknown: the step waits until the run is resumed. It does not count as a retry. */
  readonly parks?: boolean;
  /** Lost before it began: its agent is not lost. */
  readonly unbegun?: true;
  /** What the next attempt waits for, if it is known. */
  readonly waitingFor?: WaitingFor;
  /** Replaces the prompt in the next attempt, in the same session; null repeats the prompt. */
  readonly reprompt: string | null;
  /** Cost despite the failure; null if none. */
  readonly usage: Usage | null;
}

/** The reset of a usage limit, or the end of quiet hours. */
export interface WaitingFor {
  readonly kind: 'limit' | 'quiet';
  /** In milliseconds since 1970; null if unknown. */
  readonly until: number | null;
  /** Adapter and credential; null for quiet hours. */
  readonly account: string | null;
  /** The run whose agent reported the limit; null for quiet hours. */
  readonly reportedBy: string | null;
}

export function failure(kind: FailureKind, message: string, more: Partial<Failure> = {}): Failure {
  const defaults = { code: null, output: null, outputs: {}, kept: [], session: null };
  return { ...defaults, retryAt: null, reprompt: null, usage: null, ...more, kind, message };
}

export function errorType(kind: FailureKind): string {
  return ERROR_TYPES[kind];
}
