// Events reported by an agent's own hooks. Each hook call leaves a file in `hooks/` in the folder of the agent's start
// (bin/hook.sh): TIME-PID-HOOK.json with the payload, complete as soon as it has its name.
//
// hook/1  Events that arrive together are ordered by name; a later engine orders all events by name.
// hook/2  Files stay, so that a later engine knows the accepted prompts and the session. Files of finished tools are
//         deleted, since their number has no bound.
// hook/3  A file that cannot be read or is not JSON is ignored.

import { readdirSync, readFileSync, rmSync } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { isJsonMap } from '../../../base/json.ts';
import type { Json, JsonMap } from '../../../base/json.ts';
import type { HookNames } from '../../../ir/adapter.ts';
import { watchPath } from '../../../sys/watch.ts';
import { makeFolder } from '../../../sys/private-file.ts';

export interface AcceptedPrompt {
  /** Number of the event, from 1. */
  readonly event: number;
  /** Null if the hook does not report it. */
  readonly prompt: string | null;
}

export class HookLog {
  readonly #folder: string;
  readonly #names: HookNames;
  readonly #told: () => void;
  readonly #read = new Set<string>();
  #watcher: FSWatcher | null = null;
  #events = 0;
  #accepted: AcceptedPrompt[] = [];
  #session: string | null = null;
  #rested = 0;
  #lastActivity = 0;
  #failure: { readonly event: number; readonly message: string } | null = null;
  #blocked: { readonly event: number; readonly at: number } | null = null;
  /** Files of running tools. */
  #tools: string[] = [];

  /** `told` is called for each new event. */
  constructor(folder: string, names: HookNames, told: () => void) {
    this.#folder = folder;
    this.#names = names;
    this.#told = told;
  }

  /** Does not keep the process alive. */
  open(): void {
    if (this.#watcher !== null) return;
    makeFolder(this.#folder);
    this.#watcher = watchPath(this.#folder, () => this.refresh(), { background: true });
    this.refresh();
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }

  /** For callers that poll: without a watch, nothing else reads new events. */
  catchUp(): void {
    if (this.#watcher === null) this.refresh();
  }

  /** Reads new events. */
  refresh(): void {
    const before = this.#events;
    for (const file of this.#unread()) this.#take(file);
    if (this.#events > before) this.#told();
  }

  /** Number of events so far. */
  get events(): number {
    return this.#events;
  }

  /** Number of the latest event about the agent's own activity, excluding dialogs and its exit. */
  get lastActivity(): number {
    return this.#lastActivity;
  }

  get session(): string | null {
    return this.#session;
  }

  get accepted(): readonly AcceptedPrompt[] {
    return this.#accepted;
  }

  /** Whether the hooks report idleness. */
  get reportsIdle(): boolean {
    return this.#names.stopped !== null;
  }

  /** The agent became idle after the last prompt that it accepted. */
  get isIdle(): boolean {
    return this.#rested > (this.#accepted.at(-1)?.event ?? 0);
  }

  /** The error that the agent stopped with, unless it continued. */
  get failure(): { readonly event: number; readonly message: string } | null {
    return this.#failure;
  }

  /** When the agent began to wait for a person, by `performance.now`; null if it does not. */
  get blockedSince(): number | null {
    return this.#blocked?.event === this.#events ? this.#blocked.at : null;
  }

  get toolInFlight(): boolean {
    return this.#tools.length > 0;
  }

  #unread(): readonly string[] {
    try {
      return readdirSync(this.#folder)
        .filter((file) => !this.#read.has(file) && NAME.test(file))
        .toSorted();
    } catch (error) {
      if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return [];
      throw error;
    }
  }

  #payloadOf(file: string): JsonMap | null {
    try {
      const payload = JSON.parse(readFileSync(join(this.#folder, file), 'utf8')) as Json;
      return isJsonMap(payload) ? payload : null;
    } catch (error) {
      if (error instanceof SyntaxError || isErrno(error, ...ABSENT, ...REFUSED)) return null;
      if (!isErrno(error, ...EXHAUSTED)) throw error;
      // Tries again at the next read.
      this.#read.delete(file);
      return null;
    }
  }

  #take(file: string): void {
    this.#read.add(file);
    const payload = this.#payloadOf(file);
    if (payload === null) return;
    const names = this.#names;
    const hook = NAME.exec(file)?.[1] ?? '';
    this.#events += 1;
    const session = textAt(payload, names.sessionKey);
    if (session !== null) this.#session = session;
    switch (hook) {
      case names.accepted:
        this.#accepted.push({ event: this.#events, prompt: textAt(payload, names.promptKey) });
        this.#goOn();
        return;
      case names.toolBegun:
        this.#failure = null;
        this.#lastActivity = this.#events;
        this.#tools.push(file);
        return;
      case names.toolEnded:
        this.#forget(file, ...this.#tools.splice(0, 1));
        return;
      case names.stopped:
        this.#rest();
        return;
      case names.failed:
        this.#rest();
        this.#failure = { event: this.#events, message: textAt(payload, names.messageKey) ?? '' };
        return;
      default:
        if (names.blocked.includes(hook)) this.#blocked = { event: this.#events, at: performance.now() };
    }
  }

  #rest(): void {
    this.#rested = this.#events;
    this.#goOn();
  }

  /** An interrupted tool never reports its end. */
  #goOn(): void {
    this.#failure = null;
    this.#lastActivity = this.#events;
    this.#forget(...this.#tools.splice(0));
  }

  #forget(...files: readonly string[]): void {
    for (const file of files) {
      this.#read.delete(file);
      rmSync(join(this.#folder, file), { force: true });
    }
  }
}

function textAt(payload: JsonMap, key: string | null): string | null {
  const value = key === null ? undefined : payload[key];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Other files are incomplete or not ours. */
const NAME = /^\d+(?:\.\d+)?-\d+-(.+)\.json$/;
