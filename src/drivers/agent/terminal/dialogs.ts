// An agent's dialogs from first appearance to end: answered by the adapter's rule, reported to a person, or answered as
// the person decided. Pure: screens and decisions go in, acts come out.
//
// dialog/1  Presses keys after the dialog stood still for a moment: a half-drawn dialog is a different one. Reports to
//           a person a little later, after its counters have moved once.
// dialog/2  Presses keys once for each appearance, by rule or by decision. A dialog that stays is reported again.
// dialog/3  A decision applies only to the dialog that it was made for. It expires with the first screen that shows
//           another dialog or none.
// dialog/4  A dialog that never stands still is identified by the common part of all its versions (dialog-text.ts). A
//           change after the report makes it another dialog, unless only digits and symbols change repeatedly.
//
// Keys are pressed at the latest observation if it shows the dialog, and tmux compares the screen once more (tmux/5).
// If the screen changed meanwhile, the handler observes again, a few times. So keys reach a moving dialog and nothing
// else.

import type { DialogVerdict } from '../../../engine/ports.ts';
import type { Dialog } from '../../../ir/effect.ts';
import { keyName } from '../../../ir/prompt-text.ts';
import { commonText, isSameInWords, isSameDialog } from './dialog-text.ts';
import type { SeenDialog } from './screen.ts';

export type DialogAct =
  | { readonly kind: 'nothing' }
  /** Observe again after this time. */
  | { readonly kind: 'wait'; readonly ms: number }
  /** `verdict` is null for the adapter's rule. */
  | { readonly kind: 'press'; readonly keys: readonly string[]; readonly verdict: DialogVerdict | null }
  /** Types the text, then Enter. */
  | { readonly kind: 'type'; readonly text: string; readonly verdict: DialogVerdict }
  /** Reports to a person; null: the reported dialog is over. */
  | { readonly kind: 'tell'; readonly dialog: Dialog | null };

interface Appearance {
  /** Latest version. */
  readonly dialog: SeenDialog;
  readonly since: number;
  readonly changes: number;
  readonly changedAt: number;
  /** Common part of all versions. */
  readonly common: string;
  /** Identifies the dialog; null: use the latest version. */
  readonly known: Dialog | null;
  readonly isTold: boolean;
  readonly pressedAt: number | null;
  /** The adapter's rule has been tried. */
  readonly isPastRule: boolean;
}

export class Dialogs {
  #current: Appearance | null = null;
  #verdict: DialogVerdict | null = null;

  decide(verdict: DialogVerdict): void {
    this.#verdict = verdict;
  }

  consider(dialog: SeenDialog | null, now: number): DialogAct {
    const before = this.#current;
    const current = dialog === null ? null : seen(before, dialog, now);
    this.#current = current;
    if (this.#verdict !== null && (dialog === null || !isAbout(this.#verdict, dialog))) this.#verdict = null;
    if (before?.isTold === true && current?.isTold !== true) return { kind: 'tell', dialog: null };
    return current === null ? { kind: 'nothing' } : this.#deal(current, now);
  }

  /** Whether an observation shows the dialog considered last. */
  shows(dialog: SeenDialog | null): boolean {
    return this.#current !== null && dialog !== null && isStill(this.#current, dialog);
  }

  /** The keys or the text arrived. */
  pressed(now: number): void {
    this.#verdict = null;
    if (this.#current !== null) this.#current = { ...this.#current, pressedAt: now };
  }

  reported(): void {
    if (this.#current !== null) this.#current = { ...this.#current, isTold: true };
  }

  /** The waiter that was notified is gone. */
  forget(): void {
    if (this.#current !== null) this.#current = { ...this.#current, isTold: false };
  }

  #deal(asked: Appearance, now: number): DialogAct {
    const { dialog, since, changes, changedAt, pressedAt, isTold, isPastRule } = asked;
    const stillMs = now - changedAt;
    const isMoving = changes >= MOVES && changedAt - since >= TICK_MS;
    const known = asked.known ?? this.#verdict?.dialog ?? (isMoving ? told({ ...dialog, text: asked.common }) : null);
    this.#current = { ...asked, known };
    if (known === null && stillMs < STEADY_MS) return { kind: 'wait', ms: STEADY_MS - stillMs };
    if (pressedAt !== null) {
      if (now - pressedAt < AGAIN_MS) return { kind: 'wait', ms: AGAIN_MS - (now - pressedAt) };
      this.#current = { ...asked, known, pressedAt: null, isTold: false, isPastRule: true };
      return { kind: 'tell', dialog: isTold ? null : (known ?? told(dialog)) };
    }
    const decided = this.#verdict === null ? null : answerTo(dialog, this.#verdict);
    if (decided !== null) return decided;
    if (dialog.pattern.answer !== null && !isPastRule) {
      return { kind: 'press', keys: dialog.pattern.answer, verdict: null };
    }
    if (isTold) return { kind: 'nothing' };
    if (known === null && stillMs < TICK_MS) return { kind: 'wait', ms: TICK_MS - stillMs };
    this.#current = { ...asked, known: known ?? told(dialog) };
    return { kind: 'tell', dialog: known ?? told(dialog) };
  }
}

const STEADY_MS = 100;
/** A counter of seconds has moved by then. */
const TICK_MS = 1_500;
/** A dialog that changed this often keeps changing; a new dialog changes once. */
const MOVES = 2;
/** Changes in this time are still drawing. */
const DRAWN_MS = 300;
/** Time for the answer to take effect. */
const AGAIN_MS = 3_000;

function seen(before: Appearance | null, dialog: SeenDialog, now: number): Appearance {
  const { text } = dialog;
  const fresh: Appearance = {
    dialog,
    since: now,
    changes: 0,
    changedAt: now,
    common: text,
    known: null,
    isTold: false,
    pressedAt: null,
    isPastRule: false,
  };
  if (before === null || before.dialog.name !== dialog.name) return fresh;
  if (isStill(before, dialog)) return { ...before, dialog };
  const isAnother = before.known !== null || before.pressedAt !== null;
  if (isAnother && !isSameInWords(before.dialog.text, text)) return fresh;
  const changed = { ...before, dialog, changedAt: now, known: null, isTold: false };
  if (now - before.since < DRAWN_MS) return { ...changed, common: text };
  return { ...changed, changes: before.changes + 1, common: commonText(before.common, text) };
}

function isStill({ dialog, known }: Appearance, seenNow: SeenDialog): boolean {
  return known === null ? isSameDialog(dialog, seenNow) : isSameDialog(known, told(seenNow));
}

function answerTo(asked: SeenDialog, verdict: DialogVerdict): DialogAct | null {
  const { approved, answer } = verdict;
  if (answer === null) {
    const keys = approved ? asked.pattern.approve : asked.pattern.reject;
    return keys === null ? null : { kind: 'press', keys, verdict };
  }
  const key = /^.$/su.test(answer) ? answer : keyName(answer);
  return key === null ? { kind: 'type', text: answer, verdict } : { kind: 'press', keys: [key], verdict };
}

function isAbout({ dialog }: DialogVerdict, asked: SeenDialog): boolean {
  return isSameDialog(dialog, told(asked));
}

/** Includes the adapter's advice. */
function told({ name, text, pattern: { cure } }: SeenDialog): Dialog {
  return { name, text: cure === null ? text : `${text}\n\n${cure}` };
}
