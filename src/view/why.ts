// Explains the status of a step in sentences. The state stores decisions only (K5); this file derives which need
// failed, what the step waits for, and where a failure began.

import { formatMoment } from '../base/time.ts';
import type { RunState, StepState, StepStatus } from '../kernel/state.ts';
import { gateRequestOf } from '../kernel/gates.ts';
import { retryTimer, timeoutTimer } from '../kernel/state.ts';
import type { ResolvedNeed } from './needed.ts';
import { isOpen, resolveNeeds } from './needed.ts';
import { lastLine } from './summary.ts';
import { sanitize } from './sanitize.ts';
import { gateCommand, openGates, runStatus } from './status.ts';
import { DELIVERY_TEXTS, isDelivered } from './delivery.ts';

export interface WhyView {
  readonly step: string;
  readonly status: StepStatus;
  /** Sentences, most important first. */
  readonly because: readonly string[];
}

/** Null if the run has no such step. */
export function whyView(state: RunState, stepId: string): WhyView | null {
  const step = state.steps.get(stepId);
  if (step === undefined) return null;
  return { step: step.id, status: step.status, because: because(state, step).map(sanitize) };
}

const NAMED_MAX = 5;

function because(state: RunState, step: StepState): readonly string[] {
  switch (step.status) {
    case 'pending':
      return whyPending(state, step);
    case 'running':
      return whyRunning(state, step);
    case 'completing':
      return [`The agent ${step.agent ?? ''} has reported; the engine is completing the step.`];
    case 'done':
      return [`It finished at ${moment(step.finishedAt)}${inAttempt(step)}.`];
    case 'failed':
      return whyFailed(state, step);
    case 'skipped':
      return whySkipped(state, step);
  }
}

function whyPending(state: RunState, step: StepState): readonly string[] {
  const retry = state.timers.get(retryTimer(step.id));
  if (retry !== undefined) {
    return [
      `It waits for its next attempt, at ${formatMoment(retry.at)}.`,
      `Attempt ${step.attempt} failed: ${sentence(step.failure?.message)}`,
    ];
  }
  const reasons: string[] = [];
  if (state.phase === 'ended') reasons.push(`The run is ${runStatus(state)}${reasonOf(state)}; a resume continues it.`);
  else if (state.end !== null) reasons.push(`The run is ending${reasonOf(state)}: nothing new starts.`);
  const open = resolveNeeds(state, step).filter(isOpen);
  for (const needed of open) for (const reason of whyOpen(needed)) reasons.push(reason);
  if (step.queuedFor !== null) {
    const busy = state.agents.get(step.queuedFor)?.busy;
    const work = busy ? `, which works on ${busy.id}` : '';
    reasons.push(`It waits for the agent ${step.queuedFor}${work}; an agent works on one step at a time.`);
  }
  if (reasons.length === 0) reasons.push('All its needs are met; it starts next.');
  return reasons;
}

