// An effect from being asked for to being answered, and what is said about it meanwhile, as promises that may come true.

import type { Answer, DialogVerdict, StopHow } from '../engine/ports.ts';
import type { Outcome } from '../ir/effect.ts';
import { crash } from '../sys/throw-uncaught.ts';

export class PendingEffect {
  readonly answers: Answer[];
  /** The first stop. */
  readonly stopped: Promise<StopHow>;
  /** The first stop without grace. */
  readonly forced: Promise<void>;
  readonly concluded: Promise<null>;
  #stopped = false;
  #tellStopped: (how: StopHow) => void = () => undefined;
  #tellForced: () => void = () => undefined;
  #tellConcluded: (nothing: null) => void = () => undefined;
  #verdict: DialogVerdict | null = null;
  #tellVerdict: ((verdict: DialogVerdict) => void) | null = null;

  constructor(answer: Answer) {
    this.answers = [answer];
    this.stopped = new Promise((resolve) => {
      this.#tellStopped = resolve;
    });
    this.forced = new Promise((resolve) => {
      this.#tellForced = resolve;
    });
    this.concluded = new Promise((resolve) => {
      this.#tellConcluded = resolve;
    });
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  stop(how: StopHow): void {
    this.#stopped = true;
    this.#tellStopped(how);
    if (how.force) this.#tellForced();
  }

  conclude(): void {
    this.#tellConcluded(null);
  }

  decide(verdict: DialogVerdict): void {
    this.#verdict = verdict;
    this.#tellVerdict?.(verdict);
  }

  /** To be told of every decision about what the effect asked people, the latest that came before included. */
  whenDecided(tell: (verdict: DialogVerdict) => void): void {
    this.#tellVerdict = tell;
    if (this.#verdict !== null) tell(this.#verdict);
  }
}

/** The effects that have been asked for and not answered yet. */
export class PendingEffects {
  readonly #open = new Map<string, PendingEffect>();

  get(effectId: string): PendingEffect | undefined {
    return this.#open.get(effectId);
  }

  /** Answered with what it comes to; whoever asks again meanwhile is answered with the same. A bug is loud. */
  ask(effectId: string, answer: Answer, perform: (asked: PendingEffect) => Promise<Outcome>): void {
    const known = this.#open.get(effectId);
    if (known !== undefined) {
      known.answers.push(answer);
      return;
    }
    const asked = new PendingEffect(answer);
    this.#open.set(effectId, asked);
    const answered = async (): Promise<void> => {
      await soon();
      const outcome = await perform(asked);
      this.#open.delete(effectId);
      for (const each of asked.answers) each(outcome);
    };
    answered().catch(crash);
  }
}

/** The next turn of the event loop: nobody is answered during the call in which they ask. */
export function soon(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
