// Decides how a prompt gets into an agent in a terminal: what to do next, given an observation. Pure: observations and
// times go in, acts come out. The caller observes again before each act.
//
// delivery/1  Never presses, types or pastes while a dialog is shown. That time does not count against the limit.
// delivery/2  Puts the text in once. Repeats it only if the agent certainly did not get it: its input is readable and
//             empty, and the submit keys were never pressed.
// delivery/3  Presses the submit keys again only while the text is visible in the input, and a bounded number of times.
// delivery/4  `accepted` needs evidence: the agent's hook; without a hook, that the text left the input and the agent
//             works or worked; if work cannot be seen, that the screen changed. A text that merely vanished is not
//             accepted.
// delivery/5  Clears an existing draft before adding text, but not while a person is typing.
// delivery/6  After an engine crash the hook and the screen decide. Doubt counts as delivered: a second prompt does
//             more harm than a late one.

import type { Delivery } from '../../../ir/effect.ts';

export interface DeliveryPlan {
  readonly preKeys: readonly string[];
  readonly preDelayMs: number;
  readonly postDelayMs: number;
  readonly postKeys: readonly string[];
  readonly clearKeys: readonly string[];
  /** Only the hook decides. */
  readonly byHook: boolean;
  /** The screen shows whether the agent works. */
  readonly showsBusy: boolean;
  /** The agent queues prompts that arrive during work. */
  readonly canQueue: boolean;
  /** Each line of the text is submitted as it is put in. */
  readonly submitsLines: boolean;
  /** Time that a slow program may need to read the text. */
  readonly takesMs: number;
  /** Time limit for the confirmation. */
  readonly confirmMs: number;
  /** Time limit for the whole delivery, without dialogs. */
  readonly timeoutMs: number;
}

/** One observation of the screen, with everything known at that moment. */
export interface Observation {
  /** Monotonic clock, in milliseconds. */
  readonly now: number;
  readonly isAlive: boolean;
  /** The sender no longer wants the delivery. */
  readonly isGivenUp: boolean;
  /** The agent's hook reported that it received the text. */
  readonly isConfirmed: boolean;
  readonly hasDialog: boolean;
  readonly inMode: boolean;
  readonly isReady: boolean;
  readonly isBusy: boolean;
  /** The agent worked since the last submit, however briefly. */
  readonly hasWorked: boolean;
  readonly isQueued: boolean;
  readonly draft: 'some' | 'perhaps' | 'none';
  /** The row of the cursor. */
  readonly row: string;
  /** Whether the input contains the text. */
  readonly holds: 'yes' | 'no' | 'untold';
  readonly screen: string;
}

export type Act =
  /** Waits until something changes or the time is over. */
  | {
      readonly kind: 'wait';
      readonly ms: number;
      readonly delivery: Extract<Delivery, 'sending' | 'blocked-on-dialog'>;
    }
  | { readonly kind: 'leave-mode' }
  | { readonly kind: 'press'; readonly what: 'clear' | 'prepare' | 'submit'; readonly keys: readonly string[] }
  | { readonly kind: 'put' }
  | { readonly kind: 'finish'; readonly outcome: DeliveryOutcome };

export type DeliveryOutcome =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'queued' }
  /** See delivery/6. */
  | { readonly kind: 'assumed-delivered' }
  /** `reason`: a clause. */
  | { readonly kind: 'failed'; readonly delivery: FailedDelivery; readonly reason: string };

export type FailedDelivery = Exclude<Delivery, 'sending' | 'accepted' | 'queued'>;

export interface DeliveryState {
  readonly phase: Phase;
  /** Without time during dialogs. */
  readonly spentMs: number;
  readonly seenAt: number;
  readonly sawDialog: boolean;
  readonly busySince: number | null;
  readonly draft: Draft;
  readonly preparedAt: number | null;
  readonly puts: number;
  readonly givenUpAt: number | null;
}

interface Draft {
  readonly row: string;
  readonly since: number;
  readonly clears: number;
  readonly clearedAt: number;
  /** Clears that changed nothing. */
  readonly vain: number;
}

/**
 * `at`: when the phase began; null if unknown or after a dialog. `before`: the screen at the time of the put; null if
 * an earlier engine put the text in. `isInherited`: an earlier engine did it, and this one has not acted since.
 */
type Phase =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'put'; readonly at: number | null; readonly before: string | null; readonly isInherited: boolean }
  | {
      readonly kind: 'submitted';
      readonly at: number | null;
      readonly before: string | null;
      readonly isInherited: boolean;
      readonly presses: number;
      readonly wasBusy: boolean;
      readonly wasQueued: boolean;
      /** The text was visible in the input at some time. */
      readonly wasSeen: boolean;
      readonly goneSince: number | null;
    }
  | { readonly kind: 'withdrawing' };

