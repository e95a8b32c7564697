// Performs in a terminal what delivery-machine.ts decides. Before each act it writes to the delivery record what a
// later engine must know of it.

import { assert } from '../../../base/errors.ts';
import type { Note } from '../../../engine/ports.ts';
import type { TerminalProfile } from '../../../ir/adapter.ts';
import { keyName } from '../../../ir/prompt-text.ts';
import type { InputResult } from '../tmux/terminal-pane.ts';
import type { Act, DeliveryOutcome, DeliveryPlan, FailedDelivery, Observation } from './delivery-machine.ts';
import { beginDelivery, nextStep } from './delivery-machine.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import type { DialogWaiter } from './dialog-handler.ts';
import { blanksAtCursor, endsAtCursor, leftInInput, rowAtCursor } from './input-text.ts';
import type { ScreenWatcher } from './screen-watcher.ts';
import type { Screen } from './screen.ts';
import type { Transcript } from './transcript.ts';

export interface DeliveryRequest {
  readonly watcher: Readonly<ScreenWatcher>;
  readonly timeoutMs: number;
  /** New, or as an earlier engine left it. */
  readonly record: DeliveryRecord;
  readonly save: (state: DeliveryRecord['state']) => void;
  readonly note: Note;
  readonly isGivenUp: () => boolean;
  readonly isAlive: () => boolean;
  readonly dialogs: DialogWaiter;
}

export interface PromptDelivery extends DeliveryRequest {
  readonly ways: TerminalProfile;
  readonly transcript: Transcript;
  readonly text: string;
  /** When a person last typed through meow, by `performance.now`; null if never. */
  readonly typedAt: () => number | null;
  readonly isConfirmed: () => boolean;
  /** The adapter's keys before a text were pressed for this agent, by this engine or an earlier one. */
  readonly wasPrepared: boolean;
  readonly savePrepared: () => void;
}

export async function deliver(request: PromptDelivery): Promise<DeliveryOutcome> {
  const { watcher, record, save, note, isAlive, isConfirmed, isGivenUp, timeoutMs, dialogs, transcript } = request;
  const { kind } = record.state;
  let state = beginDelivery(kind === 'put' || kind === 'submitted' ? kind : 'nothing', performance.now());
  let delivery: Extract<Act, { kind: 'wait' }>['delivery'] = 'sending';
  let screen: Screen | null = null;
  let seenAt = performance.now();
  /** Size of the output when the submit keys were pressed. */
  let submittedAt: number | null = null;
  const finish = (outcome: DeliveryOutcome): DeliveryOutcome => {
    save(outcome.kind === 'assumed-delivered' ? { kind: 'accepted' } : outcome);
    return outcome;
  };
  for (;;) {
    const since = watcher.changes;
    // After the hook's confirmation no observation is needed.
    if (!isConfirmed() || screen === null) screen = await watcher.observe();
    if (screen !== null) seenAt = performance.now();
    if (screen === null && isAlive() && !isConfirmed()) {
      // A lost terminal is noticed before the agent's exit.
      const isLost = isGivenUp() || performance.now() - seenAt >= timeoutMs;
      if (isLost) return finish({ kind: 'failed', delivery: 'not-ready', reason: 'its terminal could not be seen' });
      await watcher.untilChanged(since, GONE_MS);
      continue;
    }
    const isBracketed = await transcript.isBracketed();
    const observation = observationOf(screen, request, submittedAt, isBracketed);
    const next = nextStep(planFor(request, isBracketed), state, observation);
    const { act } = next;
    state = next.state;
    if (act.kind === 'finish') {
      const { outcome } = act;
      // If the text was put in, and a dialog hides the result, the next delivery of this message finds out.
      const isBlocked = outcome.kind === 'failed' && outcome.delivery === 'blocked-on-dialog';
      return isBlocked && state.phase.kind !== 'waiting' ? outcome : finish(outcome);
    }
    assert(screen !== null, 'an act on a screen that was not observed');
    await dialogs.handle(screen);
    if (act.kind === 'wait') {
      if (act.delivery !== delivery) void note({ delivery: act.delivery });
      delivery = act.delivery;
      await watcher.untilChanged(since, act.ms);
      continue;
    }
    if (act.kind === 'press' && act.what === 'submit') submittedAt = transcript.size();
    const done = await perform(act, request, { screen, isBracketed });
    if (done === 'done') state = next.done;
    // The change becomes visible in a moment and may continue.
    else await watcher.untilChanged(since, CHANGED_MS);
  }
}

/** Poll intervals: for a lost terminal, and for a screen that changed under a key press. */
const GONE_MS = 200;
const CHANGED_MS = 5;

function planFor({ ways, text, timeoutMs, wasPrepared }: PromptDelivery, isBracketed: boolean): DeliveryPlan {
  const { injection, acknowledge, timing } = ways;
  return {
    ...injection,
    ...timing,
    text,
    byHook: acknowledge.byHook,
    // A prompt that matches a busy pattern would be mistaken for work.
    showsBusy: acknowledge.busy.length > 0 && !matchesAny(acknowledge.busy, text),
    canQueue: acknowledge.queued.length > 0,
    wasPrepared,
    submitsLines: submitsLines(text, isBracketed),
    shownText: leftInInput(text, submitsLines(text, isBracketed)),
    confirmMs: acknowledge.timeoutMs,
    timeoutMs,
  };
}

