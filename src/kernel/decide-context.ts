// Context of one `decide` call: the state with all decisions so far applied, and the time of the input.

import type { Failure } from '../ir/failure.ts';
import type { Decision } from './decision.ts';
import type { RunState, StepState } from './state.ts';

export interface DecideContext {
  readonly state: RunState;
  readonly at: number;
  /** Appends the decision to the record and applies it to the state. */
  emit(decision: Decision): void;
}

/** Called when a block cannot be instantiated: fails the step that asked for it. */
export type Fail = (ctx: DecideContext, step: StepState, problem: Failure) => void;
