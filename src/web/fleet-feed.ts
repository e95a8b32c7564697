// The fleet for all sockets: followed once, however many pages show it, and sent at most twice a second.

import { followFleet } from '../app/fleet.ts';
import { crash } from '../sys/errors.ts';
import type { FleetView } from '../view/fleet.ts';
import type { ServerMessage } from './protocol.ts';

const INTERVAL_MS = 500;
/** How long it is followed after the last page was closed, so that a reload costs nothing. */
const LINGER_MS = 60_000;

export class FleetFeed {
  readonly #given: readonly string[];
  readonly #watchers = new Set<(message: string) => void>();
  #following: AbortController | null = null;
  #linger: NodeJS.Timeout | null = null;
  #pending: NodeJS.Timeout | null = null;
  #sentAt = 0;
  #message: string | null = null;
  /** The latest; null while nobody watches. */
  view: FleetView | null = null;

  constructor(given: readonly string[]) {
    this.#given = given;
  }

  /** Calls with each message, now if one is known. Returns what ends it. */
  watch(watcher: (message: string) => void): () => void {
    this.#watchers.add(watcher);
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#linger = null;
    if (this.#message !== null) watcher(this.#message);
    if (this.#following === null) this.#follow().catch(crash);
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#linger ??= setTimeout(() => this.close(), LINGER_MS).unref();
    };
  }

  close(): void {
    this.#following?.abort();
    this.#following = null;
    this.#message = null;
    this.view = null;
    for (const timer of [this.#linger, this.#pending]) if (timer !== null) clearTimeout(timer);
    this.#linger = null;
    this.#pending = null;
  }

  async #follow(): Promise<void> {
    const following = new AbortController();
    this.#following = following;
    for await (const { view } of followFleet(this.#given, following.signal)) {
      if (following.signal.aborted) return;
      this.#show(view);
    }
  }

  #show(view: FleetView): void {
    const message = JSON.stringify({ kind: 'fleet', fleet: view } satisfies ServerMessage);
    if (message === this.#message) return;
    this.#message = message;
    this.view = view;
    const waitMs = this.#sentAt + INTERVAL_MS - performance.now();
    if (waitMs <= 0) this.#send();
    else this.#pending ??= setTimeout(() => this.#send(), waitMs);
  }

  #send(): void {
    if (this.#pending !== null) clearTimeout(this.#pending);
    this.#pending = null;
    this.#sentAt = performance.now();
    for (const watcher of this.#watchers) if (this.#message !== null) watcher(this.#message);
  }
}
