// What is computed from whole runs of several projects, for pages that show many: each run is read again only when its journal
// has changed.

import type { NamedProject } from './projects.ts';
import { type ReadRun, readRun, storeOf, unlessRefused } from './runs.ts';

export interface RecentRun<T> {
  readonly project: string;
  readonly run: string;
  /** Null if the run cannot be read. */
  readonly found: T | null;
}

const RUNS_MAX = 2_000;
const AT_ONCE = 8;

export class RecentRuns<T> {
  readonly #find: (run: ReadRun) => T;
  readonly #sinceMs: number;
  readonly #known = new Map<string, { readonly changedAt: number | null; readonly found: T | null }>();

  /** `sinceMs`: runs that have not changed for so long are left out. */
  constructor(find: (run: ReadRun) => T, sinceMs: number) {
    this.#find = find;
    this.#sinceMs = sinceMs;
  }

  async of(projects: readonly NamedProject[]): Promise<readonly RecentRun<T>[]> {
    const since = Date.now() - this.#sinceMs;
    const all: RecentRun<T>[] = [];
    for (const project of projects) {
      const store = storeOf(project);
      const listed = await unlessRefused(store.list({ limit: RUNS_MAX }), []);
      const recent = listed.filter(({ changedAt }) => changedAt === null || changedAt >= since);
      for (let at = 0; at < recent.length; at += AT_ONCE) {
        const some = recent.slice(at, at + AT_ONCE).map(async ({ id, changedAt }) => ({
          project: project.name,
          run: id,
          found: await this.#read(project, id, changedAt),
        }));
        all.push(...(await Promise.all(some)));
      }
    }
    return all;
  }

  async #read(project: NamedProject, id: string, changedAt: number | null): Promise<T | null> {
    const key = `${project.meow}\n${id}`;
    const known = this.#known.get(key);
    if (known !== undefined && changedAt !== null && known.changedAt === changedAt) return known.found;
    const run = await unlessRefused(readRun(storeOf(project), id), null);
    const found = run === null ? null : this.#find(run);
    this.#known.set(key, { changedAt, found });
    return found;
  }
}
