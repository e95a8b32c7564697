// Gates: decisions that only people make. A gate is asked for by a step that is one, or by a command on behalf of its
// step; a decision belongs to the asking that it answers, and one that came before anybody asked waits for the first.

import type { JsonMap } from '../base/json.ts';
import type { Success } from '../ir/effect.ts';
import type { GateVerdict } from './input.ts';
import type { RunState, StepState } from './state.ts';
import { askerOf } from './state.ts';
import type { Turn } from './turn.ts';

export function askGate(turn: Turn, name: string, step: StepState, prompt: string | null): void {
  const gate = turn.state.gates.get(name);
  const asker = askerOf(step);
  if (gate?.askers.has(asker) === true && step.gate === name && !step.gateExpired) return;
  const anew = gate !== undefined && gate.verdict !== null && gate.askers.size > 0 && !gate.askers.has(asker);
  turn.emit({ kind: 'gate-asked', gate: name, step: step.id, prompt, anew });
}

/** What was decided for this step; null while nobody has. */
export function verdictFor(state: RunState, step: StepState): GateVerdict | null {
  const gate = step.gate === null ? undefined : state.gates.get(step.gate);
  return gate?.askers.has(askerOf(step)) === true ? gate.verdict : null;
}

/** What a decision hands on to the step that asked for it. */
export function outputsOf(verdict: GateVerdict): JsonMap {
  const { by, notes, answer } = verdict;
  return { decided_by: by, notes: notes ?? '', reason: notes ?? '', ...(answer === null ? {} : { answer }) };
}

/** The step asked for a gate, nobody decided in time, and its condition says so by its status. */
export function expiredAt(state: RunState, step: StepState, answer: Success): boolean {
  const { gateExpired } = step;
  return gateExpired && verdictFor(state, step) === null && answer.outputs['exit_code'] === EXPIRED_STATUS;
}

/** What `meow await-approval` exits with when its time is up. */
export const EXPIRED_STATUS = 3;
