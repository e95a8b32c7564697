// What an agent asks, from its first appearance to its end: answered by the adapter's rule, told to a person, or answered as a
// person has decided. Pure: screens and verdicts go in, and what is to be done about them comes out.
//
// Q1  Keys are pressed once a question has stood still for a moment: one that is half drawn is another. A person is told a
//     little later, when what ticks in it has ticked.
// Q2  For one appearance keys are pressed once, by rule or by decision. A question that stands on is asked anew.
// Q3  A decision is for the question that it was made about. It waits for it no longer than until the first screen that
//     shows another, or none.
// Q4  A question that never stands still is told by what is common to all that was seen of it (dialog-text.ts), and is the same
//     for as long as all of that is there. What has changed since it was told is another question, unless only figures and
//     signs have, over and over.
//
// Keys are pressed at the latest look, if that shows the question, and by tmux, if its screen is still that of the look (X5).
// What has moved meanwhile is looked at anew, a few times; so they reach a question that moves, and nothing else.

import type { DialogVerdict } from '../../../engine/ports.ts';
import type { Dialog } from '../../../ir/effect.ts';
import { keyName } from '../../../ir/prompt-text.ts';
import { common, isSameInWords, isSameQuestion } from './dialog-text.ts';
import type { SeenDialog } from './screen.ts';

export type DialogAct =
  | { readonly kind: 'nothing' }
  /** Look again then. */
  | { readonly kind: 'wait'; readonly ms: number }
  /** By the adapter's rule, where it is for no verdict. */
  | { readonly kind: 'press'; readonly keys: readonly string[]; readonly verdict: DialogVerdict | null }
  /** Text, and Enter. */
  | { readonly kind: 'type'; readonly text: string; readonly verdict: DialogVerdict }
  /** To a person; null: what was told is over. */
  | { readonly kind: 'tell'; readonly dialog: Dialog | null };

interface Appearance {
  /** As it was seen last. */
  readonly dialog: SeenDialog;
  readonly since: number;
  readonly changes: number;
  readonly changedAt: number;
  /** To all that was seen of it. */
  readonly common: string;
  /** By what it is known again; null: by how it was seen last. */
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

  /** Whether a look shows what was considered last. */
  shows(dialog: SeenDialog | null): boolean {
    return this.#current !== null && dialog !== null && isStill(this.#current, dialog);
  }

  /** What was asked for has been put in. */
  pressed(now: number): void {
    this.#verdict = null;
    if (this.#current !== null) this.#current = { ...this.#current, pressedAt: now };
  }

  told(): void {
    if (this.#current !== null) this.#current = { ...this.#current, isTold: true };
  }

  /** Whoever was told listens no longer. */
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
/** A clock that goes by seconds has gone on by then. */
const TICK_MS = 1_500;
/** What has changed so often goes on changing; another question changes once. */
const MOVES = 2;
/** What changes in the first moment is being drawn. */
const DRAWN_MS = 300;
/** What answered it is given this to take effect. */
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
  return { ...changed, changes: before.changes + 1, common: common(before.common, text) };
}

function isStill({ dialog, known }: Appearance, seenNow: SeenDialog): boolean {
  return known === null ? isSameQuestion(dialog, seenNow) : isSameQuestion(known, told(seenNow));
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
  return isSameQuestion(dialog, told(asked));
}

/** With what the adapter advises. */
function told({ name, text, pattern: { cure } }: SeenDialog): Dialog {
  return { name, text: cure === null ? text : `${text}\n\n${cure}` };
}
