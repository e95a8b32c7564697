// How a prompt gets into an agent that has a terminal: what to do next, by what is seen. Pure: looks and clocks come in,
// acts go out; whoever performs them looks anew before each.
//
// V1  Nothing is pressed, typed or pasted at a sight that shows a dialog. While it does, no time passes.
// V2  The text is put in once. It is put in again only where it is certain that the agent has not had it: its input can be
//     read and is empty, and what submits it was never pressed.
// V3  What submits it is pressed again only where the text is seen in the input, and so often at most.
// V4  `accepted` needs a reason that is seen: the agent's own hook; where it has none, that the text has left the input and
//     the agent is at work, or was; where that cannot be seen either, that its screen has gone on. A text that only vanished was
//     not accepted.
// V5  A draft that was there before is emptied, not added to: but not under the hands of somebody who types.
// V6  In a later life, the hook and the screen decide. What they leave open is taken for done: a second prompt does more
//     harm than a late one.

import type { Delivery } from '../../../ir/effect.ts';

export interface DeliveryPlan {
  readonly preKeys: readonly string[];
  readonly preDelayMs: number;
  readonly postDelayMs: number;
  readonly postKeys: readonly string[];
  readonly clearKeys: readonly string[];
  /** The hook tells; then nothing else counts. */
  readonly byHook: boolean;
  /** It can be seen whether the agent is at work. */
  readonly showsBusy: boolean;
  /** A prompt that comes while it works is kept for later. */
  readonly canQueue: boolean;
  /** Lines of the text are submitted one by one as they are put in. */
  readonly submitsLines: boolean;
  /** What a program may need to take the text in, if it is slow. */
  readonly takesMs: number;
  /** What the agent is given to confirm. */
  readonly confirmMs: number;
  /** For all of it, dialogs not counted. */
  readonly timeoutMs: number;
}

/** One look, with all that is known at its time. */
export interface Sight {
  /** Milliseconds of a clock that only goes forward. */
  readonly now: number;
  readonly isAlive: boolean;
  /** Whoever sent it does not want it any more. */
  readonly isGivenUp: boolean;
  /** The agent's hook says that it has the text. */
  readonly isConfirmed: boolean;
  readonly hasDialog: boolean;
  readonly inMode: boolean;
  readonly isReady: boolean;
  readonly isBusy: boolean;
  /** It has been at work since the text was last submitted, however shortly. */
  readonly hasWorked: boolean;
  readonly isQueued: boolean;
  readonly draft: 'some' | 'perhaps' | 'none';
  /** Where the cursor is. */
  readonly row: string;
  /** Whether the text is in the input. */
  readonly holds: 'yes' | 'no' | 'untold';
  readonly screen: string;
}

export type Act =
  /** Until something has changed, or so many milliseconds have passed. */
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
  /** V6. */
  | { readonly kind: 'taken-for-done' }
  /** `reason`: a part of a sentence. */
  | { readonly kind: 'failed'; readonly delivery: FailedDelivery; readonly reason: string };

export type FailedDelivery = Exclude<Delivery, 'sending' | 'accepted' | 'queued'>;

export interface DeliveryState {
  readonly phase: Phase;
  /** Without what passed while a dialog was shown. */
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
  /** How often clearing has changed nothing. */
  readonly vain: number;
}

/**
 * `at`: since when; null where that is not known, or a dialog came up. `before`: the screen when it was put in; null where
 * an earlier life did that. `isInherited`: by that life, and nothing was done about it since.
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
      /** It was seen in the input at some time. */
      readonly wasSeen: boolean;
      readonly goneSince: number | null;
    }
  | { readonly kind: 'taking-back' };

/** What an earlier life may have left: nothing, a text that may be in the input, one that may have been submitted. */
export type Beginning = 'nothing' | 'put' | 'submitted';

