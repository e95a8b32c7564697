// Questions of an agent to people, one at a time: shown to the step that waits for the agent, and answered by a decision about
// exactly that question.

import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { Dialog } from '../../../ir/effect.ts';

export interface Question {
  /** Identifies the request. */
  readonly key: string;
  readonly dialog: Dialog;
}

export class Dialogs<T extends Question> {
  readonly #first: () => T | null;
  readonly #answer: (question: T, verdict: DialogVerdict) => void;
  readonly #listeners = new Set<Note>();
  #shown: { readonly key: string; readonly listener: Note } | null = null;
  #verdict: DialogVerdict | null = null;

  /** `first`: the next question to answer. */
  constructor(first: () => T | null, answer: (question: T, verdict: DialogVerdict) => void) {
    this.#first = first;
    this.#answer = answer;
  }

  /** Only the first listener is notified. Returns a function that stops listening. */
  listen(note: Note): () => void {
    // Two listeners may be the same function.
    const listener: Note = (progress) => note(progress);
    this.#listeners.add(listener);
    this.update();
    return () => {
      this.#listeners.delete(listener);
      this.update();
    };
  }

  /** After a restart, a decision may arrive before the question does. */
  decide(verdict: DialogVerdict): void {
    this.#verdict = verdict;
    this.update();
  }

  /** To be called when the open question may have changed. */
  update(): void {
    const question = this.#first();
    const [listener] = this.#listeners;
    const shown = this.#shown;
    if (shown !== null && (shown.key !== question?.key || shown.listener !== listener)) {
      this.#shown = null;
      if (this.#listeners.has(shown.listener)) void shown.listener({ dialog: null });
    }
    if (question === null) return;
    if (this.#shown === null && listener !== undefined) {
      this.#shown = { key: question.key, listener };
      void listener({ dialog: question.dialog });
    }
    const { name, text } = question.dialog;
    if (this.#verdict?.dialog.name === name && this.#verdict.dialog.text === text)
      this.#answer(question, this.#verdict);
  }
}
