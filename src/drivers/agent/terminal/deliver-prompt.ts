// Performs in a terminal what delivery-machine.ts decides: looks, acts, and keeps before every act what a later life must know of it,
// as delivery-record.ts has it.

import { assert } from '../../../base/assert.ts';
import type { Note } from '../../../engine/ports.ts';
import type { Injection, TerminalWays } from '../../../ir/adapter.ts';
import { keyName } from '../../../ir/prompt-text.ts';
import type { Put } from '../tmux/terminal-pane.ts';
import type { Console, Input } from './screen-watcher.ts';
import { beginDelivery, nextStep } from './delivery-machine.ts';
import type { Act, Beginning, DeliveryOutcome, DeliveryPlan, DeliveryState, Sight } from './delivery-machine.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { endsAtCursor, rowAtCursor } from './input-text.ts';
import type { Screen } from './screen.ts';
import type { Transcript } from './transcript.ts';

export interface DeliveryRequest {
  /** As it is put in. */
  readonly text: string;
  readonly isBracketed: boolean;
  readonly timeoutMs: number;
  /** As an earlier life left it, or this one begins it. */
  readonly record: DeliveryRecord;
  readonly keep: (state: DeliveryRecord['state']) => void;
  readonly note: Note;
  readonly isGivenUp: () => boolean;
  readonly isAlive: () => boolean;
  /** The agent's hook says that it has the text. */
  readonly isConfirmed: () => boolean;
  readonly transcript: Transcript;
  /** Deals with what the agent asks, if it does. */
  readonly mind: (screen: Screen) => Promise<void>;
}

export async function deliver(
  console: Console,
  ways: TerminalWays,
  request: DeliveryRequest,
): Promise<DeliveryOutcome> {
  const { record, keep, note, isAlive, isConfirmed, isGivenUp, timeoutMs } = request;
  const plan = planFor(ways, request);
  let state = beginDelivery(BEGINNINGS[record.state.kind] ?? 'nothing', performance.now());
  let delivery: Extract<Act, { kind: 'wait' }>['delivery'] = 'sending';
  let screen: Screen | null = null;
  let seenAt = performance.now();
  const work = new WorkSince(ways, request.transcript);
  for (;;) {
    const since = console.changes;
    // What the hook has told needs no look.
    if (!isConfirmed() || screen === null) screen = await console.look();
    if (screen !== null) seenAt = performance.now();
    if (screen === null && isAlive() && !isConfirmed()) {
      // That a terminal is gone is known before the end of its agent is.
      const isLost = isGivenUp() || performance.now() - seenAt >= timeoutMs;
      if (isLost) return finished(keep, UNSEEN);
      await console.changed(since, { ms: GONE_MS });
      continue;
    }
    const next = nextStep(plan, state, sightOf(screen, ways, request, work));
    const { act } = next;
    state = next.state;
    if (act.kind === 'finish') return isUndecided(state, act.outcome) ? act.outcome : finished(keep, act.outcome);
    assert(screen !== null, 'something is to be done about a screen that was not seen');
    await request.mind(screen);
    if (act.kind === 'wait') {
      if (act.delivery !== delivery) void note({ delivery: act.delivery });
      delivery = act.delivery;
      await console.changed(since, { ms: act.ms });
      continue;
    }
    if (act.kind === 'press' && act.what === 'submit') work.mark();
    const done = await perform(console, ways, request, act, screen);
    if (done === 'done') state = next.done;
    // Whatever has changed is seen in a moment, and may be more.
    else await console.changed(since, { ms: CHANGED_MS });
  }
}

/** Signs of work in what was printed since a moment. It may have come and gone between two looks. */
class WorkSince {
  readonly #patterns: readonly RegExp[];
  readonly #transcript: Transcript;
  #from: number | null = null;

  constructor({ acknowledge }: TerminalWays, transcript: Transcript) {
    this.#patterns = acknowledge.byHook ? [] : acknowledge.busy.map((pattern) => new RegExp(pattern, 'mu'));
    this.#transcript = transcript;
  }

