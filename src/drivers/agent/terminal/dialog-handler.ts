// Handles dialogs on an agent's screen for those who wait for the agent: performs what dialogs.ts decides. Only the
// first waiter in line is notified.

import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { DialogPattern, Timing } from '../../../ir/adapter.ts';
import { Dialogs } from './dialogs.ts';
import type { HookLog } from './hook-log.ts';
import { type Input, pause, type ScreenWatcher } from './screen-watcher.ts';
import type { Screen, SeenDialog } from './screen.ts';

/** Stays in line until disposed. */
export interface DialogWaiter extends Disposable {
  /** Handles a dialog on the screen if this waiter is first in line. */
  handle(screen: Screen): Promise<void>;
}

export class DialogHandler {
  readonly #watcher: Readonly<ScreenWatcher>;
  readonly #hooks: Readonly<HookLog> | null;
  readonly #timing: Timing;
  readonly #dialogs: Dialogs;
  readonly #waiters: DialogWaiter[] = [];

  constructor(watcher: Readonly<ScreenWatcher>, hooks: Readonly<HookLog> | null, timing: Timing) {
    this.#watcher = watcher;
    this.#hooks = hooks;
    this.#timing = timing;
    this.#dialogs = new Dialogs(timing);
  }

  /** `decided` is called before keys are pressed for a person's decision. */
  join(note: Note, decided: (verdict: DialogVerdict) => void = () => undefined): DialogWaiter {
    const waiter: DialogWaiter = {
      handle: async (screen) => {
        if (this.#waiters[0] === waiter) await this.#handle(screen, note, decided);
      },
      [Symbol.dispose]: () => {
        const at = this.#waiters.indexOf(waiter);
        if (at === 0) this.#dialogs.forget();
        if (at !== -1) this.#waiters.splice(at, 1);
      },
    };
    this.#waiters.push(waiter);
    return waiter;
  }

  decide(verdict: DialogVerdict): void {
    this.#dialogs.decide(verdict);
    this.#watcher.wake();
  }

  async #handle(screen: Screen, note: Note, decided: (verdict: DialogVerdict) => void): Promise<void> {
    const act = this.#dialogs.consider(this.dialogOn(screen), performance.now());
    switch (act.kind) {
      case 'nothing':
        return;
      case 'wait':
        this.#wakeIn(act.ms);
        return;
      case 'tell':
        void note({ dialog: act.dialog });
        if (act.dialog === null) this.#wakeIn(0);
        else this.#dialogs.reported();
        return;
      case 'press':
        if (act.verdict !== null) decided(act.verdict);
        await this.#answer({ kind: 'keys', keys: act.keys }, screen);
        return;
      case 'type':
        decided(act.verdict);
        if (await this.#answer({ kind: 'text', text: act.text }, screen)) await this.#submitAnswer(screen);
    }
  }

  /** Whether the input arrived at the dialog considered last; the dialog may move between observation and key press. */
  async #answer(input: Input, screen: Screen): Promise<boolean> {
    const isShown = (seen: Screen): boolean => this.#dialogs.shows(this.dialogOn(seen));
    const hasArrived = await this.#watcher.putWhile(isShown, input, screen);
    if (hasArrived) this.#dialogs.pressed(performance.now());
    return hasArrived;
  }

  /** The typed answer changes the look of the dialog, so only its name is compared. */
  async #submitAnswer({ dialog }: Screen): Promise<void> {
    await pause(this.#timing.settleMs);
    await this.#watcher.putWhile((seen) => seen.dialog?.name === dialog?.name, { kind: 'keys', keys: ['Enter'] });
  }

  /** A dialog reported only by a hook counts if the agent does nothing else. */
  dialogOn(screen: Screen): SeenDialog | null {
    this.#hooks?.catchUp();
    const since = this.#hooks?.blockedSince ?? null;
    if (screen.dialog !== null || since === null || screen.isReady || screen.isBusy) return screen.dialog;
    if (performance.now() - since < this.#timing.visibleMs) return null;
    return { name: UNKNOWN.name, text: screen.text.trimEnd(), pattern: UNKNOWN };
  }

  #wakeIn(ms: number): void {
    setTimeout(() => this.#watcher.wake(), ms).unref();
  }
}

/** A dialog that matches no pattern of the adapter. */
const NO_KEYS = { answer: null, approve: null, reject: null };
const UNKNOWN: DialogPattern = { name: 'question', pattern: '', ...NO_KEYS, cure: null, atStart: false };
