// Decides how a prompt gets into an agent in a terminal: what to do next, given an observation. Pure: observations and
// times go in, acts come out. The caller observes again before each act.
//
// delivery/1  Never presses, types or pastes while a dialog is shown. That time does not count against the limit.
// delivery/2  Puts the text in once. Repeats it only if the agent is known not to have it: the submit keys were never
//             pressed, its input is readable and empty, and it shows keys that were pressed after the text (the probe).
// delivery/3  Presses the submit keys again only while the text is visible in the input, each time after a longer wait.
// delivery/4  `accepted` needs evidence that was seen: the agent's hook; without a hook, the agent works or worked; if
//             work cannot be seen, new output that is not an echo, after the text was shown and left its place. A text
//             that merely vanished is not accepted. Output proves nothing about a text that was never shown, because a
//             program may print at any time: so without hook and patterns such a text is not submitted.
// delivery/5  Clears an existing draft before adding text, but not while a person is typing. Adds none then either, if the
//             person types through meow.
// delivery/6  After an engine crash the hook and the screen decide. Doubt counts as delivered: a second prompt does
//             more harm than a late one.
// delivery/7  A living agent has the whole time limit: no delay says anything about what it will do.
// delivery/8  Does not press the keys before the text into an input that they have prepared before and that is seen
//             idle and empty: twice in a row they may open a menu. A screen that they opened is not ready: they are
//             pressed again, but only after their last effect was seen.

import type { Injection, Timing } from '../../../ir/adapter.ts';
import type { Delivery } from '../../../ir/effect.ts';
import type { PaneCapture } from '../tmux/terminal-pane.ts';
import { isEcho, rowsBelow, standsFor } from './input-text.ts';
import type { Screen } from './screen.ts';

export interface DeliveryPlan
  extends Pick<Injection, 'preKeys' | 'preDelayMs' | 'postDelayMs' | 'postKeys' | 'clearKeys'>,
    Pick<Timing, 'settleMs' | 'typingMs' | 'visibleMs' | 'reactMs'> {
  /** Exactly as it is put in. */
  readonly text: string;
  /** Only the hook decides. */
  readonly byHook: boolean;
  /** The screen shows whether the agent works. */
  readonly showsBusy: boolean;
  /** The agent queues prompts that arrive during work. */
  readonly canQueue: boolean;
  /** `preKeys` were pressed for this agent before. */
  readonly wasPrepared: boolean;
  /** Each line of the text is submitted as it is put in. */
  readonly submitsLines: boolean;
  /** What the input shows of the text. */
  readonly shownText: string;
  /** Time before the first repetition of a key without a visible effect. */
  readonly confirmMs: number;
  /** Time limit for the whole delivery, without dialogs. */
  readonly timeoutMs: number;
}

export interface Observation extends Pick<Screen, 'isReady' | 'isBusy' | 'isQueued' | 'isEmpty' | 'draft'> {
  /** Monotonic clock, in milliseconds. */
  readonly now: number;
  readonly isAlive: boolean;
  readonly isGivenUp: boolean;
  /** The agent's hook reported that it received the text. */
  readonly isConfirmed: boolean;
  readonly hasDialog: boolean;
  readonly inMode: boolean;
  /** When a person last typed through meow; null if never. */
  readonly typedAt: number | null;
  /** The agent worked since the last submit, however briefly. */
  readonly hasWorked: boolean;
  readonly isBracketed: boolean;
  /** The text left of the cursor. */
  readonly row: string;
  /** Blank columns between that text and the cursor. */
  readonly blanks: number;
  readonly cursor: PaneCapture['cursor'];
  readonly holds: 'yes' | 'no' | 'untold';
  readonly screen: string;
}

export type Act =
  /** Waits until something changes or the time is over. */
  | { readonly kind: 'wait'; readonly ms: number; readonly delivery: 'sending' | 'blocked-on-dialog' }
  | { readonly kind: 'leave-mode' }
  | { readonly kind: 'press'; readonly what: PressedFor; readonly keys: readonly string[] }
  | { readonly kind: 'put' }
  | { readonly kind: 'finish'; readonly outcome: DeliveryOutcome };

