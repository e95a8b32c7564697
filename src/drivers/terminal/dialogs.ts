// What an agent asks, from its first appearance to its end: answered by the adapter's rule, told to a person, or answered as a
// person has decided. Pure: screens and verdicts go in, and what is to be done about them comes out.
//
// Q1  A question is dealt with once it has stood still for a moment: one that is half drawn is another.
// Q2  For one appearance keys are pressed once, by rule or by decision. A question that stands on is asked anew.
// Q3  A decision is for the question that it was made about. It waits for it no longer than until the first screen that
//     shows another, or none.

import type { DialogVerdict } from '../../engine/ports.ts';
import type { Dialog } from '../../ir/effect.ts';
import { keyName } from '../../ir/prompt-text.ts';
import { isSameQuestion } from './screen.ts';
import type { SeenDialog } from './screen.ts';

export type DialogAct =
  | { readonly kind: 'nothing' }
  /** Look again then. */
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'press'; readonly keys: readonly string[] }
  /** Text, and Enter. */
  | { readonly kind: 'type'; readonly text: string }
  /** To a person; null: what was told is over. */
  | { readonly kind: 'tell'; readonly dialog: Dialog | null };

interface Appearance {
  readonly dialog: SeenDialog;
  readonly since: number;
  readonly pressedAt: number | null;
  readonly isTold: boolean;
}

export class Dialogs {
  #current: Appearance | null = null;
  #verdict: DialogVerdict | null = null;

  decide(verdict: DialogVerdict): void {
    this.#verdict = verdict;
  }

  consider(dialog: SeenDialog | null, now: number): DialogAct {
    const before = this.#current;
    if (dialog === null || before === null || !isSameQuestion(before.dialog, dialog)) {
      const isDecided = dialog !== null && this.#verdict !== null && isAbout(this.#verdict, dialog);
      if (!isDecided) this.#verdict = null;
      this.#current = dialog === null ? null : { dialog, since: now, pressedAt: null, isTold: false };
      if (before?.isTold === true) return { kind: 'tell', dialog: null };
      return dialog === null ? { kind: 'nothing' } : { kind: 'wait', ms: STEADY_MS };
    }
    const { since, pressedAt, isTold } = before;
    if (now - since < STEADY_MS) return { kind: 'wait', ms: STEADY_MS - (now - since) };
    if (pressedAt !== null) {
      if (now - pressedAt < AGAIN_MS) return { kind: 'wait', ms: AGAIN_MS - (now - pressedAt) };
      return this.#askAnew(before);
    }
    const decided = this.#verdict === null ? null : answerTo(before.dialog, this.#verdict);
    if (decided !== null) return decided;
    const { answer } = before.dialog.pattern;
    if (answer !== null) return { kind: 'press', keys: answer };
    return isTold ? { kind: 'nothing' } : { kind: 'tell', dialog: told(before.dialog) };
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

  #askAnew(before: Appearance): DialogAct {
    const pattern = { ...before.dialog.pattern, answer: null };
    this.#current = { ...before, dialog: { ...before.dialog, pattern }, pressedAt: null, isTold: false };
    return before.isTold ? { kind: 'tell', dialog: null } : { kind: 'tell', dialog: told(before.dialog) };
  }
}

const STEADY_MS = 100;
/** What answered it is given this to take effect. */
const AGAIN_MS = 3_000;

function answerTo(asked: SeenDialog, verdict: DialogVerdict): DialogAct | null {
  const { approved, answer } = verdict;
  if (!isAbout(verdict, asked)) return null;
  if (answer === null) {
    const keys = approved ? asked.pattern.approve : asked.pattern.reject;
    return keys === null ? null : { kind: 'press', keys };
  }
  const key = /^.$/su.test(answer) ? answer : keyName(answer);
  return key === null ? { kind: 'type', text: answer } : { kind: 'press', keys: [key] };
}

function isAbout({ dialog }: DialogVerdict, asked: SeenDialog): boolean {
  return isSameQuestion(dialog, told(asked));
}

/** With what the adapter advises. */
function told({ name, text, pattern: { cure } }: SeenDialog): Dialog {
  return { name, text: cure === null ? text : `${text}\n\n${cure}` };
}
