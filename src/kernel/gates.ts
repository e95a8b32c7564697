// Gates: decisions that only people make, or the agents that a list of approvers names.
//
// A gate step requests a gate, or a command does on behalf of its step. A verdict belongs to one asking: it answers the
// requests that wait, and never a later one. A request belongs to the present asking if the gate waits with the same
// prompt; otherwise it begins the next. An early verdict answers the first asking.
//
// Events are signals from outside that need no decision. The state keeps the latest.

import type { JsonMap } from '../base/json.ts';
import { isAgent, needsSignature, SIGNER_PREFIX } from '../ir/approvers.ts';
import { isTurn, type Progress, type Success } from '../ir/effect.ts';
import type { StepProgress } from './decision.ts';
import type { EmittedEvent, GateVerdict } from './input.ts';
import type { AgentState, DecideContext, GateRequest, GateState, RunState, StepState } from './state.ts';
import { isFinished, isOpenGate, requesterOf, undecidedRequests } from './state.ts';

/** `approvers`: of a command's request; a gate step has its own. */
export function requestGate(
  ctx: DecideContext,
  name: string,
  step: StepState,
  prompt: string | null,
  approvers?: readonly string[],
): void {
  const gate = ctx.state.gates.get(name);
  const wanted = step.effect?.kind === 'gate' ? step.effect.approvers : (approvers ?? null);
  const existing = gate?.requests.get(requesterOf(step));
  const isRepeated = existing?.expired === false && existing.prompt === prompt;
  const before = existing?.verdict ?? null;
  // A command asks once for all attempts of its step, and keeps the answer.
  const isAnswered = isRepeated && before !== null && satisfies(wanted, before);
  const isWaiting = isRepeated && before === null && JSON.stringify(existing.approvers) === JSON.stringify(wanted);
  if ((isAnswered || isWaiting) && step.gate === name) return;
  const early = gate?.requests.size === 0 ? gate.verdict : null;
  const isUnusable = (early !== null && !satisfies(wanted, early)) || (before !== null && !isAnswered);
  const anew = isUnusable || (!isAnswered && gate !== undefined && isNext(ctx.state, gate, prompt));
  ctx.emit({ kind: 'gate-asked', gate: name, step: step.id, prompt, anew, ...(approvers && { approvers }) });
}

/** Whether a request with this prompt begins the next asking. */
function isNext(state: RunState, gate: GateState, prompt: string | null): boolean {
  return gate.requests.size > 0 && (gate.prompt !== prompt || isOver(state, gate));
}

/** No step waits for the present asking any more. */
function isOver(state: RunState, gate: GateState): boolean {
  for (const [step] of undecidedRequests(state, gate)) if (!isFinished(step)) return false;
  return true;
}

/** The verdict for this step's request; null if undecided. */
export function verdictFor(state: RunState, step: StepState): GateVerdict | null {
  return gateRequestOf(state, step, step.gate)?.verdict ?? null;
}

/** The step's request for a gate; null if it made none. */
export function gateRequestOf(state: RunState, step: StepState, gate: string | null): GateRequest | null {
  return gate === null ? null : (state.gates.get(gate)?.requests.get(requesterOf(step)) ?? null);
}

/** Whether this is the present asking of the gate, or one from before the first, which it answers. */
export function isPresentAsking(state: RunState, gate: string, asking: number): boolean {
  const asked = state.gates.get(gate)?.asked ?? 0;
  return asking === asked || (asking === 0 && asked === 1);
}

/** False if the gate was asked, and nobody waits for its verdict any more. */
export function canBeDecided(state: RunState, name: string): boolean {
  const gate = state.gates.get(name);
  return gate === undefined || gate.requests.size === 0 || !isOver(state, gate) || isOpenGate(state, gate);
}

/** The lists of approvers that do not allow the verdict; null stands for any person. */
export function objectors(state: RunState, gate: string, verdict: GateVerdict): readonly (readonly string[] | null)[] {
  return approverLists(state, gate).filter((approvers) => !satisfies(approvers, verdict));
}

/** Who may decide the gate, for display; null: any person. */
export function approversOf(state: RunState, gate: string): readonly string[] | null {
  const lists = approverLists(state, gate).filter((list) => list !== null);
  return lists.length === 0 ? null : [...new Set(lists.flat())];
}

/** A verdict must satisfy each: that of the gate's steps, and those of the requests that wait for it. */
function approverLists(state: RunState, name: string): readonly (readonly string[] | null)[] {
  const gate = state.gates.get(name);
  const undecided = gate === undefined ? [] : [...undecidedRequests(state, gate)];
  const waiting = undecided.filter(([step]) => !isFinished(step)).map(([, { approvers }]) => approvers);
  const ofSteps = Object.values(state.program.blocks).flatMap(({ steps }) =>
    steps.flatMap(({ act }) =>
      act.kind === 'effect' && act.effect.kind === 'gate' && act.effect.gate === name ? [act.effect.approvers] : [],
    ),
  );
  const ofProgram = ofSteps.includes(null) ? null : ofSteps.flatMap((list) => list ?? []);
  if (ofSteps.length > 0) return [ofProgram, ...waiting];
  return waiting.length > 0 ? waiting : [null];
}

/** Whether the list allows the verdict. With a signer in the list, only signatures count. */
function satisfies(approvers: readonly string[] | null, { by, proof }: GateVerdict): boolean {
  const kind = proof?.kind ?? 'key';
  if (approvers === null) return kind !== 'agent';
  if (!needsSignature(approvers)) return approvers.includes(by) && isAgent(by) === (kind === 'agent');
  return kind === 'signature' && (approvers.includes(SIGNER_PREFIX + by) || approvers.includes(by));
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

/** Progress of an effect in flight. A question that only a person may answer opens a gate on behalf of the step. */
export function onProgress(ctx: DecideContext, step: StepState, progress: Progress): void {
  const { session, delivery, dialog, doubt, printed = [] } = progress;
  for (const text of printed.slice(step.printed)) ctx.emit({ kind: 'step-printed', step: step.id, text });
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

/** Limits on stored events. Waiting steps are woken at once, so nothing needs older events. */
const EVENTS_MAX = 10_000;
const EVENTS_SIZE_MAX = 16_000_000;

export function addEvent(state: RunState, event: EmittedEvent, at: number): void {
  const { events } = state;
  events.count += 1;
  events.size += sizeOf(event);
  events.latest.push({ ...event, seq: events.count, at });
  events.ids.add(event.id);
  if (events.latest.length < 2 * EVENTS_MAX && events.size < EVENTS_SIZE_MAX) return;
  // Removes half of them at a time, so that the cost per event is constant.
  for (const forgotten of events.latest.splice(0, Math.ceil(events.latest.length / 2))) {
    events.ids.delete(forgotten.id);
    events.size -= sizeOf(forgotten);
  }
}

function sizeOf({ type, data }: EmittedEvent): number {
  return type.length + JSON.stringify(data).length;
}
