// Starts a run when files change. The operating system says that something has changed; what counts is whether files that match
// the patterns are different afterwards. Changes during a run of the schedule do not count.

import { type Dirent, type FSWatcher, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import picomatch from 'picomatch';

import type { Schedule } from '../../languages/schedule.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { watchPath } from '../../sys/watch.ts';
import type { Project } from '../project.ts';

export interface WatchTriggerOptions {
  readonly project: Pick<Project, 'meow'>;
  readonly when: Extract<Schedule['when'], { kind: 'watch' }>;
  /** Files have changed, and nothing since. Resolves when the run that this starts has ended, with that moment. */
  start(): Promise<number>;
}

/** Never entered. */
const IGNORED: ReadonlySet<string> = new Set(['.git', '.meow', 'node_modules']);
/** Beyond this, folders are not watched one by one: files are compared every few seconds. */
const FOLDERS_MAX = 4_000;
const SLOW_LOOK_MS = 3_000;

export class WatchTrigger {
  readonly #options: WatchTriggerOptions;
  readonly #root: string;
  readonly #matches: (path: string) => boolean;
  readonly #watchers = new Map<string, FSWatcher>();
  #stamps: ReadonlyMap<string, string> = new Map();
  #timer: NodeJS.Timeout | null = null;
  #slow: NodeJS.Timeout | null = null;
  #isRunning = false;
  #closed = false;

  constructor(options: WatchTriggerOptions) {
    this.#options = options;
    this.#root = dirname(options.project.meow);
    this.#matches = picomatch([...options.when.globs], { dot: true });
    this.#stamps = this.#look();
  }

  close(): void {
    this.#closed = true;
    for (const watcher of this.#watchers.values()) watcher.close();
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#slow !== null) clearInterval(this.#slow);
  }

  #onChange(): void {
    if (this.#closed || this.#isRunning) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#settled(), this.#options.when.settleMs);
  }

  async #settled(): Promise<void> {
    const stamps = this.#look();
    const isSame =
      stamps.size === this.#stamps.size && [...stamps].every(([path, stamp]) => this.#stamps.get(path) === stamp);
    this.#stamps = stamps;
    if (isSame || this.#closed) return;
    this.#isRunning = true;
    const endedAt = await this.#options.start();
    this.#isRunning = false;
    if (!this.#closed) this.#catchUp(endedAt);
  }

  /** What has changed since the run ended was not changed by it. */
  #catchUp(endedAt: number): void {
    const now = this.#look();
    const later = [...now].filter(([path, stamp]) => changedAt(stamp) > endedAt && this.#stamps.get(path) !== stamp);
    this.#stamps = new Map([...now, ...later.map(([path]) => [path, this.#stamps.get(path) ?? ''] as const)]);
    if (later.length > 0) this.#onChange();
  }

  /** Stamps of the files that match. Watches folders that are new. */
  #look(): ReadonlyMap<string, string> {
    const stamps = new Map<string, string>();
    const folders = new Set<string>();
    const visit = (folder: string): void => {
      folders.add(folder);
      this.#watch(folder, folders.size);
      for (const entry of entriesOf(folder)) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) {
          if (!IGNORED.has(entry.name)) visit(path);
        } else if (this.#matches(relative(this.#root, path))) stamps.set(path, stampOf(path));
      }
    };
    visit(this.#root);
    for (const [folder, watcher] of this.#watchers) {
      if (folders.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    return stamps;
  }

  #watch(folder: string, count: number): void {
    if (this.#closed || this.#watchers.has(folder) || this.#slow !== null) return;
    const watcher = count > FOLDERS_MAX ? null : watchPath(folder, () => this.#onChange(), { background: true });
    if (watcher !== null) this.#watchers.set(folder, watcher);
    else this.#slow = setInterval(() => void (this.#isRunning || this.#settled()), SLOW_LOOK_MS).unref();
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  return tolerate(UNUSABLE, [], () => readdirSync(folder, { withFileTypes: true }));
}

function changedAt(stamp: string): number {
  return Number(stamp.split(' ')[0]);
}

/** Begins with the time of the last change. */
function stampOf(path: string): string {
  const stats = tolerate(UNUSABLE, null, () => statSync(path));
  return stats === null ? '' : `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}
