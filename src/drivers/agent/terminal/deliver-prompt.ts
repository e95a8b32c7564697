// Performs in a terminal what delivery-machine.ts decides. Before each act it writes to the delivery record what a
// later engine must know of it.

import { assert } from '../../../base/assert.ts';
import { beginDelivery, nextStep } from './delivery-machine.ts';
import type {
  Act,
  DeliveryOutcome,
  DeliveryPlan,
  DeliveryState,
  InheritedState,
  Observation,
} from './delivery-machine.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { endsAtCursor, rowAtCursor } from './input-text.ts';
import type { Input, ScreenWatcher } from './screen-watcher.ts';
import type { Screen } from './screen.ts';
import type { Transcript } from './transcript.ts';
import type { InputResult } from '../tmux/terminal-pane.ts';
import type { Note } from '../../../engine/ports.ts';
import type { Injection, TerminalProfile } from '../../../ir/adapter.ts';
import { keyName } from '../../../ir/prompt-text.ts';

export interface DeliveryRequest {
  /** Exactly as it is put in. */
  readonly text: string;
  readonly isBracketed: boolean;
  readonly timeoutMs: number;
  /** New, or as an earlier engine left it. */
  readonly record: DeliveryRecord;
  readonly save: (state: DeliveryRecord['state']) => void;
  readonly note: Note;
  readonly isGivenUp: () => boolean;
  readonly isAlive: () => boolean;
  /** The agent's hook reported that it received the text. */
  readonly isConfirmed: () => boolean;
  readonly transcript: Transcript;
  /** Handles a dialog, if the screen shows one. */
  readonly handleDialog: (screen: Screen) => Promise<void>;
}

export async function deliver(
  watcher: ScreenWatcher,
  ways: TerminalProfile,
  request: DeliveryRequest,
): Promise<DeliveryOutcome> {
  const { record, save, note, isAlive, isConfirmed, isGivenUp, timeoutMs } = request;
  const plan = planFor(ways, request);
  let state = beginDelivery(INHERITED[record.state.kind] ?? 'nothing', performance.now());
  let delivery: Extract<Act, { kind: 'wait' }>['delivery'] = 'sending';
  let screen: Screen | null = null;
  let seenAt = performance.now();
  const work = new WorkSince(ways, request.transcript);
  for (;;) {
    const since = watcher.changes;
    // After the hook's confirmation no observation is needed.
    if (!isConfirmed() || screen === null) screen = await watcher.observe();
    if (screen !== null) seenAt = performance.now();
    if (screen === null && isAlive() && !isConfirmed()) {
      // A lost terminal is noticed before the agent's exit.
      const isLost = isGivenUp() || performance.now() - seenAt >= timeoutMs;
      if (isLost) return finished(save, UNSEEN);
      await watcher.untilChanged(since, { ms: GONE_MS });
      continue;
    }
    const next = nextStep(plan, state, observationOf(screen, ways, request, work));
    const { act } = next;
    state = next.state;
    if (act.kind === 'finish') return isUndecided(state, act.outcome) ? act.outcome : finished(save, act.outcome);
    assert(screen !== null, 'something is to be done about a screen that was not seen');
    await request.handleDialog(screen);
    if (act.kind === 'wait') {
      if (act.delivery !== delivery) void note({ delivery: act.delivery });
      delivery = act.delivery;
      await watcher.untilChanged(since, { ms: act.ms });
      continue;
    }
    if (act.kind === 'press' && act.what === 'submit') work.mark();
    const done = await perform(watcher, ways, request, act, screen);
    if (done === 'done') state = next.done;
    // The change becomes visible in a moment and may continue.
    else await watcher.untilChanged(since, { ms: CHANGED_MS });
  }
}

/** Detects work in the output since a moment. The work may start and end between two observations. */
class WorkSince {
  readonly #patterns: readonly RegExp[];
  readonly #transcript: Transcript;
  #from: number | null = null;

  constructor({ acknowledge }: TerminalProfile, transcript: Transcript) {
    this.#patterns = acknowledge.byHook ? [] : acknowledge.busy.map((pattern) => new RegExp(pattern, 'mu'));
    this.#transcript = transcript;
  }

  /** Starts counting now. */
  mark(): void {
    this.#from = this.#transcript.size();
  }

