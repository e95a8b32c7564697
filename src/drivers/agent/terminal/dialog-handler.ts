// Handles dialogs on an agent's screen for those who wait for the agent: performs what dialogs.ts decides. Only the
// first waiter in line is notified.

import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { DialogPattern } from '../../../ir/adapter.ts';
import { pause } from './screen-watcher.ts';
import type { ScreenWatcher, Input } from './screen-watcher.ts';
import { Dialogs } from './dialogs.ts';
import type { HookLog } from './hook-log.ts';
import type { Screen, SeenDialog } from './screen.ts';

/** A waiter that is notified of dialogs. */
export interface DialogWaiter {
  readonly note: Note;
  /** Called before keys are pressed for a person's decision. */
  readonly decided: (verdict: DialogVerdict) => void;
}

export class DialogHandler {
  readonly #watcher: ScreenWatcher;
  readonly #hooks: HookLog | null;
  readonly #dialogs = new Dialogs();
  readonly #waiters: DialogWaiter[] = [];

  constructor(watcher: ScreenWatcher, hooks: HookLog | null) {
    this.#watcher = watcher;
    this.#hooks = hooks;
  }

  /** Keeps the waiter in line until disposed. */
  join(waiter: DialogWaiter): Disposable {
    this.#waiters.push(waiter);
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        if (this.#waiters[0] === waiter) this.#dialogs.forget();
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      },
    };
  }

  decide(verdict: DialogVerdict): void {
    this.#dialogs.decide(verdict);
    this.#watcher.wake();
  }

  /** Handles a dialog on the screen if this waiter is first in line. */
  async handle(screen: Screen, waiter: DialogWaiter): Promise<void> {
    if (this.#waiters[0] !== waiter) return;
    const act = this.#dialogs.consider(this.dialogOn(screen), performance.now());
    switch (act.kind) {
      case 'nothing':
        return;
      case 'wait':
        this.#wakeIn(act.ms);
        return;
      case 'tell':
        void waiter.note({ dialog: act.dialog });
        if (act.dialog === null) this.#wakeIn(0);
        else this.#dialogs.reported();
        return;
      case 'press':
        if (act.verdict !== null) waiter.decided(act.verdict);
        if (await this.#answer({ kind: 'keys', keys: act.keys }, screen)) this.#dialogs.pressed(performance.now());
        return;
      case 'type':
        waiter.decided(act.verdict);
        if (await this.#answer({ kind: 'text', text: act.text }, screen)) {
          this.#dialogs.pressed(performance.now());
          await this.#submitAnswer(screen.dialog?.name ?? null);
        }
    }
  }

  /** Whether the input arrived at the dialog considered last; the dialog may move between observation and key press. */
  #answer(input: Input, screen: Screen): Promise<boolean> {
    return this.#putAt(input, screen, (seen) => this.#dialogs.shows(this.dialogOn(seen)));
  }

  /** The typed answer changes the look of the dialog, so only its name is compared. */
  async #submitAnswer(name: string | null): Promise<void> {
    await pause(ANSWER_MS);
    const isThere = (seen: Screen): boolean => (seen.dialog?.name ?? null) === name;
    const screen = await this.#watcher.observe();
    if (screen !== null && isThere(screen)) await this.#putAt({ kind: 'keys', keys: ['Enter'] }, screen, isThere);
  }

  async #putAt(input: Input, screen: Screen, isThere: (seen: Screen) => boolean): Promise<boolean> {
    let seen: Screen | null = screen;
    for (let tries = 0; tries < PUTS_MAX && seen !== null && isThere(seen); tries += 1) {
      const put = await this.#watcher.put(input, seen);
      if (put !== 'changed') return put === 'done';
      seen = await this.#watcher.observe();
    }
    return false;
  }

  /** A dialog reported only by a hook counts if the agent does nothing else. */
  dialogOn(screen: Screen): SeenDialog | null {
    this.#hooks?.catchUp();
    const since = this.#hooks?.blockedSince ?? null;
    if (screen.dialog !== null || since === null || screen.isReady || screen.isBusy) return screen.dialog;
    if (performance.now() - since < UNSEEN_MS) return null;
    return { name: UNKNOWN.name, text: screen.text.trimEnd(), pattern: UNKNOWN };
  }

  #wakeIn(ms: number): void {
    setTimeout(() => this.#watcher.wake(), ms).unref();
  }
}

const ANSWER_MS = 100;
/** Bounds the attempts on a screen that never stops changing. */
const PUTS_MAX = 20;
/** A dialog that the adapter can recognize is visible by then. */
const UNSEEN_MS = 1_500;

/** A dialog that matches no pattern of the adapter. */
const UNKNOWN: DialogPattern = {
  name: 'question',
  pattern: '',
  answer: null,
  approve: null,
  reject: null,
  cure: null,
  atStart: false,
};