/** `probe`: shows whether the program has read the text before it. `erase`: removes the keys of the probe. */
type PressedFor = 'clear' | 'prepare' | 'submit' | 'probe' | 'erase';

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
  /** The keys before the text, if they were pressed for it. */
  readonly prepared: Prepared | null;
  readonly givenUpAt: number | null;
}

interface Prepared {
  readonly at: number;
  readonly presses: number;
  /** The input was empty before the first press. */
  readonly wasEmpty: boolean;
  /** The screen at the last press. */
  readonly screen: string;
}

interface Draft {
  readonly row: string;
  readonly since: number;
  readonly clears: number;
  readonly clearedAt: number;
  /** Clears that changed nothing. */
  readonly vain: number;
}

type Phase = { readonly kind: 'waiting' } | { readonly kind: 'withdrawing' } | EnteredPhase;
type EnteredPhase = PutPhase | SubmittedPhase;

interface PutPhase {
  readonly kind: 'put';
  /** Start of the phase; null if unknown or after a dialog. */
  readonly at: number | null;
  /**
   * What was seen when the text was put in. Null if an earlier engine did, or if the program started to read its input
   * later: then new output proves nothing.
   */
  readonly before: Pick<Observation, 'screen' | 'row' | 'isBracketed'> | null;
  /** An earlier engine did it, and this one has not acted since. */
  readonly isInherited: boolean;
  readonly wasSeen: boolean;
  readonly probe: Probe | null;
}

interface Probe {
  /** Before the first key. */
  readonly cursor: PaneCapture['cursor'];
  readonly presses: number;
  /** Keys that were visible when the last one was pressed. */
  readonly shown: number;
}

interface SubmittedPhase extends Omit<PutPhase, 'kind' | 'probe'> {
  readonly kind: 'submitted';
  readonly presses: number;
  readonly wasBusy: boolean;
  readonly wasQueued: boolean;
  /** The screen when the keys were pressed. */
  readonly screen: string;
  /** Where the text was then, outside the row of the cursor; null if it was not shown. */
  readonly below: number | null;
  /** Since when the text is visible, or not. */
  readonly heldSince: number | null;
  readonly goneSince: number | null;
}

/** What an earlier engine may have left: a text that may be in the input, or one that may have been submitted. */
export type InheritedState = 'nothing' | 'put' | 'submitted';

export function beginDelivery(from: InheritedState, now: number): DeliveryState {
  return {
    phase: PHASES[from],
    spentMs: 0,
    seenAt: now,
    sawDialog: false,
    busySince: null,
    draft: { row: '', since: now, clears: 0, clearedAt: Number.NEGATIVE_INFINITY, vain: 0 },
    prepared: null,
    givenUpAt: null,
  };
}

const INHERITED = { at: null, before: null, isInherited: true, wasSeen: false };
const UNKNOWN = { wasBusy: false, wasQueued: false, screen: '', below: null, heldSince: null, goneSince: null };
const PHASES: Readonly<Record<InheritedState, Phase>> = {
  nothing: { kind: 'waiting' },
  put: { kind: 'put', ...INHERITED, probe: null },
  submitted: { kind: 'submitted', ...INHERITED, ...UNKNOWN, presses: 1 },
};

/** `state`: applies now. `done`: replaces it after the act succeeded. */
export interface NextStep {
  readonly act: Act;
  readonly state: DeliveryState;
  readonly done: DeliveryState;
}

export function nextStep(plan: DeliveryPlan, before: DeliveryState, seen: Observation): NextStep {
  const state = applyObservation(plan, before, seen);
  if (seen.isConfirmed) {
    const wasBusy = state.phase.kind === 'submitted' && state.phase.wasBusy;
    const isBehindWork = seen.isQueued || (plan.canQueue && seen.isBusy && wasBusy);
    return finish(state, { kind: isBehindWork ? 'queued' : 'accepted' });
  }
  if (!seen.isAlive) return failed(state, 'dead', 'the agent has ended');
  if (seen.hasDialog) {
    if (seen.isGivenUp) return failed(state, 'blocked-on-dialog', 'the agent asks something else first');
    return step({ kind: 'wait', ms: POLL_MS, delivery: 'blocked-on-dialog' }, state);
  }
  if (state.phase.kind === 'withdrawing') return withdraw(plan, state, seen);
  if (seen.isGivenUp || state.spentMs >= plan.timeoutMs) return giveUp(plan, state, seen);
  if (seen.inMode) return step({ kind: 'leave-mode' }, state);
  switch (state.phase.kind) {
    case 'waiting':
      return whileWaiting(plan, state, seen);
    case 'put':
      return afterPut(plan, state, state.phase, seen);
    case 'submitted':
      return afterSubmit(plan, state, state.phase, seen);
  }
}