/**
 * What an earlier engine may have left: nothing, a text that may be in the input, or one that may have been submitted.
 */
export type InheritedState = 'nothing' | 'put' | 'submitted';

export function beginDelivery(from: InheritedState, now: number): DeliveryState {
  return {
    phase: PHASES[from],
    spentMs: 0,
    seenAt: now,
    sawDialog: false,
    busySince: null,
    draft: { row: '', since: now, clears: 0, clearedAt: Number.NEGATIVE_INFINITY, vain: 0 },
    preparedAt: null,
    puts: 0,
    givenUpAt: null,
  };
}

const PHASES: Readonly<Record<InheritedState, Phase>> = {
  nothing: { kind: 'waiting' },
  put: { kind: 'put', at: null, before: null, isInherited: true },
  submitted: {
    kind: 'submitted',
    at: null,
    before: null,
    isInherited: true,
    presses: 1,
    wasBusy: false,
    wasQueued: false,
    wasSeen: false,
    goneSince: null,
  },
};

/** `state`: applies now. `done`: replaces it after the act succeeded. */
export interface NextStep {
  readonly act: Act;
  readonly state: DeliveryState;
  readonly done: DeliveryState;
}

export function nextStep(plan: DeliveryPlan, before: DeliveryState, observation: Observation): NextStep {
  const state = applyObservation(before, observation);
  if (observation.isConfirmed)
    return finish(state, { kind: isBehindWork(plan, state, observation) ? 'queued' : 'accepted' });
  if (!observation.isAlive) return failed(state, 'dead', 'the agent has ended');
  if (observation.hasDialog) {
    if (observation.isGivenUp) return failed(state, 'blocked-on-dialog', 'the agent asks something else first');
    return step({ kind: 'wait', ms: POLL_MS, delivery: 'blocked-on-dialog' }, state);
  }
  if (state.phase.kind === 'withdrawing') return withdraw(plan, state, observation);
  if (observation.isGivenUp || state.spentMs >= plan.timeoutMs) return giveUp(plan, state, observation);
  if (observation.inMode) return step({ kind: 'leave-mode' }, state);
  switch (state.phase.kind) {
    case 'waiting':
      return whileWaiting(plan, state, observation);
    case 'put':
      return afterPut(plan, state, state.phase, observation);
    case 'submitted':
      return afterSubmit(plan, state, state.phase, observation);
  }
}

/** Poll interval. */
const POLL_MS = 1_000;
/** A person who typed nothing for this long is not typing. */
const QUIET_MS = 1_000;
/** Time for a clear to show; longer than the interval in which a second press means another command. */
const CLEAR_MS = 1_500;
/** One key press may clear a single line. */
const CLEARS_MAX = 400;
const VAIN_MAX = 3;
const TAKE_BACK_MS = 3_000;
/** Time for a busy agent to finish its turn before a prompt is queued. */
const BUSY_MS = 2_000;
/** A program that echoes nothing has read its input by then. */
const UNSEEN_MS = 500;
const PUTS_MAX = 2;
const PRESSES_MAX = 5;
/** A text that is gone this long was not just being redrawn. */
const SETTLED_MS = 150;

function applyObservation(before: DeliveryState, observation: Observation): DeliveryState {
  const { now, hasDialog, isBusy, draft, row } = observation;
  const isSameDraft = draft === 'none' || before.draft.row === row;
  return {
    ...before,
    spentMs: before.spentMs + (before.sawDialog ? 0 : now - before.seenAt),
    seenAt: now,
    sawDialog: hasDialog,
    busySince: isBusy ? (before.busySince ?? now) : null,
    draft: isSameDraft ? before.draft : { ...before.draft, row, since: now },
    phase: hasDialog ? pausedByDialog(before.phase) : updatePhase(before.phase, observation),
  };
}

/** Restarts the phase's time after the dialog. */
function pausedByDialog(phase: Phase): Phase {
  switch (phase.kind) {
    case 'waiting':
    case 'withdrawing':
      return phase;
    case 'put':
      return { ...phase, at: null };
    case 'submitted':
      return { ...phase, at: null, goneSince: null };
  }
}

function updatePhase(phase: Phase, { now, holds }: Observation): Phase {
  switch (phase.kind) {
    case 'waiting':
    case 'withdrawing':
      return phase;
    case 'put':
      return { ...phase, at: phase.at ?? now };
    case 'submitted':
      return {
        ...phase,
        at: phase.at ?? now,
        wasSeen: phase.wasSeen || holds === 'yes',
        goneSince: holds === 'yes' ? null : (phase.goneSince ?? now),
      };
  }
}

