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
// If the screen changed meanwhile, the handler observes again, a few times.

import type { DialogVerdict } from '../../../engine/ports.ts';
import type { Timing } from '../../../ir/adapter.ts';
import type { Dialog } from '../../../ir/effect.ts';
import { keyName } from '../../../ir/prompt-text.ts';
import { commonText, isSameDialog, isSameInWords } from './dialog-text.ts';
import type { SeenDialog } from './screen.ts';

export type DialogAct =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'wait'; readonly ms: number }
  /** `verdict` is null for the adapter's rule. */
  | { readonly kind: 'press'; readonly keys: readonly string[]; readonly verdict: DialogVerdict | null }
  /** Types the text, then Enter. */
  | { readonly kind: 'type'; readonly text: string; readonly verdict: DialogVerdict }
  /** Reports to a person; null: the reported dialog is over. */
  | { readonly kind: 'tell'; readonly dialog: Dialog | null };

interface Appearance {
  readonly dialog: SeenDialog;
  readonly since: number;
  readonly changes: number;
  readonly changedAt: number;
  readonly common: string;
  /** Identifies the dialog; null: use the latest version. */
  readonly known: Dialog | null;
  readonly isReported: boolean;
  readonly pressedAt: number | null;
  /** The adapter's rule has been tried. */
  readonly isPastRule: boolean;
}

export class Dialogs {
  readonly #timing: Timing;
  #current: Appearance | null = null;
  #verdict: DialogVerdict | null = null;

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  decide(verdict: DialogVerdict): void {
    this.#verdict = verdict;
  }

  consider(dialog: SeenDialog | null, now: number): DialogAct {
    const before = this.#current;
    const current = dialog === null ? null : update(before, dialog, now, this.#timing);
    this.#current = current;
    const isDecided = dialog !== null && this.#verdict !== null && isSameDialog(this.#verdict.dialog, reportOf(dialog));
    if (!isDecided) this.#verdict = null;
    if (before?.isReported === true && current?.isReported !== true) return { kind: 'tell', dialog: null };
    return current === null ? { kind: 'nothing' } : this.#actOn(current, now);
  }

  /** Whether an observation shows the dialog considered last. */
  shows(dialog: SeenDialog | null): boolean {
    return this.#current !== null && dialog !== null && isStill(this.#current, dialog);
  }

  pressed(now: number): void {
    this.#verdict = null;
    if (this.#current !== null) this.#current = { ...this.#current, pressedAt: now };
  }

  reported(): void {
    if (this.#current !== null) this.#current = { ...this.#current, isReported: true };
  }

  /** The waiter that was notified is gone. */
  forget(): void {
    if (this.#current !== null) this.#current = { ...this.#current, isReported: false };
  }

  #actOn(current: Appearance, now: number): DialogAct {
    const { dialog, since, changes, changedAt, common, pressedAt, isReported, isPastRule } = current;
    const { settleMs, visibleMs, reactMs } = this.#timing;
    const stillMs = now - changedAt;
    const isMoving = changes >= MOVES && changedAt - since >= visibleMs;
    const stable = isMoving ? reportOf({ ...dialog, text: common }) : null;
    const known = current.known ?? this.#verdict?.dialog ?? stable;
    this.#current = { ...current, known };
    if (known === null && stillMs < settleMs) return { kind: 'wait', ms: settleMs - stillMs };
    if (pressedAt !== null) {
      if (now - pressedAt < reactMs) return { kind: 'wait', ms: reactMs - (now - pressedAt) };
      this.#current = { ...current, known, pressedAt: null, isReported: false, isPastRule: true };
      return { kind: 'tell', dialog: isReported ? null : (known ?? reportOf(dialog)) };
    }
    const decided = this.#verdict === null ? null : answerTo(dialog, this.#verdict);
    if (decided !== null) return decided;
    if (dialog.pattern.answer !== null && !isPastRule) {
      return { kind: 'press', keys: dialog.pattern.answer, verdict: null };
    }
    if (isReported) return { kind: 'nothing' };
    if (known === null && stillMs < visibleMs) return { kind: 'wait', ms: visibleMs - stillMs };
    const reported = known ?? reportOf(dialog);
    this.#current = { ...current, known: reported };
    return { kind: 'tell', dialog: reported };
  }
}

/** A dialog that changed this often keeps changing; a new dialog changes once. */
const MOVES = 2;

const FRESH = { changes: 0, known: null, isReported: false, pressedAt: null, isPastRule: false };

function update(before: Appearance | null, dialog: SeenDialog, now: number, { pauseMs }: Timing): Appearance {
  const { text } = dialog;
  const fresh: Appearance = { ...FRESH, dialog, since: now, changedAt: now, common: text };
  if (before === null || before.dialog.name !== dialog.name) return fresh;
  if (isStill(before, dialog)) return { ...before, dialog };
  const isAnother = before.known !== null || before.pressedAt !== null;
  if (isAnother && !isSameInWords(before.dialog.text, text)) return fresh;
  const changed = { ...before, dialog, changedAt: now, known: null, isReported: false };
  // Still drawing.
  if (now - before.since < pauseMs) return { ...changed, common: text };
  return { ...changed, changes: before.changes + 1, common: commonText(before.common, text) };
}

function isStill({ dialog, known }: Appearance, seenNow: SeenDialog): boolean {
  return known === null ? isSameDialog(dialog, seenNow) : isSameDialog(known, reportOf(seenNow));
}

function answerTo({ pattern }: SeenDialog, verdict: DialogVerdict): DialogAct | null {
  const { approved, answer } = verdict;
  if (answer === null) {
    const keys = approved ? pattern.approve : pattern.reject;
    return keys === null ? null : { kind: 'press', keys, verdict };
  }
  const key = /^.$/su.test(answer) ? answer : keyName(answer);
  return key === null ? { kind: 'type', text: answer, verdict } : { kind: 'press', keys: [key], verdict };
}

/** Includes the adapter's advice. */
function reportOf({ name, text, pattern: { cure } }: SeenDialog): Dialog {
  return { name, text: cure === null ? text : `${text}\n\n${cure}` };
}
