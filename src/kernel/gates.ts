// Gates: decisions that only people make. A gate step requests a gate, or a command does on behalf of its step. A
// verdict answers all requests made before it. An early verdict waits for the first request.

import type { JsonMap } from '../base/json.ts';
import type { Success } from '../ir/effect.ts';
import type { GateVerdict } from './input.ts';
import type { GateRequest, RunState, StepState } from './state.ts';
import { requesterOf } from './state.ts';
import type { DecideContext } from './decide-context.ts';

export function requestGate(ctx: DecideContext, name: string, step: StepState, prompt: string | null): void {
  const gate = ctx.state.gates.get(name);
  const existing = gate?.requests.get(requesterOf(step));
  if (existing !== undefined && !existing.expired && step.gate === name) return;
  const anew = existing === undefined && gate !== undefined && gate.verdict !== null && gate.requests.size > 0;
  ctx.emit({ kind: 'gate-asked', gate: name, step: step.id, prompt, anew });
}

/** The verdict for this step's request; null if undecided. */
export function verdictFor(state: RunState, step: StepState): GateVerdict | null {
  return gateRequestOf(state, step, step.gate)?.verdict ?? null;
}

/** The step's request for a gate; null if it made none. */
export function gateRequestOf(state: RunState, step: StepState, gate: string | null): GateRequest | null {
  return gate === null ? null : (state.gates.get(gate)?.requests.get(requesterOf(step)) ?? null);
}

/** People allowed to decide the gate; null: anybody. */
export function approversOf({ program }: RunState, gate: string): readonly string[] | null {
  const lists = Object.values(program.blocks).flatMap(({ steps }) =>
    steps.flatMap(({ act }) =>
      act.kind === 'effect' && act.effect.kind === 'gate' && act.effect.gate === gate ? [act.effect.approvers] : [],
    ),
  );
  return lists.length === 0 || lists.includes(null) ? null : lists.flatMap((list) => list ?? []);
}

/** Outputs that a verdict adds to the step. */
export function verdictOutputs(verdict: GateVerdict): JsonMap {
  const { by, notes, answer } = verdict;
  return { decided_by: by, notes: notes ?? '', reason: notes ?? '', ...(answer === null ? {} : { answer }) };
}

/** The step's request timed out, and its command reports that by its exit code. */
export function hasExpired(state: RunState, step: StepState, answer: Success): boolean {
  const request = gateRequestOf(state, step, step.gate);
  return request?.expired === true && request.verdict === null && answer.outputs['exit_code'] === EXPIRED_EXIT_CODE;
}

/** Exit code of `meow await-approval` after its timeout. */
export const EXPIRED_EXIT_CODE = 3;
