// The file triggers of all schedules, as the schedules change.

import type { Fleet } from '../fleet.ts';
import { hasRun, storeOf, unlessRefused } from '../runs.ts';
import { runOfSlot } from './due-slots.ts';
import { progressOf, type ScheduleFile, writeProgress } from './schedule-files.ts';
import { type SchedulerOptions, startScheduled } from './scheduler.ts';
import { WatchTrigger } from './watch-trigger.ts';

export class WatchTriggers {
  readonly #options: SchedulerOptions;
  /** By project, name and text of the schedule. */
  readonly #triggers = new Map<string, WatchTrigger>();
  /** Runs whose end is awaited. */
  readonly #awaited = new Set<AwaitedRun>();

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** Begins to watch for new schedules, and ends it for changed ones. */
  pass(files: readonly ScheduleFile[], fleet: Fleet | null): void {
    const wanted = new Set<string>();
    for (const file of files) {
      const when = file.schedule?.when;
      if (when?.kind !== 'watch' || file.schedule?.paused !== false) continue;
      const key = `${file.project.meow}\n${file.name}\n${file.text}`;
      wanted.add(key);
      if (this.#triggers.has(key)) continue;
      const { project } = file;
      this.#triggers.set(key, new WatchTrigger({ project, when, start: () => this.#start(file) }));
    }
    for (const [key, trigger] of this.#triggers) {
      if (wanted.has(key)) continue;
      trigger.close();
      this.#triggers.delete(key);
    }
    if (fleet !== null) for (const run of this.#awaited) this.#check(run);
  }

  close(): void {
    for (const trigger of this.#triggers.values()) trigger.close();
    for (const { resolve } of this.#awaited) resolve(Date.now());
  }

  /** Resolves when the run is over, or could not be started, with that moment. */
  async #start(file: ScheduleFile): Promise<number> {
    let at = Date.now();
    const store = storeOf(file.project);
    // A run of this schedule may have begun in the same second.
    while (await hasRun(store, runOfSlot(file.name, at))) at += 1_000;
    const id = runOfSlot(file.name, at);
    const meta = { schedule: file.name, slot: new Date(at).toISOString() };
    const progress = progressOf(file);
    const problem = await startScheduled(file, { id, meta }, this.#options, progress.problem);
    if (problem !== progress.problem) writeProgress(file.project, file.name, { ...progress, problem });
    if (problem !== null) return Date.now();
    return new Promise<number>((resolve) => {
      const run = { file, id, resolve, isChecked: false };
      this.#awaited.add(run);
      this.#check(run);
    });
  }

  /** Called whenever the fleet has changed. */
  #check(run: AwaitedRun): void {
    if (run.isChecked) return;
    run.isChecked = true;
    void this.#endOf(run).then((endedAt) => {
      run.isChecked = false;
      if (endedAt === null) return;
      this.#awaited.delete(run);
      run.resolve(endedAt);
    });
  }

  /** Null while the run is active. */
  async #endOf({ file, id }: AwaitedRun): Promise<number | null> {
    const [entry] = await unlessRefused(storeOf(file.project).list({ prefix: id }), []);
    const last = entry?.last ?? null;
    if (last === null) return Date.now();
    return last.decisions.some(({ kind }) => kind === 'run-ended') ? last.at : null;
  }
}

interface AwaitedRun {
  readonly file: ScheduleFile;
  readonly id: string;
  readonly resolve: (endedAt: number) => void;
  isChecked: boolean;
}
