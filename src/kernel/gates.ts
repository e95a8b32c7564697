// Gates: decisions that only people make. A gate is asked for by a step that is one, or by a command on behalf of its
// step. A decision answers everybody who asks before it is made and stays theirs; one that came before anybody asked waits
// for the first.

import type { JsonMap } from '../base/json.ts';
import type { Success } from '../ir/effect.ts';
import type { GateVerdict } from './input.ts';
import type { Asking, RunState, StepState } from './state.ts';
import { askerOf } from './state.ts';
import type { Turn } from './deciding.ts';

export function askGate(turn: Turn, name: string, step: StepState, prompt: string | null): void {
  const gate = turn.state.gates.get(name);
  const known = gate?.askers.get(askerOf(step));
  if (known !== undefined && !known.expired && step.gate === name) return;
  const anew = known === undefined && gate !== undefined && gate.verdict !== null && gate.askers.size > 0;
  turn.emit({ kind: 'gate-asked', gate: name, step: step.id, prompt, anew });
}

/** What was decided for this step; null while nobody has. */
export function verdictFor(state: RunState, step: StepState): GateVerdict | null {
  return askingOf(state, step, step.gate)?.verdict ?? null;
}

/** What a step asked for by the name of a gate; null where it did not. */
export function askingOf(state: RunState, step: StepState, gate: string | null): Asking | null {
  return gate === null ? null : (state.gates.get(gate)?.askers.get(askerOf(step)) ?? null);
}

/** Who alone may decide a gate, as its steps say; null: anybody. */
export function approversOf({ program }: RunState, gate: string): readonly string[] | null {
  const lists = Object.values(program.blocks).flatMap(({ steps }) =>
    steps.flatMap(({ act }) =>
      act.kind === 'effect' && act.effect.kind === 'gate' && act.effect.gate === gate ? [act.effect.approvers] : [],
    ),
  );
  return lists.length === 0 || lists.includes(null) ? null : lists.flatMap((list) => list ?? []);
}

/** What a decision hands on to the step that asked for it. */
export function outputsOf(verdict: GateVerdict): JsonMap {
  const { by, notes, answer } = verdict;
  return { decided_by: by, notes: notes ?? '', reason: notes ?? '', ...(answer === null ? {} : { answer }) };
}

/** The step asked for a gate, nobody decided in time, and its condition says so by its status. */
export function expiredAt(state: RunState, step: StepState, answer: Success): boolean {
  const asking = askingOf(state, step, step.gate);
  return asking?.expired === true && asking.verdict === null && answer.outputs['exit_code'] === EXPIRED_STATUS;
}

/** What `meow await-approval` exits with when its time is up. */
export const EXPIRED_STATUS = 3;
