// Why a step is as it is, in sentences. The state keeps decisions only (K5): which need broke it, who it waits for and
// what the failure began with is derived here.

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
  /** Sentences, the first of them the most telling. */
  readonly because: readonly string[];
}

/** Null where the run has no such step. */
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
      return [`The agent ${step.agent ?? ''} has reported; the engine is handing its work on.`];
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
  if (state.phase === 'ended')
    reasons.push(`The run is ${runStatus(state)}${reasonOf(state)}; resume takes it up again.`);
  else if (state.end !== null) reasons.push(`The run is ending${reasonOf(state)}: nothing new starts.`);
  const open = resolveNeeds(state, step).filter(isOpen);
  for (const needed of open) for (const reason of whyOpen(needed)) reasons.push(reason);
  if (step.queuedFor !== null) {
    const busy = state.agents.get(step.queuedFor)?.busy;
    const work = busy ? `, which works on ${busy.id}` : '';
    reasons.push(`It waits for the agent ${step.queuedFor}${work}; an agent works on one step at a time.`);
  }
  if (reasons.length === 0) reasons.push('It has all it needs, and starts next.');
  return reasons;
}

function whyOpen({ need, steps, mayGrow: hopes }: ResolvedNeed): readonly string[] {
  const reasons: string[] = [];
  const open = steps.filter(({ settlement }) => settlement === 'open');
  const [only] = open;
  if (only !== undefined && open.length === 1 && steps.length === 1) {
    reasons.push(`It needs ${only.id}, which is ${statusWord(only)}.`);
  } else if (only !== undefined) {
    const names = open.slice(0, NAMED_MAX).map((step) => `${step.id} (${statusWord(step)})`);
    const more = open.length > NAMED_MAX ? ` and ${open.length - NAMED_MAX} more` : '';
    reasons.push(
      `It needs ${need}, of which ${open.length} of ${steps.length} are not over: ${names.join(', ')}${more}.`,
    );
  }
  for (const step of hopes) {
    reasons.push(`It needs ${need}, and ${step.id} (${statusWord(step)}) may still bring such a step into being.`);
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
      reasons.push(`Its agent asks something (${step.dialog.name}), and only a person may answer.`);
    reasons.push(`It waits for a person to decide gate ${step.gate ?? ''}, ${since}.`);
    const gate = openGates(state).find(({ id }) => id === step.gate);
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
      step.stopping === 'timeout' ? 'Its time is up: it is being stopped.' : 'The run ends: it is being stopped.',
    );
  }
  const timeout = state.timers.get(timeoutTimer(step.id, step.attempt));
  if (timeout !== undefined) reasons.push(`Its time is up at ${formatMoment(timeout.at)}.`);
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
  if (said !== null) reasons.push(`The last it said was: ${said}`);
  if (settlement === 'open' && state.end !== null) reasons.push('The run ended before its recovery did.');
  else if (settlement === 'open') reasons.push('A recovery is under way, and what needs it waits for that.');
  else if (settlement === 'met' && definition.onError.kind === 'recover') {
    reasons.push('Its recovery succeeded, so what needs it goes on.');
  } else if (settlement === 'met') reasons.push('The workflow goes on in spite of it.');
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

/** No need broke it: its block or the run came to an end first. */
function whyNotReached(state: RunState, step: StepState, subject: string): readonly string[] {
  const stopped = step.attempt > 0 ? `${subject} was stopped` : `${subject} was never started`;
  if (step.frame.failing) {
    const failed = step.frame.steps.find(({ status, settlement }) => status === 'failed' && settlement === 'broken');
    if (failed !== undefined) return [`${stopped}: ${failed.id}, beside it, failed first.`];
  }
  if (step.frame.abandoned) return [`${stopped}: it was part of a recovery that is no longer wanted.`];
  if (state.end !== null) return [`${stopped}: the run ended first${reasonOf(state)}.`];
  return [`${stopped}.`];
}

/** From a need that broke it to the one that it began with. */
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

/** The step deep below that failed by itself. */
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
  if (text === undefined || text === '') return 'it is not known how.';
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