function whyOpen({ need, steps, mayGrow }: ResolvedNeed): readonly string[] {
  const reasons: string[] = [];
  const open = steps.filter(({ settlement }) => settlement === 'open');
  const [only] = open;
  if (only !== undefined && open.length === 1 && steps.length === 1) {
    reasons.push(`It needs ${only.id}, which is ${statusWord(only)}.`);
  } else if (only !== undefined) {
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

function whyRunning(state: RunState, step: StepState): readonly string[] {
  const reasons: string[] = [];
  const since = `since ${moment(step.startedAt)}${inAttempt(step)}`;
  const agent = step.agent === null ? '' : ` by the agent ${step.agent}`;
  const request = gateRequestOf(state, step, step.gate);
  if (step.delivery !== null && !isDelivered(step.delivery)) reasons.push(`Its ${DELIVERY_TEXTS[step.delivery]}.`);
  if (request !== null && !request.expired && request.verdict === null) {
    if (step.dialog !== null)
      reasons.push(`Its agent asks a question (${step.dialog.name}) that only a person may answer.`);
    const gate = openGates(state).find(({ id }) => id === step.gate);
    const opened = gate?.opened_at ?? null;
    reasons.push(
      `It waits for a person to decide gate ${step.gate ?? ''}, ${opened === null ? since : `since ${opened}`}.`,
    );
    if (state.request !== null && gate !== undefined)
      reasons.push(`To decide: ${gateCommand(state.request.id, gate)}, or meow reject.`);
  } else if (step.effect === null) {
    const below = step.children.flatMap(({ steps }) => steps);
    const open = below.filter(({ settlement }) => settlement === 'open');
    reasons.push(`It runs ${since}, and waits for ${open.length} of ${below.length} steps below it.`);
    const moving = open.filter(({ status }) => status === 'running').slice(0, NAMED_MAX);
    if (moving.length > 0) reasons.push(`Running there: ${moving.map(({ id }) => id).join(', ')}.`);
  } else {
    reasons.push(`It runs${agent} ${since}.`);
  }
  if (step.stopping !== null) {
    reasons.push(
      step.stopping === 'timeout' ? 'It timed out and is being stopped.' : 'The run is ending, so it is being stopped.',
    );
  }
  const timeout = state.timers.get(timeoutTimer(step.id, step.attempt));
  if (timeout !== undefined) reasons.push(`It times out at ${formatMoment(timeout.at)}.`);
  return reasons;
}

function whyFailed(state: RunState, step: StepState): readonly string[] {
  const { failure, settlement, definition } = step;
  const reasons = [`It failed at ${moment(step.finishedAt)}${inAttempt(step)}: ${sentence(failure?.message)}`];
  if (failure?.kind === 'child-failed') {
    const child = rootBelow(step);
    if (child !== null) reasons.push(`It began with ${child.id}: ${sentence(child.failure?.message)}`);
  }
  const said = lastLine(failure?.output ?? null);
  if (said !== null) reasons.push(`Its last output was: ${said}`);
  if (settlement === 'open' && state.end !== null) reasons.push('The run ended before its recovery did.');
  else if (settlement === 'open') reasons.push('A recovery is running; dependent steps wait for it.');
  else if (settlement === 'met' && definition.onError.kind === 'recover') {
    reasons.push('Its recovery succeeded, so dependent steps run.');
  } else if (settlement === 'met') reasons.push('The workflow continues despite the failure.');
  else if (step.recoveries > 0) reasons.push('Its recovery failed too.');
  return reasons;
}

function whySkipped(state: RunState, step: StepState): readonly string[] {
  const chain = brokenNeeds(state, step);
  const root = chain.at(-1);
  if (root !== undefined) {
    const path = chain.map(({ id }) => id);
    const reasons =
      path.length === 1
        ? [`It needs ${root.id}, which ${outcomeWord(root)}.`]
        : [`It needs ${path.join(', which needs ')}, which ${outcomeWord(root)}.`];
    if (root.failure !== null) reasons.push(`${root.id} failed: ${sentence(root.failure.message)}`);
    if (root.status === 'skipped') reasons.push(...whyNotReached(state, root, root.id));
    return reasons;
  }
  return whyNotReached(state, step, 'It');
}

function outcomeWord(step: StepState): string {
  return step.status === 'skipped' ? 'was skipped' : 'failed';
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
  const chain: StepState[] = [];
  const seen = new Set([step]);
  for (let now: StepState | undefined = step; now !== undefined; ) {
    const broken: StepState[] = resolveNeeds(state, now)
      .flatMap(({ steps }) => steps)
      .filter((needed) => needed.settlement === 'broken' && !seen.has(needed));
    now = broken.find(({ status }) => status === 'failed') ?? broken[0];
    if (now === undefined) break;
    seen.add(now);
    chain.push(now);
    if (now.status === 'failed') break;
  }
  return chain;
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

function moment(at: number | null): string {
  return at === null ? 'an unknown time' : formatMoment(at);
}

function sentence(text: string | undefined): string {
  if (text === undefined || text === '') return 'the cause is unknown.';
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
