// The sender: sends what runs must not wait for, such as notifications, while they go on and after they have ended. It reads
// journals, and changes nothing of a run.
//
//   sender/1  One for each user, by `~/.meow/sender.lock`. `meow serve` contains one; a detached one makes room for it.
//   sender/2  It knows runs by their announcements alone, so the next one continues wherever one was killed.
//   sender/3  A detached one ends when no announced run has an engine and nothing is left to send.

import { dirname, join } from 'node:path';
import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Store } from '../../engine/ports.ts';
import { liveHolder, takeLock } from '../../stores/lock.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { makeFolder } from '../../sys/files.ts';
import { Sleeper } from '../../sys/sleeper.ts';
import { watchFolder } from '../../sys/watch.ts';
import { type Project, projectAt, sharedFolder } from '../project.ts';
import { readRun, type ReadRun, storeOf, unlessRefused } from '../runs.ts';
import {
  type Announcement,
  announcementFolder,
  announcements,
  attemptsFile,
  removeAnnouncement,
} from './announcements.ts';
import { looseNotice } from './loose-notice.ts';

/** A run as it is now. */
export interface SentRun extends ReadRun {
  /** Absolute. */
  readonly folder: string;
  readonly project: Project;
  /** An engine works on it. */
  readonly isLive: boolean;
  /** If its engine has died, it is resumed without anybody. */
  readonly isResumed: boolean;
}

/** What is sent about one run, such as its notifications. */
export interface SendTask {
  /**
   * Starts what is due and returns at once. Null if nothing is left to do until the run changes; otherwise when to call again,
   * which is also done after `wake`.
   */
  pass(run: SentRun, now: number): { readonly wakeAt: number } | null;
}

/** Called once for each run. `wake` asks for a pass. */
export type TaskMaker = (runFolder: string, wake: () => void) => SendTask;

export interface SenderOptions {
  readonly tasks: readonly TaskMaker[];
  /** It ends when nothing is left, and when another one is needed instead of it. */
  readonly isDetached: boolean;
  /** Whether a run whose engine has died is resumed without anybody. */
  isResumed?(runFolder: string): boolean;
}

/** What was announced. */
interface Watched {
  /** Starts what is due. When to look again; null if nothing is left to do. */
  pass(): Promise<number | null>;
  close(): void;
}

/** How often it checks that the engine of a run is alive. */
const LOOK_MS = 2_000;
const LOCK_LOOK_MS = 500;

/** Resolves when `signal` aborts or, if it is detached, when nothing is left to send. */
export async function runSender(options: SenderOptions, signal: AbortSignal): Promise<void> {
  makeFolder(announcementFolder());
  for (;;) {
    if (signal.aborted) return;
    const answer = await takeLock(join(sharedFolder(), 'sender.lock'));
    if (answer.kind === 'taken') {
      try {
        await new Sender(options).work(signal);
      } finally {
        await answer.lock.release();
      }
      // announce/1
      if (options.isDetached && (announcements().length === 0 || (await isServed()))) return;
    } else if (options.isDetached) {
      return;
    } else {
      await sleep(LOCK_LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }
}

async function isServed(): Promise<boolean> {
  return (await liveHolder(join(sharedFolder(), 'serve.lock'))) !== null;
}

class Sender {
  readonly #options: SenderOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #sleeper = new Sleeper();

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  async work(signal: AbortSignal): Promise<void> {
    const awake = (): void => this.#sleeper.wake();
    const watcher = watchFolder(announcementFolder(), awake);
    signal.addEventListener('abort', awake);
    try {
      while (!signal.aborted) {
        const { wakeAt, isIdle } = await this.#pass();
        if (this.#options.isDetached && (isIdle || (await isServed()))) return;
        await this.#sleeper.sleep(wakeAt);
      }
    } finally {
      signal.removeEventListener('abort', awake);
      watcher.close();
      for (const each of this.#watched.values()) each.close();
    }
  }

  async #pass(): Promise<{ readonly wakeAt: number; readonly isIdle: boolean }> {
    const found = announcements();
    const paths = new Set(found.map(({ path }) => path));
    for (const [path, each] of this.#watched) {
      if (paths.has(path)) continue;
      each.close();
      this.#watched.delete(path);
    }
    let wakeAt = Infinity;
    for (const announcement of found) {
      const watched = this.#watched.get(announcement.path) ?? this.#watch(announcement);
      this.#watched.set(announcement.path, watched);
      const again = await watched.pass();
      if (again === null) removeAnnouncement(announcement);
      else wakeAt = Math.min(wakeAt, again);
    }
    return { wakeAt, isIdle: wakeAt === Infinity };
  }

  #watch(announcement: Announcement): Watched {
    const { about } = announcement;
    const awake = (): void => this.#sleeper.wake();
    if ('run' in about) return new WatchedRun(about.run, this.#options, awake);
    return looseNotice(about.notice, attemptsFile(announcement), awake);
  }
}

/** The share of the time that reading a journal which grows may take: one twentieth. */
const REST_PER_WORK = 19;
const REST_MIN_MS = 250;

class WatchedRun implements Watched {
  readonly #folder: string;
  readonly #project: Project;
  readonly #store: Store;
  readonly #id: string;
  readonly #options: SenderOptions;
  readonly #tasks: readonly SendTask[];
  readonly #watcher: { close(): void };
  #read: ReadRun | null = null;
  #seen = '';
  #readAgainAt = 0;

  constructor(folder: string, options: SenderOptions, wake: () => void) {
    this.#folder = folder;
    this.#options = options;
    const runs = dirname(folder);
    this.#project = projectAt(dirname(runs));
    this.#store = storeOf(this.#project);
    this.#id = folder.slice(runs.length + 1);
    this.#tasks = options.tasks.map((make) => make(folder, wake));
    this.#watcher = watchFolder(folder, wake);
  }

  async pass(): Promise<number | null> {
    // In this order: what an engine writes before it ends is read.
    const isLive = (await unlessRefused(this.#store.holder(this.#id), null)) !== null;
    const now = Date.now();
    const isStale = this.#stamp() !== this.#seen;
    if (isStale && (now >= this.#readAgainAt || !isLive)) await this.#readJournal();
    if (this.#read === null) return null;
    const run: SentRun = {
      ...this.#read,
      folder: this.#folder,
      project: this.#project,
      isLive,
      isResumed: this.#options.isResumed?.(this.#folder) ?? false,
    };
    const wakes = this.#tasks.flatMap((task) => task.pass(run, now)?.wakeAt ?? []);
    if (isLive) wakes.push(now + LOOK_MS);
    if (this.#stamp() !== this.#seen) wakes.push(Math.max(this.#readAgainAt, now));
    return wakes.length === 0 ? null : Math.min(...wakes);
  }

  close(): void {
    this.#watcher.close();
  }

  async #readJournal(): Promise<void> {
    const started = performance.now();
    this.#seen = this.#stamp();
    // A run that was removed, or cannot be read, has nothing to say.
    this.#read = await unlessRefused(readRun(this.#store, this.#id), null);
    const ms = performance.now() - started;
    this.#readAgainAt = Date.now() + Math.max(REST_MIN_MS, ms * REST_PER_WORK);
  }

  #stamp(): string {
    const stats = tolerate(UNUSABLE, null, () => statSync(join(this.#folder, 'journal.jsonl')));
    return stats === null ? '' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
  }
}