const POLL_MS = 1_000;
/** A person who types through meow may think for this many times `typing`. */
const PERSON_PAUSES = 10;
/** One key press may clear a single line. */
const CLEARS_MAX = 400;
/** The wait between two presses doubles, so this many take longer than any limit. */
const PRESSES_MAX = 12;

function applyObservation(plan: DeliveryPlan, before: DeliveryState, seen: Observation): DeliveryState {
  const { now, hasDialog, isBusy, draft, row } = seen;
  const isSameDraft = draft === 'none' || before.draft.row === row;
  return {
    ...before,
    spentMs: before.spentMs + (before.sawDialog ? 0 : now - before.seenAt),
    seenAt: now,
    sawDialog: hasDialog,
    busySince: isBusy ? (before.busySince ?? now) : null,
    draft: isSameDraft ? before.draft : { ...before.draft, row, since: now },
    phase: updatePhase(plan, before.phase, seen),
  };
}

/** The time of a phase starts again after a dialog. */
function updatePhase(plan: DeliveryPlan, phase: Phase, seen: Observation): Phase {
  if (phase.kind === 'waiting' || phase.kind === 'withdrawing') return phase;
  const { now, hasDialog } = seen;
  // The terminal echoed the text to a program that was still starting, and may have discarded it.
  if (phase.before?.isBracketed === false && seen.isBracketed) {
    return updatePhase(plan, { ...phase, at: now, before: null, wasSeen: false }, seen);
  }
  const isHeld = !hasDialog && holdsText(plan, phase, seen);
  const common = { at: hasDialog ? null : (phase.at ?? now), wasSeen: phase.wasSeen || isHeld };
  if (phase.kind === 'put') return { ...phase, ...common, probe: hasDialog ? null : phase.probe };
  const heldSince = isHeld ? (phase.heldSince ?? now) : null;
  return { ...phase, ...common, heldSince, goneSince: isHeld || hasDialog ? null : (phase.goneSince ?? now) };
}

/** Whether the text is in the input: itself, its beginning, or a placeholder that was not there before. */
function holdsText({ shownText }: DeliveryPlan, { before }: EnteredPhase, { holds, row }: Observation): boolean {
  if (holds !== 'untold') return holds === 'yes';
  if (before === null || before.row === '' || !row.startsWith(before.row)) return false;
  return standsFor(row.slice(before.row.length), shownText);
}

/** Where the text is on the screen, if it was not there before it was put in; see `rowsBelow`. */
function shownBelow({ shownText }: DeliveryPlan, { before }: EnteredPhase, { screen }: Observation): number | null {
  const below = before === null ? null : rowsBelow(screen, shownText);
  if (before === null || below === null) return null;
  return below < (rowsBelow(before.screen, shownText) ?? Number.POSITIVE_INFINITY) ? below : null;
}

function whileWaiting(plan: DeliveryPlan, state: DeliveryState, seen: Observation): NextStep {
  const { now, isReady, isBusy, draft } = seen;
  const closed = closeOpened(plan, state, seen);
  if (closed !== null) return closed;
  // Some agents are not ready while their input contains text.
  if (!isReady && draft !== 'some') return wait(state, POLL_MS);
  if (isBusy) {
    const busyMs = now - (state.busySince ?? now);
    if (!plan.canQueue) return wait(state, POLL_MS);
    if (busyMs < plan.reactMs) return wait(state, plan.reactMs - busyMs);
  }
  const typing = whilePersonTypes(plan, state, seen);
  if (typing !== null) return typing;
  if (draft !== 'none') {
    const next = clearDraft(plan, state, seen);
    if (next !== null) return next;
    if (!isReady) return wait(state, POLL_MS);
  }
  return prepare(plan, state, seen) ?? put(state, seen);
}

