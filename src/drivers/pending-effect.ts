// An effect in flight: its stops, verdicts and conclusion as promises, and the callbacks to answer.

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

  /** Calls with every decision about a dialog of the effect, and at once with the latest earlier one. */
  whenDecided(tell: (verdict: DialogVerdict) => void): void {
    this.#tellVerdict = tell;
    if (this.#verdict !== null) tell(this.#verdict);
  }
}

/** The effects that a driver has not answered yet. */
export class PendingEffects {
  readonly #open = new Map<string, PendingEffect>();

  get(effectId: string): PendingEffect | undefined {
    return this.#open.get(effectId);
  }

  /** Performs the effect and answers. A second request meanwhile gets the same answer. An exception ends the engine. */
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

/** The next tick: nobody is answered during the call that requests. */
export function soon(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
