// Deals with what an agent asks on its screen, on behalf of those who wait for something from it: performs what dialogs.ts
// decides. The first of them in line is told, and nobody else.

import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { DialogPattern } from '../../../ir/adapter.ts';
import { pause } from './screen-watcher.ts';
import type { Console, Input } from './screen-watcher.ts';
import { Dialogs } from './dialogs.ts';
import type { HookLog } from './hook-log.ts';
import type { Screen, SeenDialog } from './screen.ts';

/** Whoever the agent asks. */
export interface Minder {
  readonly note: Note;
  /** Keys are about to be pressed for what a person has decided. */
  readonly decided: (verdict: DialogVerdict) => void;
}

export class Minding {
  readonly #console: Console;
  readonly #hooks: HookLog | null;
  readonly #dialogs = new Dialogs();
  readonly #minders: Minder[] = [];

  constructor(console: Console, hooks: HookLog | null) {
    this.#console = console;
    this.#hooks = hooks;
  }

  /** In line, for as long as this is held. */
  join(minder: Minder): Disposable {
    this.#minders.push(minder);
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        if (this.#minders[0] === minder) this.#dialogs.forget();
        this.#minders.splice(this.#minders.indexOf(minder), 1);
      },
    };
  }

  decide(verdict: DialogVerdict): void {
    this.#dialogs.decide(verdict);
    this.#console.wake();
  }

  /** Deals with what the agent asks, for whoever is first in line. */
  async mind(screen: Screen, minder: Minder): Promise<void> {
    if (this.#minders[0] !== minder) return;
    const act = this.#dialogs.consider(this.askedOn(screen), performance.now());
    switch (act.kind) {
      case 'nothing':
        return;
      case 'wait':
        this.#wakeIn(act.ms);
        return;
      case 'tell':
        void minder.note({ dialog: act.dialog });
        if (act.dialog === null) this.#wakeIn(0);
        else this.#dialogs.told();
        return;
      case 'press':
        if (act.verdict !== null) minder.decided(act.verdict);
        if (await this.#answer({ kind: 'keys', keys: act.keys }, screen)) this.#dialogs.pressed(performance.now());
        return;
      case 'type':
        minder.decided(act.verdict);
        if (await this.#answer({ kind: 'text', text: act.text }, screen)) {
          this.#dialogs.pressed(performance.now());
          await this.#submitAnswer(screen.dialog?.name ?? null);
        }
    }
  }

  /** Whether it was put in: at the question that was considered last, which may move between a look and a key. */
  #answer(input: Input, screen: Screen): Promise<boolean> {
    return this.#putAt(input, screen, (seen) => this.#dialogs.shows(this.askedOn(seen)));
  }

  /** The text of an answer has changed how its question looks. */
  async #submitAnswer(name: string | null): Promise<void> {
    await pause(ANSWER_MS);
    const isThere = (seen: Screen): boolean => (seen.dialog?.name ?? null) === name;
    const screen = await this.#console.look();
    if (screen !== null && isThere(screen)) await this.#putAt({ kind: 'keys', keys: ['Enter'] }, screen, isThere);
  }

  async #putAt(input: Input, screen: Screen, isThere: (seen: Screen) => boolean): Promise<boolean> {
    let seen: Screen | null = screen;
    for (let tries = 0; tries < PUTS_MAX && seen !== null && isThere(seen); tries += 1) {
      const put = await this.#console.put(input, seen);
      if (put !== 'changed') return put === 'done';
      seen = await this.#console.look();
    }
    return false;
  }

  /** A question that only its hook tells of is one as well, if the agent does nothing else. */
  askedOn(screen: Screen): SeenDialog | null {
    this.#hooks?.catchUp();
    const since = this.#hooks?.blockedSince ?? null;
    if (screen.dialog !== null || since === null || screen.isReady || screen.isBusy) return screen.dialog;
    if (performance.now() - since < UNSEEN_MS) return null;
    return { name: UNKNOWN.name, text: screen.text.trimEnd(), pattern: UNKNOWN };
  }

  #wakeIn(ms: number): void {
    setTimeout(() => this.#console.wake(), ms).unref();
  }
}

const ANSWER_MS = 100;
/** A screen that changes all the time is not waited for. */
const PUTS_MAX = 20;
/** A question that could be seen would have been seen by then. */
const UNSEEN_MS = 1_500;

/** What no pattern of the adapter fits. */
const UNKNOWN: DialogPattern = {
  name: 'question',
  pattern: '',
  answer: null,
  approve: null,
  reject: null,
  cure: null,
  atStart: false,
};
