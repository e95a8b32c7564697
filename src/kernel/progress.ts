// What becomes known of an effect before it is answered: the session it takes place in, how far a prompt has come, and
// what an agent asks that only a person may answer. For that a gate is opened, on behalf of the step.

import { isTurn } from '../ir/effect.ts';
import type { Progress } from '../ir/effect.ts';
import type { StepProgress } from './decision.ts';
import { askGate, askingOf } from './gates.ts';
import type { AgentState, StepState } from './state.ts';
import type { Turn } from './deciding.ts';

export function noteProgress(turn: Turn, step: StepState, { session, delivery, dialog, doubt }: Progress): void {
  if (doubt !== undefined) turn.emit({ kind: 'warned', message: `step ${step.id}: ${doubt}` });
  const plain: StepProgress = {
    ...(session === undefined || isIn(step, session) ? {} : { session }),
    ...(delivery === undefined || delivery === step.delivery ? {} : { delivery }),
  };
  if (Object.keys(plain).length > 0) turn.emit({ kind: 'step-progressed', step: step.id, progress: plain });
  if (dialog === undefined) return;
  // The same question, told again, is no further one; a further one takes the place of the one before.
  if (dialog === null || dialog.name !== step.dialog?.name || dialog.text !== step.dialog.text) withdraw(turn, step);
  if (dialog === null || step.dialog !== null || turn.state.end !== null) return;
  const gate = `${step.id}.dialog.${step.dialogs + 1}`;
  turn.emit({ kind: 'step-progressed', step: step.id, progress: { dialog: { ...dialog, gate } } });
  askGate(turn, gate, step, dialog.text);
}

export function noteAgentProgress(turn: Turn, { name, opening }: AgentState, { session }: Progress): void {
  if (session === undefined || opening === null || opening.session === session) return;
  turn.emit({ kind: 'agent-session', agent: name, session });
}

/** It asks no longer: somebody answered it in the terminal, or it has been answered by what a person decided. */
function withdraw(turn: Turn, step: StepState): void {
  if (step.dialog === null) return;
  const { gate } = step.dialog;
  if (askingOf(turn.state, step, gate)?.verdict === null) turn.emit({ kind: 'gate-expired', gate, step: step.id });
  turn.emit({ kind: 'step-progressed', step: step.id, progress: { dialog: null } });
}

function isIn({ frame, effect }: StepState, session: string): boolean {
  const { nextSession } = frame;
  return !isTurn(effect) || (nextSession.kind === 'resume' && nextSession.id === session);
}