function isBehindWork(
  { canQueue }: DeliveryPlan,
  { phase }: DeliveryState,
  { isQueued, isBusy }: Observation,
): boolean {
  return isQueued || (canQueue && isBusy && phase.kind === 'submitted' && phase.wasBusy);
}

function whileWaiting(plan: DeliveryPlan, state: DeliveryState, observation: Observation): NextStep {
  const { now, isReady, isBusy, draft } = observation;
  // Some agents are not ready while their input contains text.
  if (!isReady && draft !== 'some') return wait(state, POLL_MS);
  if (isBusy) {
    const busyMs = now - (state.busySince ?? now);
    if (!plan.canQueue) return wait(state, POLL_MS);
    if (busyMs < BUSY_MS) return wait(state, BUSY_MS - busyMs);
  }
  if (draft !== 'none') {
    const next = clearDraft(plan, state, observation);
    if (next !== null) return next;
    if (!isReady) return wait(state, POLL_MS);
  }
  const { preKeys, preDelayMs } = plan;
  if (state.preparedAt === null && preKeys.length > 0) {
    return step({ kind: 'press', what: 'prepare', keys: preKeys }, state, { ...state, preparedAt: now });
  }
  const sinceMs = now - (state.preparedAt ?? Number.NEGATIVE_INFINITY);
  if (sinceMs < preDelayMs) return wait(state, preDelayMs - sinceMs);
  return put(state, observation);
}

function put(state: DeliveryState, { now, screen }: Observation): NextStep {
  const phase: Phase = { kind: 'put', at: now, before: screen, isInherited: false };
  return step({ kind: 'put' }, state, { ...state, phase, puts: state.puts + 1 });
}

/** Null if the apparent draft is not a draft. */
function clearDraft(plan: DeliveryPlan, state: DeliveryState, { now, draft }: Observation): NextStep | null {
  const { since, clears, clearedAt, vain } = state.draft;
  if (clears === 0 && now - since < QUIET_MS) return wait(state, QUIET_MS - (now - since));
  const isVain = clears > 0 && since <= clearedAt;
  if (isVain && now - clearedAt < CLEAR_MS) return wait(state, CLEAR_MS - (now - clearedAt));
  if (isVain && draft === 'perhaps') return null;
  if (plan.clearKeys.length === 0 || clears >= CLEARS_MAX || vain + Number(isVain) >= VAIN_MAX) {
    return failed(state, 'draft-stuck', 'there is a draft in its input that cannot be cleared');
  }
  const cleared: Draft = { ...state.draft, clears: clears + 1, clearedAt: now, vain: isVain ? vain + 1 : 0 };
  return step({ kind: 'press', what: 'clear', keys: plan.clearKeys }, state, { ...state, draft: cleared });
}

function afterPut(
  plan: DeliveryPlan,
  state: DeliveryState,
  phase: Extract<Phase, { kind: 'put' }>,
  observation: Observation,
): NextStep {
  const { now, holds, isReady, isBusy, draft } = observation;
  const sinceMs = now - (phase.at ?? now);
  if (holds === 'yes') {
    if (sinceMs < plan.postDelayMs) return wait(state, plan.postDelayMs - sinceMs);
    return submit(plan, state, observation, phase.before);
  }
  if (holds === 'no' && !plan.submitsLines) {
    if (!isReady || isBusy || draft === 'some') return wait(state, POLL_MS);
    const lateMs = Math.max(plan.confirmMs, UNSEEN_MS) + plan.takesMs;
    if (sinceMs < lateMs) return wait(state, lateMs - sinceMs);
    if (state.puts >= PUTS_MAX) return failed(state, 'draft-stuck', 'its input did not take the text');
    return put(state, observation);
  }
  const unseenMs = Math.max(phase.isInherited ? plan.confirmMs : plan.postDelayMs, UNSEEN_MS);
  if (sinceMs < unseenMs) return wait(state, unseenMs - sinceMs);
  return phase.isInherited
    ? finish(state, { kind: 'assumed-delivered' })
    : submit(plan, state, observation, phase.before);
}

function submit(plan: DeliveryPlan, state: DeliveryState, observation: Observation, before: string | null): NextStep {
  const presses = state.phase.kind === 'submitted' ? state.phase.presses : 0;
  const wasSeen = state.phase.kind === 'submitted' && state.phase.wasSeen;
  const phase: Phase = {
    kind: 'submitted',
    at: observation.now,
    before,
    isInherited: false,
    presses: presses + 1,
    wasBusy: observation.isBusy,
    wasQueued: observation.isQueued,
    wasSeen: wasSeen || observation.holds === 'yes',
    goneSince: null,
  };
  return step({ kind: 'press', what: 'submit', keys: plan.postKeys }, state, { ...state, phase });
}