function submitsLines(text: string, isBracketed: boolean): boolean {
  return text.includes('\n') && !isBracketed;
}

function observationOf(
  screen: Screen | null,
  request: PromptDelivery,
  submittedAt: number | null,
  isBracketed: boolean,
): Observation {
  const { byHook, busy } = request.ways.acknowledge;
  // Detects work in the output, because it may start and end between two observations.
  const canShowWork = submittedAt !== null && !byHook && busy.length > 0;
  return {
    now: performance.now(),
    isAlive: request.isAlive(),
    isGivenUp: request.isGivenUp(),
    isConfirmed: request.isConfirmed(),
    hasDialog: (screen?.dialog ?? null) !== null,
    inMode: screen?.capture.inMode ?? false,
    isReady: screen?.isReady ?? false,
    isBusy: screen?.isBusy ?? false,
    hasWorked: canShowWork && matchesAny(busy, request.transcript.textSince(submittedAt)),
    isQueued: screen?.isQueued ?? false,
    isEmpty: screen?.isEmpty ?? false,
    typedAt: request.typedAt(),
    draft: screen?.draft ?? 'none',
    isBracketed,
    row: screen === null ? '' : rowAtCursor(screen.capture),
    blanks: screen === null ? 0 : blanksAtCursor(screen.capture),
    cursor: screen?.capture.cursor ?? { row: 0, column: 0 },
    holds: screen === null ? 'untold' : holds(screen, request, isBracketed),
    screen: screen?.text ?? '',
  };
}

function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => new RegExp(pattern, 'mu').test(text));
}

function holds(screen: Screen, { ways, text }: PromptDelivery, isBracketed: boolean): Observation['holds'] {
  if (endsAtCursor(screen.capture, leftInInput(text, submitsLines(text, isBracketed)))) return 'yes';
  if (ways.injection.draft.length === 0) return 'untold';
  // The draft may be a placeholder for a text that is too long to show.
  return screen.draft === 'some' ? 'yes' : 'no';
}

async function perform(
  act: Exclude<Act, { kind: 'wait' | 'finish' }>,
  { watcher, ways, text, record, save, savePrepared }: PromptDelivery,
  { screen, isBracketed }: { readonly screen: Screen; readonly isBracketed: boolean },
): Promise<InputResult> {
  switch (act.kind) {
    case 'leave-mode':
      await (await watcher.pane())?.leaveMode();
      return 'done';
    case 'press':
      if (act.what === 'submit') save({ kind: 'submitted' });
      if (act.what === 'prepare') savePrepared();
      return watcher.put({ kind: 'keys', keys: act.keys }, screen);
    case 'put': {
      save({ kind: 'put' });
      const { method } = ways.injection;
      const key = method === 'keys' ? keyName(text) : null;
      // A program that asked for bracketed paste would submit each line of a typed text.
      const kind = method === 'paste' || isBracketed ? 'paste' : 'text';
      const put = await watcher.put(key === null ? { kind, text } : { kind: 'keys', keys: [key] }, screen);
      if (put === 'changed') save(record.state);
      return put;
    }
  }
}

/** Presses a key once. Never into a dialog, unless the adapter rejects that dialog with this key (host/6). */
export async function deliverKey(key: string, request: DeliveryRequest): Promise<DeliveryOutcome> {
  const { watcher, record, save, note, isAlive, isGivenUp, dialogs, timeoutMs } = request;
  if (record.state.kind !== 'begun') return { kind: 'assumed-delivered' };
  const fail = (delivery: FailedDelivery, reason: string): DeliveryOutcome => {
    const outcome = { kind: 'failed', delivery, reason } as const;
    save(outcome);
    return outcome;
  };
  let [spentMs, seenAt, wasAsked] = [0, performance.now(), false];
  for (;;) {
    const since = watcher.changes;
    const screen = await watcher.observe();
    if (!isAlive()) return fail('dead', 'the agent has ended');
    const now = performance.now();
    if (!wasAsked) spentMs += now - seenAt;
    seenAt = now;
    const dialog = screen?.dialog ?? null;
    const isAsked = dialog !== null && !rejects(dialog.pattern.reject, key);
    if (isAsked !== wasAsked) void note({ delivery: isAsked ? 'blocked-on-dialog' : 'sending' });
    wasAsked = isAsked;
    if (screen !== null && !isAsked && !isGivenUp()) {
      save({ kind: 'submitted' });
      const put = await watcher.put({ kind: 'keys', keys: [key] }, screen);
      save({ kind: put === 'done' ? 'accepted' : 'begun' });
      if (put === 'done') return { kind: 'accepted' };
    }
    if (screen !== null) await dialogs.handle(screen);
    if (isGivenUp() || spentMs >= timeoutMs) {
      if (isAsked) return fail('blocked-on-dialog', 'the agent asks something else first');
      return fail('not-ready', 'the key could not be pressed');
    }
    await watcher.untilChanged(since, POLL_MS);
  }
}

const POLL_MS = 200;

export function rejects(keys: readonly string[] | null, ...pressed: readonly string[]): boolean {
  return keys !== null && keys.length === pressed.length && keys.every((key, at) => key === pressed[at]);
}