/** Null if the input is prepared. See delivery/8. */
function prepare(plan: DeliveryPlan, state: DeliveryState, seen: Observation): NextStep | null {
  if (plan.preKeys.length === 0) return null;
  if (state.prepared === null) {
    const isPrepared = plan.wasPrepared && seen.isEmpty && !seen.isBusy;
    return isPrepared ? null : pressPreKeys(plan, state, seen);
  }
  const leftMs = plan.preDelayMs - (seen.now - state.prepared.at);
  return leftMs > 0 ? wait(state, leftMs) : null;
}

/** Null if the keys before the text opened nothing. */
function closeOpened(plan: DeliveryPlan, state: DeliveryState, seen: Observation): NextStep | null {
  const { prepared } = state;
  if (prepared?.wasEmpty !== true || seen.isEmpty) return null;
  const leftMs = plan.visibleMs * 2 ** (prepared.presses - 1) - (seen.now - prepared.at);
  if (leftMs > 0) return wait(state, leftMs);
  return seen.screen === prepared.screen ? wait(state, POLL_MS) : pressPreKeys(plan, state, seen);
}

function pressPreKeys(plan: DeliveryPlan, state: DeliveryState, { now, isEmpty, screen }: Observation): NextStep {
  const { presses, wasEmpty } = state.prepared ?? { presses: 0, wasEmpty: isEmpty };
  const prepared: Prepared = { at: now, presses: presses + 1, wasEmpty, screen };
  return step({ kind: 'press', what: 'prepare', keys: plan.preKeys }, state, { ...state, prepared });
}

function put(state: DeliveryState, { now, screen, row, isBracketed }: Observation): NextStep {
  const before = { screen, row, isBracketed };
  const phase: Phase = { kind: 'put', at: now, before, isInherited: false, wasSeen: false, probe: null };
  return step({ kind: 'put' }, state, { ...state, phase });
}

/** Null if nobody types. The text of a person who pauses is left alone for longer than an old draft. */
function whilePersonTypes(plan: DeliveryPlan, state: DeliveryState, seen: Observation): NextStep | null {
  const { now, typedAt, draft } = seen;
  if (typedAt === null) return null;
  const leftMs = plan.typingMs * (draft === 'none' ? 1 : PERSON_PAUSES) - (now - typedAt);
  return leftMs > 0 ? wait(state, Math.min(leftMs, POLL_MS)) : null;
}

/** Null if the apparent draft is not a draft. */
function clearDraft(plan: DeliveryPlan, state: DeliveryState, { now, draft }: Observation): NextStep | null {
  const { since, clears, clearedAt, vain } = state.draft;
  if (clears === 0 && now - since < plan.typingMs) return wait(state, plan.typingMs - (now - since));
  const isVain = clears > 0 && since <= clearedAt;
  const vainMs = plan.visibleMs * 2 ** vain;
  if (isVain && now - clearedAt < vainMs) return wait(state, vainMs - (now - clearedAt));
  if (isVain && draft === 'perhaps') return null;
  if (plan.clearKeys.length === 0 || clears >= CLEARS_MAX) return wait(state, POLL_MS);
  const cleared: Draft = { ...state.draft, clears: clears + 1, clearedAt: now, vain: isVain ? vain + 1 : 0 };
  return step({ kind: 'press', what: 'clear', keys: plan.clearKeys }, state, { ...state, draft: cleared });
}

function afterPut(plan: DeliveryPlan, state: DeliveryState, phase: PutPhase, seen: Observation): NextStep {
  const { now, holds } = seen;
  const sinceMs = now - (phase.at ?? now);
  if (holdsText(plan, phase, seen)) {
    if (sinceMs < plan.postDelayMs) return wait(state, plan.postDelayMs - sinceMs);
    return eraseProbe(state, phase, seen) ?? submit(plan, state, phase, seen);
  }
  if (holds === 'no' && !plan.submitsLines) return probe(plan, state, phase, seen);
  const unseenMs = Math.max(plan.postDelayMs, plan.confirmMs);
  if (sinceMs < unseenMs) return wait(state, unseenMs - sinceMs);
  if (phase.isInherited) return finish(state, { kind: 'assumed-delivered' });
  return maySubmitUnseen(plan, phase, seen) ? submit(plan, state, phase, seen) : wait(state, POLL_MS);
}

