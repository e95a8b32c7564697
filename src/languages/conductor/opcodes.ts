// The request of a step, by opcode: the result of reading, and the source of lowering.

import type { AgentRequest, EndInspection, GitOperation, PolicyPair, Validator, Witness } from '../../ir/conducted.ts';
import type { GateSpec } from '../../ir/effect.ts';
import type { Text } from '../../ir/text.ts';

export type OpcodeSpec =
  | RunAgent
  | RunValidation
  | Evaluate
  | { readonly kind: 'gate'; readonly effect: GateSpec<Text> }
  | { readonly kind: 'rollback'; readonly target: Extract<GitOperation, { kind: 'rollback' }>['target'] }
  | { readonly kind: 'stop'; readonly verdict: EndInspection['verdict']; readonly reason: string | null };

/** An agent's turn in the run's worktree. Its changes are checked afterwards, whatever it says. */
export interface RunAgent {
  readonly kind: 'run_agent';
  readonly agent: AgentRequest;
  readonly policy: PolicyPair;
  /** Must confirm the completion; null: no confirmation needed. */
  readonly witness: Witness | null;
}

/** Commands in sequence, all of them. The worst outcome is that of the step. */
export interface RunValidation {
  readonly kind: 'run_validation';
  readonly validators: readonly Validator[];
  readonly idleMs: number | null;
  /** Variables that scripts see. */
  readonly envAllow: readonly string[];
  readonly witness: Witness | null;
}

/** An evaluation with a fixed form: one of five statuses decides the route. */
export interface Evaluate {
  readonly kind: 'evaluate';
  readonly evaluator:
    | { readonly kind: 'agent'; readonly agent: AgentRequest }
    | { readonly kind: 'command'; readonly command: string; readonly idleMs: number | null };
  readonly allowedNext: readonly string[];
  readonly partialMax: number;
  readonly hints: AgentRequest['hints'];
}
