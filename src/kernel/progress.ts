// Progress of an effect in flight: its session, the delivery of its prompt, and questions only a person may answer. A
// question opens a gate on behalf of the step.

import { isTurn } from '../ir/effect.ts';
import type { Progress } from '../ir/effect.ts';
import type { StepProgress } from './decision.ts';
import { requestGate, gateRequestOf } from './gates.ts';
import type { AgentState, StepState } from './state.ts';
import type { DecideContext } from './decide-context.ts';

export function onProgress(ctx: DecideContext, step: StepState, { session, delivery, dialog, doubt }: Progress): void {
  if (doubt !== undefined) ctx.emit({ kind: 'warned', message: `step ${step.id}: ${doubt}` });
  const plain: StepProgress = {
    ...(session === undefined || isInSession(step, session) ? {} : { session }),
    ...(delivery === undefined || delivery === step.delivery ? {} : { delivery }),
  };
  if (Object.keys(plain).length > 0) ctx.emit({ kind: 'step-progressed', step: step.id, progress: plain });
  if (dialog === undefined) return;
  // Ignores a repeated question; a different question replaces the previous one.
  if (dialog === null || dialog.name !== step.dialog?.name || dialog.text !== step.dialog.text)
    withdrawDialog(ctx, step);
  if (dialog === null || step.dialog !== null || ctx.state.end !== null) return;
  const gate = `${step.id}.dialog.${step.dialogs + 1}`;
  ctx.emit({ kind: 'step-progressed', step: step.id, progress: { dialog: { ...dialog, gate } } });
  requestGate(ctx, gate, step, dialog.text);
}

export function onAgentProgress(ctx: DecideContext, { name, info }: AgentState, { session }: Progress): void {
  if (session === undefined || info === null || info.session === session) return;
  ctx.emit({ kind: 'agent-session', agent: name, session });
}

/** The question is gone: answered in the terminal, or by a verdict. */
function withdrawDialog(ctx: DecideContext, step: StepState): void {
  if (step.dialog === null) return;
  const { gate } = step.dialog;
  if (gateRequestOf(ctx.state, step, gate)?.verdict === null) ctx.emit({ kind: 'gate-expired', gate, step: step.id });
  ctx.emit({ kind: 'step-progressed', step: step.id, progress: { dialog: null } });
}

function isInSession({ frame, effect }: StepState, session: string): boolean {
  const { nextSession } = frame;
  return !isTurn(effect) || (nextSession.kind === 'resume' && nextSession.id === session);
}