/** The text is not in the row of the cursor. See delivery/4. */
function maySubmitUnseen(plan: DeliveryPlan, phase: PutPhase, seen: Observation): boolean {
  if (phase.before === null) return false;
  if (!plan.byHook && !plan.showsBusy) return shownBelow(plan, phase, seen) !== null;
  // A program without a prompt in the row of the cursor may echo nothing; every other one reacts to the text.
  return phase.before.row === '' || seen.screen !== phase.before.screen;
}

/**
 * The text is not shown. A program reads its input in order, so if it shows a later key alone, the text is lost. It may
 * be slower to show a paste than a key: so another key must show, which was pressed after the first was seen.
 */
function probe(plan: DeliveryPlan, state: DeliveryState, phase: PutPhase, seen: Observation): NextStep {
  const { now, isReady, isBusy, cursor, draft } = seen;
  const { cursor: from, presses, shown } = phase.probe ?? { cursor, presses: 0, shown: 0 };
  const columns = cursor.row === from.row ? cursor.column - from.column : 0;
  const isShown = columns > 0 && columns <= presses;
  // An input with only blanks may show no placeholder, and match no ready pattern.
  if (!(isReady || isShown) || isBusy || draft !== 'none') return wait(state, POLL_MS);
  if (plan.clearKeys.length === 0) return wait(state, POLL_MS);
  if (isShown && shown > 0 && columns > shown) {
    const done: DeliveryState = { ...state, phase: { kind: 'waiting' } };
    return step({ kind: 'press', what: 'clear', keys: plan.clearKeys }, state, done);
  }
  const readMs = plan.confirmMs * (1 + Math.floor(plan.text.length / READ_LENGTH));
  const leftMs = readMs * 2 ** presses - (now - (phase.at ?? now));
  if (leftMs > 0) return wait(state, leftMs);
  const next: Probe = { cursor: from, presses: presses + 1, shown: isShown ? columns : 0 };
  const probed: PutPhase = { ...phase, at: now, probe: next };
  return step({ kind: 'press', what: 'probe', keys: [PROBE] }, state, { ...state, phase: probed });
}

/** The text arrived late, and the keys of the probe follow it. Null if none are visible. */
function eraseProbe(state: DeliveryState, phase: PutPhase, { now, blanks }: Observation): NextStep | null {
  if (phase.probe === null || blanks === 0 || blanks > phase.probe.presses) return null;
  const keys = Array.from({ length: blanks }, () => 'BSpace');
  const erased: PutPhase = { ...phase, at: now, probe: null };
  return step({ kind: 'press', what: 'erase', keys }, state, { ...state, phase: erased });
}

/** Moves the cursor by one column, and does no harm behind a prompt. */
const PROBE = 'Space';
/** A program may need the acknowledge timeout for each part of this length. */
const READ_LENGTH = 65_536;

function submit(plan: DeliveryPlan, state: DeliveryState, phase: EnteredPhase, seen: Observation): NextStep {
  const submitted: SubmittedPhase = {
    kind: 'submitted',
    at: seen.now,
    before: phase.before,
    isInherited: false,
    wasSeen: phase.wasSeen,
    presses: phase.kind === 'submitted' ? phase.presses + 1 : 1,
    wasBusy: seen.isBusy,
    wasQueued: seen.isQueued,
    screen: seen.screen,
    below: shownBelow(plan, phase, seen),
    heldSince: null,
    goneSince: null,
  };
  return step({ kind: 'press', what: 'submit', keys: plan.postKeys }, state, { ...state, phase: submitted });
}

function afterSubmit(plan: DeliveryPlan, state: DeliveryState, phase: SubmittedPhase, seen: Observation): NextStep {
  const { now, isBusy, hasWorked, isQueued } = seen;
  if (holdsText(plan, phase, seen)) {
    // The keys of a slow program may still be on their way.
    const againMs = plan.confirmMs * 2 ** (phase.presses - 1) - (now - (phase.heldSince ?? now));
    if (againMs > 0 || phase.presses >= PRESSES_MAX) return wait(state, againMs > 0 ? againMs : POLL_MS);
    return submit(plan, state, phase, seen);
  }
  if (isQueued && !phase.wasQueued) return finish(state, { kind: 'queued' });
  if (phase.isInherited) return afterInherited(plan, state, phase, seen);
  if (plan.byHook) return wait(state, POLL_MS);
  if (plan.showsBusy && !phase.wasBusy) {
    return isBusy || hasWorked ? finish(state, { kind: 'accepted' }) : wait(state, POLL_MS);
  }
  const goneMs = now - (phase.goneSince ?? now);
  if (goneMs < plan.settleMs) return wait(state, plan.settleMs - goneMs);
  return isNewOutput(plan, phase, seen) ? finish(state, { kind: 'accepted' }) : wait(state, POLL_MS);
}

