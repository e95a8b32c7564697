// Observes the terminal of an agent, and tells waiters when to observe again. Without waiters it watches nothing and
// sets no timer.

import type { FSWatcher } from 'node:fs';

import type { TerminalProfile } from '../../../ir/adapter.ts';
import { watchPath } from '../../../sys/watch.ts';
import type { InputResult, TerminalPane } from '../tmux/terminal-pane.ts';
import { type AgentHistory, type Screen, type ScreenReader, screenReader } from './screen.ts';

export interface ScreenWatcherOptions {
  readonly ways: TerminalProfile;
  /** Folder of the agent's start: terminal output changes a file in it. */
  readonly folder: string;
  readonly pane: () => Promise<TerminalPane | null>;
  readonly history: () => AgentHistory;
  readonly lost: () => void;
}

export type Input =
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  /** Typed as keys, or pasted at once. */
  | { readonly kind: 'text' | 'paste'; readonly text: string };

/** Others get a `Readonly<ScreenWatcher>`. */
export class ScreenWatcher {
  /** Read before an observation, so that no later change is missed. */
  changes = 0;
  readonly #options: ScreenWatcherOptions;
  readonly #read: ScreenReader;
  #pane: TerminalPane | null = null;
  readonly #waiting = new Set<() => void>();
  #watchers = 0;
  #watcher: FSWatcher | null = null;

  constructor(options: ScreenWatcherOptions) {
    this.#options = options;
    this.#read = screenReader(options.ways);
  }

  /** Null if the terminal is gone. */
  async pane(): Promise<TerminalPane | null> {
    this.#pane ??= await this.#options.pane();
    return this.#pane;
  }

  async observe(): Promise<Screen | null> {
    const capture = (await (await this.pane())?.capture()) ?? null;
    if (capture !== null) return this.#read(capture, this.#options.history());
    this.#pane = null;
    this.#options.lost();
    return null;
  }

  /** Puts input in if the screen is still the observed one. */
  async put(input: Input, { capture }: Screen): Promise<InputResult> {
    const pane = await this.pane();
    if (pane === null) return 'gone';
    switch (input.kind) {
      case 'keys':
        return pane.press(input.keys, capture);
      case 'text':
        return pane.type(input.text, capture);
      case 'paste':
        return pane.paste(Buffer.from(input.text), capture);
    }
  }

  /** Puts input in if the screen is the expected one; tries again if it changes meanwhile. Whether the input arrived. */
  async putWhile(isExpected: (screen: Screen) => boolean, input: Input, first: Screen | null = null): Promise<boolean> {
    let screen = first;
    for (let tries = 0; tries < TRIES; tries += 1) {
      screen ??= await this.observe();
      if (screen === null || !isExpected(screen)) return false;
      const put = await this.put(input, screen);
      if (put !== 'changed') return put === 'done';
      screen = null;
    }
    return false;
  }

  wake(): void {
    this.changes += 1;
    for (const end of this.#waiting) end();
  }

  watch(): Disposable {
    this.#watchers += 1;
    if (this.#watchers === 1) this.#watcher = watchPath(this.#options.folder, () => this.wake(), { background: true });
    return {
      [Symbol.dispose]: () => {
        this.#watchers -= 1;
        if (this.#watchers > 0) return;
        this.#watcher?.close();
        this.#watcher = null;
      },
    };
  }

  /** Resolves after a change since then, or when the time is over. `background`: does not keep the process alive. */
  async untilChanged(since: number, ms: number, background = false): Promise<void> {
    if (this.changes !== since) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        resolve();
      };
      // Without a watch, poll.
      const timer = setTimeout(end, this.#watcher === null ? Math.min(ms, UNWATCHED_MS) : ms);
      if (background) timer.unref();
      this.#waiting.add(end);
    });
  }
}

const UNWATCHED_MS = 100;
/** Bounds the attempts on a screen that never stops changing. */
const TRIES = 20;

export function pause(ms: number, background = false): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (background) timer.unref();
  });
}
