// The terminal of an agent, as whoever waits for something in it needs it: looks, and the moment to look again. Nothing is
// watched, and no timer is set, while nobody waits.

import type { FSWatcher } from 'node:fs';
import type { TerminalWays } from '../../../ir/adapter.ts';
import { watchFolder } from '../../session-leader.ts';
import type { Put, TerminalPane } from '../tmux/terminal-pane.ts';
import { ScreenReader } from './screen.ts';
import type { Past, Screen } from './screen.ts';

export interface ConsoleOptions {
  readonly ways: TerminalWays;
  /** Of the agent's start: whatever the terminal prints changes a file in it. */
  readonly folder: string;
  /** Null: it is gone. */
  readonly pane: () => Promise<TerminalPane | null>;
  readonly past: () => Past;
  /** It was not to be found. */
  readonly lost: () => void;
}

export type Input =
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  /** As keys, or as one paste. */
  | { readonly kind: 'text' | 'paste'; readonly text: string };

export interface Pause {
  /** No longer than this. */
  readonly ms: number;
  /** What has changed may change again: so long is waited before it is looked at. */
  readonly calmMs?: number;
  /** The process may end meanwhile. */
  readonly background?: boolean;
}

export class Console {
  readonly #options: ConsoleOptions;
  readonly #reader: ScreenReader;
  #pane: TerminalPane | null = null;
  #changes = 0;
  readonly #waiting = new Set<() => void>();
  #watchers = 0;
  #watcher: FSWatcher | null = null;

  constructor(options: ConsoleOptions) {
    this.#options = options;
    this.#reader = new ScreenReader(options.ways);
  }

  /** Null where it is gone. */
  async pane(): Promise<TerminalPane | null> {
    this.#pane ??= await this.#options.pane();
    return this.#pane;
  }

  async look(): Promise<Screen | null> {
    const look = (await (await this.pane())?.look()) ?? null;
    if (look !== null) return this.#reader.read(look, this.#options.past());
    this.#pane = null;
    this.#options.lost();
    return null;
  }

  /** Puts something in, if the screen is still the one that was looked at. */
  async put(input: Input, { look }: Screen): Promise<Put> {
    const pane = await this.pane();
    if (pane === null) return 'gone';
    switch (input.kind) {
      case 'keys':
        return pane.press(input.keys, look);
      case 'text':
        return pane.type(input.text, look);
      case 'paste':
        return pane.paste(Buffer.from(input.text), look);
    }
  }

  press(keys: readonly string[], screen: Screen): Promise<Put> {
    return this.put({ kind: 'keys', keys }, screen);
  }

  /** To be taken before a look: what changes from then on is not missed. */
  get changes(): number {
    return this.#changes;
  }

  /** Something has changed: whoever waits looks again. */
  wake(): void {
    this.#changes += 1;
    for (const end of this.#waiting) end();
  }

  /** As long as this is held, changes of the screen are noticed. */
  watch(): Disposable {
    this.#watchers += 1;
    if (this.#watchers === 1) this.#watcher = watchFolder(this.#options.folder, () => this.wake());
    return {
      [Symbol.dispose]: () => {
        this.#watchers -= 1;
        if (this.#watchers > 0) return;
        this.#watcher?.close();
        this.#watcher = null;
      },
    };
  }

  /** Until something has changed since, or the time is over. */
  async changed(since: number, { ms, calmMs = 0, background = false }: Pause): Promise<void> {
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
      // Without a watch there is only looking.
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