  get wasSeen(): boolean {
    if (this.#from === null || this.#patterns.length === 0) return false;
    const text = this.#transcript.textSince(this.#from);
    return this.#patterns.some((pattern) => pattern.test(text));
  }
}

const GONE_MS = 200;
const CHANGED_MS = 5;

/** How a later engine starts the delivery machine. */
const INHERITED: Readonly<Partial<Record<DeliveryRecord['state']['kind'], InheritedState>>> = {
  put: 'put',
  submitted: 'submitted',
};

function planFor(
  { injection, acknowledge }: TerminalProfile,
  { text, isBracketed, timeoutMs }: DeliveryRequest,
): DeliveryPlan {
  const { preKeys, preDelayMs, postDelayMs, postKeys, clearKeys, method } = injection;
  return {
    preKeys,
    preDelayMs,
    postDelayMs,
    postKeys,
    clearKeys,
    byHook: acknowledge.byHook,
    // A prompt that matches a busy pattern would be mistaken for work.
    showsBusy: acknowledge.busy.length > 0 && !acknowledge.busy.some((busy) => new RegExp(busy, 'mu').test(text)),
    canQueue: acknowledge.queued.length > 0,
    submitsLines: text.includes('\n') && !(isBracketed && method === 'paste'),
    takesMs: Buffer.byteLength(text) / SLOW_BYTES_A_MS,
    confirmMs: acknowledge.timeoutMs,
    timeoutMs,
  };
}

const SLOW_BYTES_A_MS = 50;

function observationOf(
  screen: Screen | null,
  ways: TerminalProfile,
  request: DeliveryRequest,
  work: WorkSince,
): Observation {
  return {
    now: performance.now(),
    isAlive: request.isAlive(),
    isGivenUp: request.isGivenUp(),
    isConfirmed: request.isConfirmed(),
    hasDialog: (screen?.dialog ?? null) !== null,
    inMode: screen?.capture.inMode ?? false,
    isReady: screen?.isReady ?? false,
    isBusy: screen?.isBusy ?? false,
    hasWorked: work.wasSeen,
    isQueued: screen?.isQueued ?? false,
    draft: screen?.draft ?? 'none',
    row: screen === null ? '' : rowAtCursor(screen.capture),
    holds: screen === null ? 'untold' : holds(screen, ways, request.text),
    screen: screen?.text ?? '',
  };
}

function holds(screen: Screen, { injection }: TerminalProfile, text: string): Observation['holds'] {
  if (endsAtCursor(screen.capture, text)) return 'yes';
  if (injection.draft.length === 0) return 'untold';
  // The draft may be a placeholder for a text that is too long to show.
  return screen.draft === 'some' ? 'yes' : 'no';
}

async function perform(
  watcher: ScreenWatcher,
  { injection }: TerminalProfile,
  { text, record, save }: DeliveryRequest,
  act: Exclude<Act, { kind: 'wait' | 'finish' }>,
  screen: Screen,
): Promise<InputResult> {
  switch (act.kind) {
    case 'leave-mode':
      await (await watcher.pane())?.leaveMode();
      return 'done';
    case 'press': {
      if (act.what === 'submit') save({ kind: 'submitted' });
      return watcher.press(act.keys, screen);
    }
    case 'put': {
      save({ kind: 'put' });
      const put = await watcher.put(inputFor(injection, text), screen);
      if (put === 'changed') save(record.state);
      return put;
    }
  }
}

function inputFor({ method }: Injection, text: string): Input {
  const key = method === 'keys' ? keyName(text) : null;
  if (key !== null) return { kind: 'keys', keys: [key] };
  return { kind: method === 'paste' ? 'paste' : 'text', text };
}

const UNSEEN: DeliveryOutcome = { kind: 'failed', delivery: 'not-ready', reason: 'its terminal could not be seen' };

function finished(save: DeliveryRequest['save'], outcome: DeliveryOutcome): DeliveryOutcome {
  save(endState(outcome));
  return outcome;
}

/** The text was put in, and a dialog hides the result. The next delivery of this message finds out. */
function isUndecided({ phase }: DeliveryState, outcome: DeliveryOutcome): boolean {
  return phase.kind !== 'waiting' && outcome.kind === 'failed' && outcome.delivery === 'blocked-on-dialog';
}

function endState(outcome: DeliveryOutcome): DeliveryRecord['state'] {
  switch (outcome.kind) {
    case 'accepted':
    case 'assumed-delivered':
      return { kind: 'accepted' };
    case 'queued':
      return { kind: 'queued' };
    case 'failed':
      return outcome;
  }
}

// Presses one key for an agent: once, whatever the result, and never into a dialog, unless it is the key that the
// adapter rejects that dialog with (host/6).

export async function deliverKey(
  watcher: ScreenWatcher,
  key: string,
  request: Omit<DeliveryRequest, 'text' | 'isBracketed' | 'isConfirmed'>,
): Promise<DeliveryOutcome> {
  const { record, save, note, isAlive, isGivenUp, handleDialog, timeoutMs } = request;
  if (record.state.kind !== 'begun') return { kind: 'assumed-delivered' };
  const finish = (outcome: Extract<DeliveryOutcome, { kind: 'failed' }>): DeliveryOutcome => {
    save(outcome);
    return outcome;
  };
  let [spentMs, seenAt, wasAsked] = [0, performance.now(), false];
  for (;;) {
    const since = watcher.changes;
    const screen = await watcher.observe();
    if (!isAlive()) return finish({ kind: 'failed', delivery: 'dead', reason: 'the agent has ended' });
    const now = performance.now();
    if (!wasAsked) spentMs += now - seenAt;
    seenAt = now;
    const dialog = screen?.dialog ?? null;
    const isAsked = dialog !== null && !rejects(dialog.pattern.reject, key);
    if (isAsked !== wasAsked) void note({ delivery: isAsked ? 'blocked-on-dialog' : 'sending' });
    wasAsked = isAsked;
    if (screen !== null && !isAsked && !isGivenUp()) {
      save({ kind: 'submitted' });
      const put = await watcher.press([key], screen);
      save({ kind: put === 'done' ? 'accepted' : 'begun' });
      if (put === 'done') return { kind: 'accepted' };
    }
    if (screen !== null) await handleDialog(screen);
    if (isGivenUp() || spentMs >= timeoutMs) {
      return finish({
        kind: 'failed',
        delivery: isAsked ? 'blocked-on-dialog' : 'not-ready',
        reason: isAsked ? 'the agent asks something else first' : 'the key could not be pressed',
      });
    }
    await watcher.untilChanged(since, { ms: POLL_MS });
  }
}

const POLL_MS = 200;

export function rejects(keys: readonly string[] | null, ...pressed: readonly string[]): boolean {
  return keys !== null && keys.length === pressed.length && keys.every((key, at) => key === pressed[at]);
}
