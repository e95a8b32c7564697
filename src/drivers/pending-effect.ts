// An effect in flight: its stops, verdicts and conclusion as promises, and the callbacks to answer.

import type { Answer, DialogVerdict, Note, StopHow } from '../engine/ports.ts';
import type { Outcome } from '../ir/effect.ts';
import { crash } from '../sys/errors.ts';

export class PendingEffect {
  readonly answers: Answer[];
  readonly #stop = deferred<StopHow>();
  readonly #force = deferred<void>();
  readonly #conclusion = deferred<null>();
  /** The first stop. */
  readonly stopped = this.#stop.promise;
  /** The first stop without grace. */
  readonly forced = this.#force.promise;
  readonly concluded = this.#conclusion.promise;
  isStopped = false;
  #verdict: DialogVerdict | null = null;
  #tellVerdict: ((verdict: DialogVerdict) => void) | null = null;

  constructor(answer: Answer) {
    this.answers = [answer];
  }

  stop(how: StopHow): void {
    this.isStopped = true;
    this.#stop.resolve(how);
    if (how.force) this.#force.resolve();
  }

  conclude(): void {
    this.#conclusion.resolve(null);
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
  ask(effectId: string, answer: Answer, perform: (pending: PendingEffect) => Promise<Outcome>): void {
    const known = this.#open.get(effectId);
    if (known !== undefined) {
      known.answers.push(answer);
      return;
    }
    const pending = new PendingEffect(answer);
    this.#open.set(effectId, pending);
    const answered = async (): Promise<void> => {
      await soon();
      const outcome = await perform(pending);
      this.#open.delete(effectId);
      for (const each of pending.answers) each(outcome);
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

/** A promise, and the function that resolves it. */
export function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** For callers that want no progress reports. */
export const ignoreProgress: Note = () => Promise.resolve();
