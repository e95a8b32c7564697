// Facts about one state: how many agents are alive, and which steps wait forever if nothing can happen any more.

import { meowCallOf } from '../ir/meow-call.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { textOf } from './causes.ts';
import type { Names } from './names.ts';

export interface Hang {
  readonly step: string;
  /** A sentence without its subject: `waits for the event ready, which nothing emits`. */
  readonly why: string;
}

/** Spawned agents that have not ended; in a state machine also its lanes. */
export function agentsIn(state: RunState): number {
  let count = 0;
  for (const { status } of state.agents.values())
    if (status === 'active' || status === 'opening' || status === 'closing') count += 1;
  if (Object.keys(state.program.machines).length === 0) return count;
  for (const { frame } of state.lanes.values()) {
    const effect = frame?.closed === false ? frame.steps[0]?.definition.act : undefined;
    if (effect?.kind === 'effect' && 'steering' in effect.effect && effect.effect.steering !== null) count += 1;
  }
  return count;
}

export function hangsIn(state: RunState, names: Names): readonly Hang[] {
  return [...state.inFlight.values()].map((step) => ({ step: names.of(state, step), why: whyOf(step) }));
}

function whyOf({ effect }: StepState): string {
  const call = effect?.kind === 'command' ? meowCallOf(textOf(effect.script)) : null;
  if (call?.kind !== 'await-event') return 'waits, and nothing in the workflow can end that';
  return `waits for the event ${call.type}, which nothing emits after it has started to wait`;
}