function afterInherited(plan: DeliveryPlan, state: DeliveryState, phase: SubmittedPhase, seen: Observation): NextStep {
  if (seen.isBusy && !plan.byHook) return finish(state, { kind: 'accepted' });
  const leftMs = plan.confirmMs - (seen.now - (phase.at ?? seen.now));
  // A hook or the input may still tell.
  if (leftMs > 0 || plan.byHook || seen.holds === 'no') return wait(state, Math.max(leftMs, 1));
  return finish(state, { kind: 'assumed-delivered' });
}

/** Since the text was put in, and since it was submitted; after it was shown and left its place. */
function isNewOutput({ text, shownText }: DeliveryPlan, phase: SubmittedPhase, { screen }: Observation): boolean {
  const { before, wasSeen, below } = phase;
  if (before === null) return wasSeen;
  const hasLeft = wasSeen || (below !== null && (rowsBelow(screen, shownText) ?? Number.POSITIVE_INFINITY) > below);
  return hasLeft && screen !== phase.screen && !isEcho(before.screen, screen, text);
}

/** Removes a text that is visible and not submitted. */
function giveUp(plan: DeliveryPlan, before: DeliveryState, seen: Observation): NextStep {
  const { now, isReady, isBusy, draft, row, inMode } = seen;
  const givenUpAt = before.givenUpAt ?? now;
  const state: DeliveryState = { ...before, givenUpAt };
  const { phase } = state;
  if (phase.kind === 'waiting' || phase.kind === 'withdrawing') {
    if (draft === 'some') return failed(state, 'draft-stuck', 'there is a draft in its input that cannot be cleared');
    return failed(state, 'not-ready', isReady && isBusy ? 'it was busy all the time' : 'it was not ready for it');
  }
  if (phase.isInherited && phase.kind === 'submitted') return finish(state, { kind: 'assumed-delivered' });
  if (!holdsText(plan, phase, seen)) {
    // The text may be about to appear.
    const leftMs = plan.clearKeys.length === 0 ? 0 : givenUpAt + plan.settleMs - now;
    if (leftMs > 0) return wait(state, leftMs);
    return failed(state, 'draft-stuck', unconfirmed(phase));
  }
  if (plan.clearKeys.length === 0 || isTooLate(plan, state, now)) return failed(state, 'draft-stuck', STUCK);
  if (inMode) return step({ kind: 'leave-mode' }, state);
  const done: DeliveryState = {
    ...state,
    phase: { kind: 'withdrawing' },
    draft: { row, since: now, clears: 1, clearedAt: now, vain: 0 },
  };
  return step({ kind: 'press', what: 'clear', keys: plan.clearKeys }, state, done);
}

function unconfirmed(phase: EnteredPhase): string {
  if (phase.kind === 'put') return 'the text was put in and never appeared, so it was not submitted';
  return phase.wasSeen || phase.below !== null
    ? 'the text has left its input, and nothing shows that the agent has it'
    : 'the text was submitted without being visible, and nothing shows that the agent has it';
}

const STUCK = 'it was in its input, and could not be submitted';

function withdraw(plan: DeliveryPlan, state: DeliveryState, seen: Observation): NextStep {
  if (seen.draft === 'none' || isTooLate(plan, state, seen.now)) return failed(state, 'draft-stuck', STUCK);
  if (seen.inMode) return step({ kind: 'leave-mode' }, state);
  return clearDraft(plan, state, seen) ?? failed(state, 'draft-stuck', STUCK);
}

/** Bounds the wait of a sender that gave up. */
function isTooLate({ reactMs }: DeliveryPlan, { givenUpAt }: DeliveryState, now: number): boolean {
  return givenUpAt !== null && now - givenUpAt >= reactMs;
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
