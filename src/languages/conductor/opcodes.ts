// What a step asks for, by its opcode: what the readers of steps agree on, and what is lowered to a block.

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

/** A turn of an agent in the run's worktree. What it changed is looked at afterwards, whatever it says. */
export interface RunAgent {
  readonly kind: 'run_agent';
  readonly agent: AgentRequest;
  readonly policy: PolicyPair;
  /** Must prove that it completed; null: that is believed. */
  readonly witness: Witness | null;
}

/** Commands, one after the other, none left out. Their worst outcome is that of the step. */
export interface RunValidation {
  readonly kind: 'run_validation';
  readonly validators: readonly Validator[];
  readonly idleMs: number | null;
  /** Variables that scripts see. */
  readonly envAllow: readonly string[];
  readonly witness: Witness | null;
}

/** A judgement, in a form that is held to: which of five words it comes to decides what follows. */
export interface Evaluate {
  readonly kind: 'evaluate';
  readonly evaluator:
    | { readonly kind: 'agent'; readonly agent: AgentRequest }
    | { readonly kind: 'command'; readonly command: string; readonly idleMs: number | null };
  readonly allowedNext: readonly string[];
  readonly partialMax: number;
  readonly hints: AgentRequest['hints'];
}
