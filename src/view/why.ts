// Explains the status of a step in sentences. The state stores decisions only (K5); this file derives which need
// failed, what the step waits for, and where a failure began.

import { sanitize } from '../base/sanitize.ts';
import { formatMoment } from '../base/time.ts';
import { plainText } from '../ir/text.ts';
import { gateRequestOf, verdictFor } from '../kernel/gates.ts';
import {
  presentRound,
  retryTimer,
  roundTimer,
  type RunState,
  type StepState,
  type StepStatus,
  timeoutTimer,
} from '../kernel/state.ts';
import { failedSteps, isHandled } from './cause.ts';
import { isOpen, type ResolvedNeed, resolveNeeds } from './needed.ts';
import { gateCommand, moment, openGates, refusalOf, runStatus, verdictText } from './status.ts';
import { DELIVERY_TEXTS, isDelivered, roundsText } from './step.ts';
import { lastOutput } from './summary.ts';

interface WhyView {
  readonly step: string;
  readonly status: StepStatus;
  readonly because: readonly string[];
}

export function whyView(state: RunState, stepId: string, interrupted = false): WhyView | null {
  const step = state.steps.get(stepId);
  if (step === undefined) return null;
  return { step: step.id, status: step.status, because: because(state, step, interrupted).map(sanitize) };
}

const NAMED_MAX = 5;

function because(state: RunState, step: StepState, interrupted: boolean): readonly string[] {
  switch (step.status) {
    case 'pending':
      return whyPending(state, step, interrupted);
    case 'running':
      return whyRunning(state, step, interrupted);
    case 'completing':
      return [`The agent ${step.agent ?? ''} has reported; the engine is completing the step.`];
    case 'done':
      return [
        `It finished at ${moment(step.finishedAt) ?? 'an unknown time'}${inAttempt(step)}.`,
        ...whoDecided(state, step),
        ...whatItEnded(state, step),
      ];
    case 'failed':
      return whyFailed(state, step);
    case 'skipped':
      return whySkipped(state, step);
  }
}

function whyPending(state: RunState, step: StepState, interrupted: boolean): readonly string[] {
  const retry = state.timers.get(retryTimer(step.id));
  if (retry !== undefined) {
    return [
      `It waits for its next attempt, at ${formatMoment(retry.at)}.`,
      `Attempt ${step.attempt} failed: ${sentence(step.failure?.message)}`,
    ];
  }
  const reasons = [...whyDecided(state, step, interrupted)];
  if (state.parked.has(step)) reasons.push(`Attempt ${step.attempt} failed: ${sentence(step.failure?.message)}`);
  if (state.phase === 'ended') reasons.push(`The run is ${runStatus(state)}${reasonOf(state)}; a resume continues it.`);
  else if (state.end !== null) reasons.push(`The run is ending${reasonOf(state)}: nothing new starts.`);
  const open = resolveNeeds(state, step).filter(isOpen);
  for (const needed of open) for (const reason of whyOpen(needed)) reasons.push(reason);
  if (step.queuedFor !== null) {
    const busy = state.agents.get(step.queuedFor)?.busy;
    const work = busy ? `, which works on ${busy.id}` : '';
    reasons.push(`It waits for the agent ${step.queuedFor}${work}; an agent works on one step at a time.`);
  }
  if (state.parked.has(step) && state.end === null) reasons.push('It waits until the run is resumed.');
  if (reasons.length === 0) reasons.push('All its needs are met; it starts next.');
  return reasons;
}

function whyOpen({ need, steps, mayGrow }: ResolvedNeed): readonly string[] {
  const reasons: string[] = [];
  const open = steps.filter(({ settlement }) => settlement === 'open');
  const [first] = open;
  if (first !== undefined && steps.length === 1) {
    reasons.push(`It needs ${first.id}, which is ${statusWord(first)}.`);
  } else if (first !== undefined) {
    const names = open.slice(0, NAMED_MAX).map((step) => `${step.id} (${statusWord(step)})`);
    const more = open.length > NAMED_MAX ? ` and ${open.length - NAMED_MAX} more` : '';
    reasons.push(`It needs ${need}; ${open.length} of ${steps.length} are not finished: ${names.join(', ')}${more}.`);
  }
  for (const step of mayGrow) {
    reasons.push(`It needs ${need}, and ${step.id} (${statusWord(step)}) may still create such a step.`);
  }
  return reasons;
}

