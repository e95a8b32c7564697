// What an agent asks people, one question at a time: told to whoever waits for the agent, and answered by what is decided
// about that very question.

import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { Dialog } from '../../../ir/effect.ts';

export interface Question {
  /** Of the request. */
  readonly key: string;
  readonly dialog: Dialog;
}

export class Dialogs<T extends Question> {
  readonly #first: () => T | null;
  readonly #answer: (question: T, verdict: DialogVerdict) => void;
  readonly #listeners = new Set<Note>();
  #shown: { readonly key: string; readonly listener: Note } | null = null;
  #verdict: DialogVerdict | null = null;

  /** `first`: the question that is to be answered next. */
  constructor(first: () => T | null, answer: (question: T, verdict: DialogVerdict) => void) {
    this.#first = first;
    this.#answer = answer;
  }

  /** The first that listens is told. Returns how to leave. */
  listen(note: Note): () => void {
    // Two may be told by the same function.
    const listener: Note = (progress) => note(progress);
    this.#listeners.add(listener);
    this.look();
    return () => {
      this.#listeners.delete(listener);
      this.look();
    };
  }

  /** May come before the question has been heard again. */
  decide(verdict: DialogVerdict): void {
    this.#verdict = verdict;
    this.look();
  }

  /** There may be another question, or none any more. */
  look(): void {
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