export function beginDelivery(from: Beginning, now: number): DeliveryState {
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

const PHASES: Readonly<Record<Beginning, Phase>> = {
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

/** `state`: from now on. `done`: in its place, once the act has been performed. */
export interface Step {
  readonly act: Act;
  readonly state: DeliveryState;
  readonly done: DeliveryState;
}

export function nextStep(plan: DeliveryPlan, before: DeliveryState, sight: Sight): Step {
  const state = observed(before, sight);
  if (sight.isConfirmed) return finish(state, { kind: isBehindWork(plan, state, sight) ? 'queued' : 'accepted' });
  if (!sight.isAlive) return failed(state, 'dead', 'the agent has ended');
  if (sight.hasDialog) {
    if (sight.isGivenUp) return failed(state, 'blocked-on-dialog', 'the agent asks something else first');
    return step({ kind: 'wait', ms: LOOK_MS, delivery: 'blocked-on-dialog' }, state);
  }
  if (state.phase.kind === 'taking-back') return takenBack(plan, state, sight);
  if (sight.isGivenUp || state.spentMs >= plan.timeoutMs) return givenUp(plan, state, sight);
  if (sight.inMode) return step({ kind: 'leave-mode' }, state);
  switch (state.phase.kind) {
    case 'waiting':
      return whileWaiting(plan, state, sight);
    case 'put':
      return oncePut(plan, state, state.phase, sight);
    case 'submitted':
      return onceSubmitted(plan, state, state.phase, sight);
  }
}

/** Nothing tells more in less time. */
const LOOK_MS = 1_000;
/** Somebody who has typed nothing for so long is not typing. */
const QUIET_MS = 1_000;
/** What clearing is given to show; longer than a second press of the same key would be taken for another command. */
const CLEAR_MS = 1_500;
/** A key may take away a line at a time. */
const CLEARS_MAX = 400;
const VAIN_MAX = 3;
const TAKE_BACK_MS = 3_000;
/** An agent is given this to end its turn, before a prompt is queued behind it. */
const BUSY_MS = 2_000;
/** A program that shows nothing of what it is given has it by then. */
const UNSEEN_MS = 500;
const PUTS_MAX = 2;
const PRESSES_MAX = 5;
/** A text that is gone for so long was not just being drawn anew. */
const SETTLED_MS = 150;

function observed(before: DeliveryState, sight: Sight): DeliveryState {
  const { now, hasDialog, isBusy, draft, row } = sight;
  const isSameDraft = draft === 'none' || before.draft.row === row;
  return {
    ...before,
    spentMs: before.spentMs + (before.sawDialog ? 0 : now - before.seenAt),
    seenAt: now,
    sawDialog: hasDialog,
    busySince: isBusy ? (before.busySince ?? now) : null,
    draft: isSameDraft ? before.draft : { ...before.draft, row, since: now },
    phase: hasDialog ? blocked(before.phase) : seen(before.phase, sight),
  };
}

/** Its time begins anew when the dialog is gone. */
function blocked(phase: Phase): Phase {
  switch (phase.kind) {
    case 'waiting':
    case 'taking-back':
      return phase;
    case 'put':
      return { ...phase, at: null };
    case 'submitted':
      return { ...phase, at: null, goneSince: null };
  }
}

function seen(phase: Phase, { now, holds }: Sight): Phase {
  switch (phase.kind) {
    case 'waiting':
    case 'taking-back':
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

function isBehindWork({ canQueue }: DeliveryPlan, { phase }: DeliveryState, { isQueued, isBusy }: Sight): boolean {
  return isQueued || (canQueue && isBusy && phase.kind === 'submitted' && phase.wasBusy);
}

function whileWaiting(plan: DeliveryPlan, state: DeliveryState, sight: Sight): Step {
  const { now, isReady, isBusy, draft } = sight;
  // Some are not ready as long as there is something in their input.
  if (!isReady && draft !== 'some') return wait(state, LOOK_MS);
  if (isBusy) {
    const busyMs = now - (state.busySince ?? now);
    if (!plan.canQueue) return wait(state, LOOK_MS);
    if (busyMs < BUSY_MS) return wait(state, BUSY_MS - busyMs);
  }
  if (draft !== 'none') {
    const next = clearing(plan, state, sight);
    if (next !== null) return next;
    if (!isReady) return wait(state, LOOK_MS);
  }
  const { preKeys, preDelayMs } = plan;
  if (state.preparedAt === null && preKeys.length > 0) {
    return step({ kind: 'press', what: 'prepare', keys: preKeys }, state, { ...state, preparedAt: now });
  }
  const sinceMs = now - (state.preparedAt ?? Number.NEGATIVE_INFINITY);
  if (sinceMs < preDelayMs) return wait(state, preDelayMs - sinceMs);
  return put(state, sight);
}

function put(state: DeliveryState, { now, screen }: Sight): Step {
  const phase: Phase = { kind: 'put', at: now, before: screen, isInherited: false };
  return step({ kind: 'put' }, state, { ...state, phase, puts: state.puts + 1 });
}

/** Null: what seems to be a draft is none. */
function clearing(plan: DeliveryPlan, state: DeliveryState, { now, draft }: Sight): Step | null {
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

function oncePut(plan: DeliveryPlan, state: DeliveryState, phase: Extract<Phase, { kind: 'put' }>, sight: Sight): Step {
  const { now, holds, isReady, isBusy, draft } = sight;
  const sinceMs = now - (phase.at ?? now);
  if (holds === 'yes') {
    if (sinceMs < plan.postDelayMs) return wait(state, plan.postDelayMs - sinceMs);
    return submit(plan, state, sight, phase.before);
  }
  if (holds === 'no' && !plan.submitsLines) {
    if (!isReady || isBusy || draft === 'some') return wait(state, LOOK_MS);
    const lateMs = Math.max(plan.confirmMs, UNSEEN_MS) + plan.takesMs;
    if (sinceMs < lateMs) return wait(state, lateMs - sinceMs);
    if (state.puts >= PUTS_MAX) return failed(state, 'draft-stuck', 'its input did not take the text');
    return put(state, sight);
  }
  const unseenMs = Math.max(phase.isInherited ? plan.confirmMs : plan.postDelayMs, UNSEEN_MS);
  if (sinceMs < unseenMs) return wait(state, unseenMs - sinceMs);
  return phase.isInherited ? finish(state, { kind: 'taken-for-done' }) : submit(plan, state, sight, phase.before);
}

function submit(plan: DeliveryPlan, state: DeliveryState, sight: Sight, before: string | null): Step {
  const presses = state.phase.kind === 'submitted' ? state.phase.presses : 0;
  const wasSeen = state.phase.kind === 'submitted' && state.phase.wasSeen;
  const phase: Phase = {
    kind: 'submitted',
    at: sight.now,
    before,
    isInherited: false,
    presses: presses + 1,
    wasBusy: sight.isBusy,
    wasQueued: sight.isQueued,
    wasSeen: wasSeen || sight.holds === 'yes',
    goneSince: null,
  };
  return step({ kind: 'press', what: 'submit', keys: plan.postKeys }, state, { ...state, phase });
}

function onceSubmitted(
  plan: DeliveryPlan,
  state: DeliveryState,
  phase: Extract<Phase, { kind: 'submitted' }>,
  sight: Sight,
): Step {
  const { now, holds, isBusy, hasWorked, isQueued } = sight;
  const sinceMs = now - (phase.at ?? now);
  if (holds === 'yes') {
    if (sinceMs < plan.confirmMs) return wait(state, plan.confirmMs - sinceMs);
    if (phase.presses >= PRESSES_MAX) return givenUp(plan, state, sight);
    return submit(plan, state, sight, phase.before);
  }
  if (isQueued && !phase.wasQueued) return finish(state, { kind: 'queued' });
  if (phase.isInherited) {
    if (isBusy && !plan.byHook) return finish(state, { kind: 'accepted' });
    if (sinceMs < plan.confirmMs) return wait(state, plan.confirmMs - sinceMs);
    return finish(state, { kind: 'taken-for-done' });
  }
  if (plan.byHook) return wait(state, LOOK_MS);
  if ((isBusy || hasWorked) && !phase.wasBusy) return finish(state, { kind: 'accepted' });
  if (plan.showsBusy && !phase.wasBusy) return wait(state, LOOK_MS);
  const goneMs = now - (phase.goneSince ?? now);
  if (goneMs < SETTLED_MS) return wait(state, SETTLED_MS - goneMs);
  // One that shows nothing of what it is given has it.
  if (sight.screen !== phase.before || !phase.wasSeen) return finish(state, { kind: 'accepted' });
  return failed(state, 'draft-stuck', 'the text has left its input, and nothing came of it');
}

/** A text that is seen unsubmitted is taken back. */
function givenUp(plan: DeliveryPlan, before: DeliveryState, sight: Sight): Step {
  const { now, isReady, isBusy, holds, draft, row, inMode } = sight;
  const state: DeliveryState = { ...before, givenUpAt: before.givenUpAt ?? now };
  if (state.phase.kind === 'waiting') {
    if (draft === 'some') return failed(state, 'draft-stuck', 'there is a draft in its input');
    return failed(state, 'not-ready', isReady && isBusy ? 'it was busy all the time' : 'it was not ready for it');
  }
  if (holds !== 'yes') {
    // It may be about to be shown.
    const leftMs = plan.clearKeys.length === 0 ? 0 : (state.givenUpAt ?? now) + UNSEEN_MS - now;
    return leftMs > 0 ? wait(state, leftMs) : failed(state, 'draft-stuck', 'it was put in, and not confirmed');
  }
  if (plan.clearKeys.length === 0 || isTooLate(state, now)) return failed(state, 'draft-stuck', UNSUBMITTED);
  if (inMode) return step({ kind: 'leave-mode' }, state);
  const done: DeliveryState = {
    ...state,
    phase: { kind: 'taking-back' },
    draft: { row, since: now, clears: 1, clearedAt: now, vain: 0 },
  };
  return step({ kind: 'press', what: 'clear', keys: plan.clearKeys }, state, done);
}

const UNSUBMITTED = 'it was in its input, and could not be submitted';

function takenBack(plan: DeliveryPlan, state: DeliveryState, sight: Sight): Step {
  if (sight.draft === 'none' || isTooLate(state, sight.now)) return failed(state, 'draft-stuck', UNSUBMITTED);
  if (sight.inMode) return step({ kind: 'leave-mode' }, state);
  return clearing(plan, state, sight) ?? failed(state, 'draft-stuck', UNSUBMITTED);
}

/** Whoever gave it up is not kept waiting. */
function isTooLate({ givenUpAt }: DeliveryState, now: number): boolean {
  return givenUpAt !== null && now - givenUpAt >= TAKE_BACK_MS;
}

function step(act: Act, state: DeliveryState, done: DeliveryState = state): Step {
  return { act, state, done };
}

function wait(state: DeliveryState, ms: number): Step {
  return step({ kind: 'wait', ms: Math.min(ms, LOOK_MS), delivery: 'sending' }, state);
}

function finish(state: DeliveryState, outcome: DeliveryOutcome): Step {
  return step({ kind: 'finish', outcome }, state);
}

function failed(state: DeliveryState, delivery: FailedDelivery, reason: string): Step {
  return finish(state, { kind: 'failed', delivery, reason });
}