  /** From now on. */
  mark(): void {
    this.#from = this.#transcript.size();
  }

  get isThere(): boolean {
    if (this.#from === null || this.#patterns.length === 0) return false;
    const text = this.#transcript.textSince(this.#from);
    return this.#patterns.some((pattern) => pattern.test(text));
  }
}

const GONE_MS = 200;
const CHANGED_MS = 5;

/** What a later life begins with. */
const BEGINNINGS: Readonly<Partial<Record<DeliveryRecord['state']['kind'], Beginning>>> = {
  put: 'put',
  submitted: 'submitted',
};

function planFor(
  { injection, acknowledge }: TerminalWays,
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
    // A text that looks like work itself would be taken for it.
    showsBusy: acknowledge.busy.length > 0 && !acknowledge.busy.some((busy) => new RegExp(busy, 'mu').test(text)),
    canQueue: acknowledge.queued.length > 0,
    submitsLines: text.includes('\n') && !(isBracketed && method === 'paste'),
    takesMs: Buffer.byteLength(text) / SLOW_BYTES_A_MS,
    confirmMs: acknowledge.timeoutMs,
    timeoutMs,
  };
}

const SLOW_BYTES_A_MS = 50;

function sightOf(screen: Screen | null, ways: TerminalWays, request: DeliveryRequest, work: WorkSince): Sight {
  return {
    now: performance.now(),
    isAlive: request.isAlive(),
    isGivenUp: request.isGivenUp(),
    isConfirmed: request.isConfirmed(),
    hasDialog: (screen?.dialog ?? null) !== null,
    inMode: screen?.look.inMode ?? false,
    isReady: screen?.isReady ?? false,
    isBusy: screen?.isBusy ?? false,
    hasWorked: work.isThere,
    isQueued: screen?.isQueued ?? false,
    draft: screen?.draft ?? 'none',
    row: screen === null ? '' : rowAtCursor(screen.look),
    holds: screen === null ? 'untold' : holds(screen, ways, request.text),
    screen: screen?.text ?? '',
  };
}

function holds(screen: Screen, { injection }: TerminalWays, text: string): Sight['holds'] {
  if (endsAtCursor(screen.look, text)) return 'yes';
  if (injection.draft.length === 0) return 'untold';
  // It may stand there for something that is too long to be shown.
  return screen.draft === 'some' ? 'yes' : 'no';
}

async function perform(
  console: Console,
  { injection }: TerminalWays,
  { text, record, keep }: DeliveryRequest,
  act: Exclude<Act, { kind: 'wait' | 'finish' }>,
  screen: Screen,
): Promise<Put> {
  switch (act.kind) {
    case 'leave-mode':
      await (await console.pane())?.leaveMode();
      return 'done';
    case 'press': {
      if (act.what === 'submit') keep({ kind: 'submitted' });
      return console.press(act.keys, screen);
    }
    case 'put': {
      keep({ kind: 'put' });
      const put = await console.put(inputFor(injection, text), screen);
      if (put === 'changed') keep(record.state);
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

function finished(keep: DeliveryRequest['keep'], outcome: DeliveryOutcome): DeliveryOutcome {
  keep(endState(outcome));
  return outcome;
}

/** It was put in, and what the agent asks hides what became of it: whoever sends it again finds out. */
function isUndecided({ phase }: DeliveryState, outcome: DeliveryOutcome): boolean {
  return phase.kind !== 'waiting' && outcome.kind === 'failed' && outcome.delivery === 'blocked-on-dialog';
}

function endState(outcome: DeliveryOutcome): DeliveryRecord['state'] {
  switch (outcome.kind) {
    case 'accepted':
    case 'taken-for-done':
      return { kind: 'accepted' };
    case 'queued':
      return { kind: 'queued' };
    case 'failed':
      return outcome;
  }
}