function statusWord(step: StepState): string {
  return step.status === 'failed' ? 'recovering from a failure' : step.status;
}

function whyRunning(state: RunState, step: StepState, interrupted: boolean): readonly string[] {
  const reasons: string[] = [];
  const since = `since ${moment(step.startedAt) ?? 'an unknown time'}${inAttempt(step)}`;
  const request = gateRequestOf(state, step, step.gate);
  if (step.delivery !== null && !isDelivered(step.delivery)) reasons.push(`Its ${DELIVERY_TEXTS[step.delivery]}.`);
  const decided = whyDecided(state, step, interrupted);
  if (decided.length > 0) reasons.push(...decided);
  else if (request !== null && !request.expired && request.verdict === null) {
    if (step.dialog !== null)
      reasons.push(`Its agent asks a question (${step.dialog.name}) that only a person may answer.`);
    const gate = openGates(state).find(({ id }) => id === step.gate);
    const waiting = gate?.opened_at ? `since ${gate.opened_at}` : since;
    reasons.push(`It waits for a person to decide gate ${step.gate ?? ''}, ${waiting}.`);
    if (state.request !== null && gate !== undefined)
      reasons.push(`To decide: ${gateCommand(state.request.id, gate)}, or meow reject.`);
  } else if (step.effect === null) {
    const rounds = roundsText(step);
    const next = state.timers.get(roundTimer(step.id));
    if (rounds !== null) reasons.push(`It is in ${rounds}.`);
    if (next !== undefined) reasons.push(`The next round begins at ${formatMoment(next.at)}.`);
    const present = presentRound(step);
    const children = step.children.filter(({ round }) => round === undefined || round === present);
    const below = children.flatMap(({ steps }) => steps);
    const open = below.filter(({ settlement }) => settlement === 'open');
    reasons.push(`It has been running ${since} and waits for ${open.length} of ${below.length} steps below it.`);
    const moving = open.filter(({ status }) => status === 'running').slice(0, NAMED_MAX);
    if (moving.length > 0) reasons.push(`Running there: ${moving.map(({ id }) => id).join(', ')}.`);
  } else {
    reasons.push(`It has been running ${since}${step.agent === null ? '' : `, by the agent ${step.agent}`}.`);
  }
  if (step.stopping !== null) {
    reasons.push(`${step.stopping === 'timeout' ? 'It timed out and' : 'The run is ending, so it'} is being stopped.`);
  }
  const timeout = state.timers.get(timeoutTimer(step.id, step.attempt));
  if (timeout !== undefined) reasons.push(`It times out at ${formatMoment(timeout.at)}.`);
  return reasons;
}

/** Who decided its gate, or that its condition was false. */
function whoDecided(state: RunState, step: StepState): readonly string[] {
  const verdict = verdictFor(state, step);
  if (verdict !== null) return [`Gate ${step.gate ?? ''} was ${sentence(verdictText(verdict))}`];
  if (refusalOf(state, step) !== 'false') return [];
  return [`Its condition was false: the command exited with status ${plainText(step.outputs['exit_code'] ?? 1)}.`];
}

/** For a done step whose outcome made the run fail. */
function whatItEnded(state: RunState, step: StepState): readonly string[] {
  if (state.end !== 'failed' || failedSteps(state)[0] !== step) return [];
  return [`Its outcome ended the run as failed${reasonOf(state)}.`];
}

/** A decision that nobody has acted on. */
function whyDecided(state: RunState, step: StepState, interrupted: boolean): readonly string[] {
  const verdict = gateRequestOf(state, step, step.gate)?.verdict ?? null;
  if (verdict === null || (state.end !== 'paused' && !interrupted)) return [];
  return [`Gate ${step.gate ?? ''} was ${sentence(verdictText(verdict))} That takes effect when the run is resumed.`];
}

