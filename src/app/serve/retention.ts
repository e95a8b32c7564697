// Removes runs of projects as `[retention]` of their configuration says, once an hour.

import { dirname } from 'node:path';

import type { Project } from '../project.ts';
import { type RemovedStatus, removeRuns } from '../remove-runs.ts';
import { unlessRefused } from '../runs.ts';
import { readSettings } from '../sources.ts';

const EVERY_MS = 3_600_000;

export class Retention {
  readonly #note: (line: string) => void;
  #latest = -Infinity;

  constructor(note: (line: string) => void) {
    this.#note = note;
  }

  /** Returns when it is due again. */
  async pass(projects: readonly Project[], now: number): Promise<number> {
    if (now - this.#latest < EVERY_MS && now >= this.#latest) return this.#latest + EVERY_MS;
    this.#latest = now;
    for (const project of projects) await this.#apply(project, now);
    return now + EVERY_MS;
  }

  async #apply(project: Project, now: number): Promise<void> {
    const { retention } = readSettings({ ...project, cwd: dirname(project.meow) }).config;
    if (retention === null) return;
    const { olderThanMs, keep } = retention;
    const status = retention.status as readonly RemovedStatus[];
    const selection = { runs: [], olderThanMs, keep, status, logsOnly: false, force: false, dryRun: false };
    const verdicts = await unlessRefused(removeRuns(project, selection, now), []);
    const removed = verdicts.filter((verdict) => verdict.removed);
    if (removed.length > 0) this.#note(`removed ${removed.length} runs of ${dirname(project.meow)} ([retention])`);
  }
}
