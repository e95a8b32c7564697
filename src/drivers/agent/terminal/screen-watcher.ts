// Observes the terminal of an agent, and tells waiters when to observe again. Without waiters it watches nothing and
// sets no timer.

import type { FSWatcher } from 'node:fs';
import type { TerminalProfile } from '../../../ir/adapter.ts';
import { watchPath } from '../../../sys/watch.ts';
import type { InputResult, TerminalPane } from '../tmux/terminal-pane.ts';
import { ScreenReader } from './screen.ts';
import type { AgentHistory, Screen } from './screen.ts';

export interface ScreenWatcherOptions {
  readonly ways: TerminalProfile;
  /** Folder of the agent's start: terminal output changes a file in it. */
  readonly folder: string;
  /** Null if the terminal is gone. */
  readonly pane: () => Promise<TerminalPane | null>;
  readonly history: () => AgentHistory;
  /** Called when the terminal is not found. */
  readonly lost: () => void;
}

export type Input =
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  /** Typed as keys, or pasted at once. */
  | { readonly kind: 'text' | 'paste'; readonly text: string };

export interface Pause {
  /** Time limit. */
  readonly ms: number;
  /** Waits this long after a change, since more changes may follow. */
  readonly calmMs?: number;
  /** Does not keep the process alive. */
  readonly background?: boolean;
}

export class ScreenWatcher {
  readonly #options: ScreenWatcherOptions;
  readonly #reader: ScreenReader;
  #pane: TerminalPane | null = null;
  #changes = 0;
  readonly #waiting = new Set<() => void>();
  #watchers = 0;
  #watcher: FSWatcher | null = null;

  constructor(options: ScreenWatcherOptions) {
    this.#options = options;
    this.#reader = new ScreenReader(options.ways);
  }

  /** Null if the terminal is gone. */
  async pane(): Promise<TerminalPane | null> {
    this.#pane ??= await this.#options.pane();
    return this.#pane;
  }

  async observe(): Promise<Screen | null> {
    const capture = (await (await this.pane())?.capture()) ?? null;
    if (capture !== null) return this.#reader.read(capture, this.#options.history());
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

  press(keys: readonly string[], screen: Screen): Promise<InputResult> {
    return this.put({ kind: 'keys', keys }, screen);
  }

  /** Read before an observation, so that no later change is missed. */
  get changes(): number {
    return this.#changes;
  }

  /** Makes all waiters observe again. */
  wake(): void {
    this.#changes += 1;
    for (const end of this.#waiting) end();
  }

  /** Watches for changes of the screen until disposed. */
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

  /** Resolves after a change since then, or when the time is over. */
  async untilChanged(since: number, { ms, calmMs = 0, background = false }: Pause): Promise<void> {
    if (this.#changes === since) await this.#waitFor(ms, background);
    if (this.#changes !== since && calmMs > 0) await pause(calmMs, background);
  }

  #waitFor(ms: number, background: boolean): Promise<void> {
    return new Promise((resolve) => {
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

export function pause(ms: number, background = false): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (background) timer.unref();
  });
}
