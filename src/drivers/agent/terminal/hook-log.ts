// Events reported by an agent's own hooks. Each hook call leaves a file in `hooks/` in the folder of the agent's start
// (bin/hook.sh): TIME-PID-HOOK.json with the payload, complete as soon as it has its name.
//
// hook/1  Events that arrive together are ordered by name; a later engine orders all events by name.
// hook/2  Files stay, so that a later engine knows the accepted prompts and the session. Files of finished tools are
//         deleted, since their number has no bound.
// hook/3  A file that cannot be read or is not JSON is ignored.

import { type FSWatcher, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { isJsonMap, type JsonMap, parseJson } from '../../../base/json.ts';
import type { HookNames } from '../../../ir/adapter.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED, tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { makeFolder, readUntrustedFile } from '../../../sys/files.ts';
import { watchPath } from '../../../sys/watch.ts';

/** The key under which hooks name the file of the session. */
const SESSION_FILE = 'transcript_path';

/** Others get a `Readonly<HookLog>`. */
export class HookLog {
  events = 0;
  /** Number of the latest event about the agent's own activity, excluding dialogs and its exit. */
  lastActivity = 0;
  session: string | null = null;
  /** Where its program keeps the session; null if no hook has said so. */
  sessionFile: string | null = null;
  /** `event`: its number, from 1. `prompt`: null if the hook does not report it. */
  accepted: readonly { readonly event: number; readonly prompt: string | null }[] = [];
  /** The error that the agent stopped with, unless it continued. */
  failure: { readonly message: string } | null = null;
  readonly #folder: string;
  readonly #names: HookNames;
  readonly #onEvents: () => void;
  readonly #read = new Set<string>();
  #watcher: FSWatcher | null = null;
  #idleAt = 0;
  #blocked: { readonly event: number; readonly at: number } | null = null;
  /** Files of running tools. */
  #tools: string[] = [];

  constructor(folder: string, names: HookNames, onEvents: () => void) {
    this.#folder = folder;
    this.#names = names;
    this.#onEvents = onEvents;
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

  refresh(): void {
    const before = this.events;
    const files = tolerate(UNUSABLE, [], () => readdirSync(this.#folder));
    const unread = files.filter((file) => !this.#read.has(file) && NAME.test(file));
    for (const file of unread.toSorted()) this.#take(file);
    if (this.events > before) this.#onEvents();
  }

  get reportsIdle(): boolean {
    return this.#names.stopped !== null;
  }

  /** The agent became idle after the last prompt that it accepted. */
  get isIdle(): boolean {
    return this.#idleAt > (this.accepted.at(-1)?.event ?? 0);
  }

  /** When the agent began to wait for a person, by `performance.now`; null if it does not. */
  get blockedSince(): number | null {
    return this.#blocked?.event === this.events ? this.#blocked.at : null;
  }

  get toolInFlight(): boolean {
    return this.#tools.length > 0;
  }

  #payloadOf(file: string): JsonMap | null {
    try {
      const payload = parseJson(readUntrustedFile(join(this.#folder, file), PAYLOAD_BYTES_MAX)?.text ?? '');
      return isJsonMap(payload) ? payload : null;
    } catch (error) {
      // After a shortage, tries again at the next read.
      if (isErrno(error, ...EXHAUSTED)) this.#read.delete(file);
      else if (!isErrno(error, ...ABSENT, ...REFUSED)) throw error;
      return null;
    }
  }

  #take(file: string): void {
    this.#read.add(file);
    const payload = this.#payloadOf(file);
    if (payload === null) return;
    const names = this.#names;
    const hook = NAME.exec(file)?.[1] ?? '';
    this.events += 1;
    const session = textAt(payload, names.sessionKey);
    if (session !== null) this.session = session;
    this.sessionFile = textAt(payload, SESSION_FILE) ?? this.sessionFile;
    switch (hook) {
      case names.accepted:
        this.accepted = [...this.accepted, { event: this.events, prompt: textAt(payload, names.promptKey) }];
        this.#continue();
        return;
      case names.toolBegun:
        this.failure = null;
        this.lastActivity = this.events;
        this.#tools.push(file);
        return;
      case names.toolEnded:
        this.#forget(file, ...this.#tools.splice(0, 1));
        return;
      case names.stopped:
        this.#becomeIdle();
        return;
      case names.failed:
        this.#becomeIdle();
        this.failure = { message: textAt(payload, names.messageKey) ?? '' };
        return;
      default:
        if (names.blocked.includes(hook)) this.#blocked = { event: this.events, at: performance.now() };
    }
  }

  #becomeIdle(): void {
    this.#idleAt = this.events;
    this.#continue();
  }

  /** An interrupted tool never reports its end. */
  #continue(): void {
    this.failure = null;
    this.lastActivity = this.events;
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
/** An agent's message may be long; the rest is small. */
const PAYLOAD_BYTES_MAX = 64 * 1024 * 1024;
const NAME = /^\d+(?:\.\d+)?-\d+-(.+)\.json$/;