function afterSubmit(
  plan: DeliveryPlan,
  state: DeliveryState,
  phase: Extract<Phase, { kind: 'submitted' }>,
  observation: Observation,
): NextStep {
  const { now, holds, isBusy, hasWorked, isQueued } = observation;
  const sinceMs = now - (phase.at ?? now);
  if (holds === 'yes') {
    if (sinceMs < plan.confirmMs) return wait(state, plan.confirmMs - sinceMs);
    if (phase.presses >= PRESSES_MAX) return giveUp(plan, state, observation);
    return submit(plan, state, observation, phase.before);
  }
  if (isQueued && !phase.wasQueued) return finish(state, { kind: 'queued' });
  if (phase.isInherited) {
    if (isBusy && !plan.byHook) return finish(state, { kind: 'accepted' });
    if (sinceMs < plan.confirmMs) return wait(state, plan.confirmMs - sinceMs);
    return finish(state, { kind: 'assumed-delivered' });
  }
  if (plan.byHook) return wait(state, POLL_MS);
  if ((isBusy || hasWorked) && !phase.wasBusy) return finish(state, { kind: 'accepted' });
  if (plan.showsBusy && !phase.wasBusy) return wait(state, POLL_MS);
  const goneMs = now - (phase.goneSince ?? now);
  if (goneMs < SETTLED_MS) return wait(state, SETTLED_MS - goneMs);
  // A program that echoes nothing received the text.
  if (observation.screen !== phase.before || !phase.wasSeen) return finish(state, { kind: 'accepted' });
  return failed(state, 'draft-stuck', 'the text has left its input, and nothing came of it');
}

/** Removes a text that is visible and not submitted. */
function giveUp(plan: DeliveryPlan, before: DeliveryState, observation: Observation): NextStep {
  const { now, isReady, isBusy, holds, draft, row, inMode } = observation;
  const state: DeliveryState = { ...before, givenUpAt: before.givenUpAt ?? now };
  if (state.phase.kind === 'waiting') {
    if (draft === 'some') return failed(state, 'draft-stuck', 'there is a draft in its input');
    return failed(state, 'not-ready', isReady && isBusy ? 'it was busy all the time' : 'it was not ready for it');
  }
  if (holds !== 'yes') {
    // The text may be about to appear.
    const leftMs = plan.clearKeys.length === 0 ? 0 : (state.givenUpAt ?? now) + UNSEEN_MS - now;
    return leftMs > 0 ? wait(state, leftMs) : failed(state, 'draft-stuck', 'it was put in, and not confirmed');
  }
  if (plan.clearKeys.length === 0 || isTooLate(state, now)) return failed(state, 'draft-stuck', UNSUBMITTED);
  if (inMode) return step({ kind: 'leave-mode' }, state);
  const done: DeliveryState = {
    ...state,
    phase: { kind: 'withdrawing' },
    draft: { row, since: now, clears: 1, clearedAt: now, vain: 0 },
  };
  return step({ kind: 'press', what: 'clear', keys: plan.clearKeys }, state, done);
}

const UNSUBMITTED = 'it was in its input, and could not be submitted';

function withdraw(plan: DeliveryPlan, state: DeliveryState, observation: Observation): NextStep {
  if (observation.draft === 'none' || isTooLate(state, observation.now))
    return failed(state, 'draft-stuck', UNSUBMITTED);
  if (observation.inMode) return step({ kind: 'leave-mode' }, state);
  return clearDraft(plan, state, observation) ?? failed(state, 'draft-stuck', UNSUBMITTED);
}

/** Bounds the wait of a sender that gave up. */
function isTooLate({ givenUpAt }: DeliveryState, now: number): boolean {
  return givenUpAt !== null && now - givenUpAt >= TAKE_BACK_MS;
}

function step(act: Act, state: DeliveryState, done: DeliveryState = state): NextStep {
  return { act, state, done };
}

function wait(state: DeliveryState, ms: number): NextStep {
  return step({ kind: 'wait', ms: Math.min(ms, POLL_MS), delivery: 'sending' }, state);
}

function finish(state: DeliveryState, outcome: DeliveryOutcome): NextStep {
  return step({ kind: 'finish', outcome }, state);
}

function failed(state: DeliveryState, delivery: FailedDelivery, reason: string): NextStep {
  return finish(state, { kind: 'failed', delivery, reason });
}