function whyFailed(state: RunState, step: StepState): readonly string[] {
  const { failure, settlement, definition } = step;
  const reasons = [
    `It failed at ${moment(step.finishedAt) ?? 'an unknown time'}${inAttempt(step)}: ${sentence(failure?.message)}`,
  ];
  if (failure?.kind !== 'gate-rejected') reasons.push(...whoDecided(state, step));
  if (failure?.kind === 'child-failed') {
    const child = rootBelow(step);
    if (child !== null) reasons.push(`It began with ${child.id}: ${sentence(child.failure?.message)}`);
  }
  const said = failure === null ? null : lastOutput(failure);
  if (said !== null) reasons.push(`Its last output was: ${said}`);
  if (settlement === 'open' && state.end !== null) reasons.push('The run ended before its recovery did.');
  else if (settlement === 'open') reasons.push('A recovery is running; dependent steps wait for it.');
  else if (settlement === 'met' && definition.onError.kind === 'recover') {
    reasons.push('Its recovery succeeded, so dependent steps run.');
  } else if (settlement === 'met') reasons.push('The workflow continues despite the failure.');
  else if (isHandled(state, step)) reasons.push('A step above it handles the failure.');
  else if (step.recoveries > 0) reasons.push('Its recovery failed too.');
  return reasons;
}

function whySkipped(state: RunState, step: StepState): readonly string[] {
  const chain = brokenNeeds(state, step);
  const root = chain.at(-1);
  if (root === undefined) return whyNotReached(state, step, 'It');
  const path = chain.map(({ id }) => id).join(', which needs ');
  const reasons = [`It needs ${path}, which ${root.status === 'skipped' ? 'was skipped' : 'failed'}.`];
  if (root.failure !== null) reasons.push(`${root.id} failed: ${sentence(root.failure.message)}`);
  if (root.status === 'skipped') reasons.push(...whyNotReached(state, root, root.id));
  return reasons;
}

/** No need failed: its block or the run ended first. */
function whyNotReached(state: RunState, step: StepState, subject: string): readonly string[] {
  const stopped = step.attempt > 0 ? `${subject} was stopped` : `${subject} was never started`;
  if (step.frame.failing) {
    const failed = step.frame.steps.find(({ status, settlement }) => status === 'failed' && settlement === 'broken');
    if (failed !== undefined) return [`${stopped}: ${failed.id}, beside it, failed first.`];
  }
  if (step.frame.abandoned) return [`${stopped}: it was part of a recovery that was abandoned.`];
  if (state.end !== null) return [`${stopped}: the run ended first${reasonOf(state)}.`];
  return [`${stopped}.`];
}

/** The chain from a failed need to the original failure. */
function brokenNeeds(state: RunState, step: StepState): readonly StepState[] {
  const chain = new Set([step]);
  // The loop also visits the steps that it adds.
  for (const last of chain) {
    if (last.status === 'failed') break;
    const needed = resolveNeeds(state, last).flatMap(({ steps }) => steps);
    const broken = needed.filter((other) => other.settlement === 'broken' && !chain.has(other));
    const next = broken.find(({ status }) => status === 'failed') ?? broken[0];
    if (next !== undefined) chain.add(next);
  }
  return [...chain].slice(1);
}

/** The step below that failed by itself. */
function rootBelow(step: StepState): StepState | null {
  for (const child of step.children.flatMap(({ steps }) => steps)) {
    if (child.status !== 'failed' || child.settlement !== 'broken') continue;
    return (child.failure?.kind === 'child-failed' ? rootBelow(child) : null) ?? child;
  }
  return null;
}

function inAttempt({ attempt }: StepState): string {
  return attempt > 1 ? `, in attempt ${attempt}` : '';
}

function reasonOf({ reason }: RunState): string {
  return reason === null ? '' : ` (${reason})`;
}

function sentence(text: string | undefined): string {
  if (text === undefined || text === '') return 'the cause is unknown.';
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
