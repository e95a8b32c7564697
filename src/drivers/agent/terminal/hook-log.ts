// What an agent's own hooks have told. Each call of one leaves a file in the folder `hooks` of the agent's start
// (bin/hook.sh): TIME-PID-HOOK.json, with the payload in it, whole from the moment it has its name.
//
// N1  Order is that of the names, among those that come together; and in a later life among all.
// N2  Files stay: a later life learns from them what the agent has accepted, and in which session it is. Those of a tool
//     that has ended are taken away: there is no end to them.
// N3  What cannot be read, or is no JSON, tells nothing and harms nobody.

import { readdirSync, readFileSync, rmSync } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { isJsonMap } from '../../../base/json.ts';
import type { Json, JsonMap } from '../../../base/json.ts';
import type { HookNames } from '../../../ir/adapter.ts';
import { watchFolder } from '../../session-leader.ts';
import { makeFolder } from '../../../sys/private-file.ts';

export interface AcceptedPrompt {
  /** Counts all that the hooks told, from 1. */
  readonly event: number;
  /** Null where the hook does not tell. */
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
  #lastAct = 0;
  #failure: { readonly event: number; readonly message: string } | null = null;
  #blocked: { readonly event: number; readonly at: number } | null = null;
  /** Files of tools that have begun. */
  #tools: string[] = [];

  /** `told`: called whenever there is something new. */
  constructor(folder: string, names: HookNames, told: () => void) {
    this.#folder = folder;
    this.#names = names;
    this.#told = told;
  }

  /** Keeps nobody from ending. */
  open(): void {
    if (this.#watcher !== null) return;
    makeFolder(this.#folder);
    this.#watcher = watchFolder(this.#folder, () => this.refresh());
    this.refresh();
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }

  /** For whoever looks now and then: where no watch is to be had, nobody else tells. */
  catchUp(): void {
    if (this.#watcher === null) this.refresh();
  }

  /** Takes in what has come. */
  refresh(): void {
    const before = this.#events;
    for (const file of this.#unread()) this.#take(file);
    if (this.#events > before) this.#told();
  }

  /** How much the hooks have told so far. */
  get events(): number {
    return this.#events;
  }

  /** The latest of them that tells of something the agent does: not of what it asks, or of what becomes of it. */
  get lastAct(): number {
    return this.#lastAct;
  }

  get session(): string | null {
    return this.#session;
  }

  get accepted(): readonly AcceptedPrompt[] {
    return this.#accepted;
  }

  /** Whether they tell of it. */
  get tellsRest(): boolean {
    return this.#names.stopped !== null;
  }

  /** It has come to rest since it last accepted something. */
  get isAtRest(): boolean {
    return this.#rested > (this.#accepted.at(-1)?.event ?? 0);
  }

  /** What it came to rest with, if that was an error and it has not gone on. */
  get failure(): { readonly event: number; readonly message: string } | null {
    return this.#failure;
  }

  /** Since when it waits for a person, for all that the hooks tell, by `performance.now`; null: it does not. */
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
      // The next time, then.
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
        this.#lastAct = this.#events;
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

  /** A tool that was interrupted never tells of its end. */
  #goOn(): void {
    this.#failure = null;
    this.#lastAct = this.#events;
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

/** Others are on their way, or not ours. */
const NAME = /^\d+(?:\.\d+)?-\d+-(.+)\.json$/;
