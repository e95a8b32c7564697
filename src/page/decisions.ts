// What the person at this page decides about gates, dialogs and questions.
//
//   decision/1  A decision is sent UNDO_MS after the click or key, unless it is undone; at once if the page is left before.
//   decision/2  It is shown as `sent` until the journal has it, and never as made before that.
//   decision/3  It belongs to one asking: a gate that is opened again has nothing of the former one.

import { signal } from '@preact/signals';
import type { DecideRequest, Refusal } from '../web/protocol.ts';
import { type ActionResult, post } from './post.ts';

/** A gate as it was asked. `openedAt`: as the journal has it. */
export interface Asking {
  readonly project: string;
  readonly run: string;
  readonly gate: string;
  readonly openedAt: string | null;
}

export type Answer = Pick<DecideRequest, 'approved' | 'notes' | 'answer'>;

export type OwnDecision =
  | { readonly kind: 'undoable'; readonly answer: Answer }
  | { readonly kind: 'sent'; readonly answer: Answer; readonly note: string | null }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export const UNDO_MS = 3000;
const REMEMBERED_MAX = 200;

const decisions = signal<ReadonlyMap<string, OwnDecision>>(new Map());
/** Sends each decision that can be undone. */
const waiting = new Map<string, { readonly send: (leaving: boolean) => void; readonly cancel: () => void }>();

/** Null if the person has not decided. */
export function ownDecision(asking: Asking): OwnDecision | null {
  return decisions.value.get(keyOf(asking)) ?? null;
}

/** Nothing happens if it was decided here already. */
export function decide(asking: Asking, answer: Answer): void {
  const key = keyOf(asking);
  const before = decisions.peek().get(key);
  if (before !== undefined && before.kind !== 'refused') return;
  const { project, run, gate } = asking;
  const request: DecideRequest = { project, run, gate, ...answer };
  const send = (leaving: boolean): void => {
    waiting.get(key)?.cancel();
    waiting.delete(key);
    remember(key, { kind: 'sent', answer, note: null });
    void post('/do/decide', request, leaving).then((result) => remember(key, outcome(answer, result)));
  };
  const timer = setTimeout(send, UNDO_MS, false);
  waiting.set(key, { send, cancel: () => clearTimeout(timer) });
  remember(key, { kind: 'undoable', answer });
}

export function undo(asking: Asking): void {
  const key = keyOf(asking);
  const sending = waiting.get(key);
  if (sending === undefined) return;
  sending.cancel();
  waiting.delete(key);
  const left = new Map(decisions.peek());
  left.delete(key);
  decisions.value = left;
}

/** Call once. */
export function sendWhenLeft(): void {
  addEventListener('pagehide', () => {
    for (const { send } of waiting.values()) send(true);
  });
}

function outcome(answer: Answer, result: ActionResult): OwnDecision {
  return result.ok ? { kind: 'sent', answer, note: result.done.note } : { kind: 'refused', refusal: result.refusal };
}

function remember(key: string, decision: OwnDecision): void {
  const all = new Map(decisions.peek());
  all.delete(key);
  all.set(key, decision);
  decisions.value = new Map([...all].slice(-REMEMBERED_MAX));
}

function keyOf({ project, run, gate, openedAt }: Asking): string {
  return JSON.stringify([project, run, gate, openedAt]);
}
