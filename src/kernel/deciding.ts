// One call of the kernel: the state as the decisions so far have made it, and the moment they are made at.

import type { Failure } from '../ir/failure.ts';
import type { Decision } from './decision.ts';
import type { RunState, StepState } from './state.ts';

export interface Turn {
  readonly state: RunState;
  readonly at: number;
  /** Records the decision and applies it. */
  emit(decision: Decision): void;
}

/** How growth says that it is impossible: the step that asked for it fails. */
export type Fail = (turn: Turn, step: StepState, problem: Failure) => void;
