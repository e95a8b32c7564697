// Starts the slots of every schedule. Whatever is killed, and however many do this: one run for each slot.
//
//   schedule/1  The id of a run names its slot, and a run is created exclusively. What has been decided is written down after
//               that, so a slot may be tried twice, but never runs twice.
//   schedule/2  A schedule that cannot be started is reported once, and does not stop the others.

import { existsSync } from 'node:fs';

import type { JournalRecord } from '../../kernel/decision.ts';
import type { Project } from '../project.ts';
import { storeOf } from '../runs.ts';
import { isRunOf, planSlots, runOfSlot, slotOfRun } from './due-slots.ts';
import { progressOf, type ScheduleFile, type ScheduleProgress, schedulesOf, writeProgress } from './schedule-files.ts';
import { type StartAnswer, startRun } from './start-run.ts';
import { machineZone, timetable } from './timetable.ts';

export interface SchedulerOptions {
  readonly environment: Readonly<Record<string, string>>;
  /** A line about what was started or refused. */
  note(line: string): void;
  /** Called once for each problem. */
  problem(file: ScheduleFile, why: string): void;
}

/** One pass over the schedules of a project. Returns when the next one is due; null if only a change can bring it. */
export async function startDueSlots(project: Project, options: SchedulerOptions): Promise<number | null> {
  const wakes = await Promise.all(schedulesOf(project).map((file) => passOver(file, options)));
  const moments = wakes.filter((wake) => wake !== null);
  return moments.length === 0 ? null : Math.min(...moments);
}

async function passOver(file: ScheduleFile, options: SchedulerOptions): Promise<number | null> {
  const { name, project, schedule } = file;
  const progress = progressOf(file);
  const problemOfFile = placedProblem(file);
  if (problemOfFile !== null) noteProblem(file, progress, problemOfFile, options);
  if (schedule === null) return null;
  const { when } = schedule;
  if (when.kind !== 'cron') return null;
  const table = timetable(when.cron, when.timezone ?? machineZone());
  if (!table.ok) return null;
  const now = Date.now();
  if (schedule.paused) {
    // These slots are not missed.
    if (table.value.last(progress.cursor, now) !== null) writeProgress(project, name, { ...progress, cursor: now });
    return table.value.next(now);
  }
  const newest = await newestRun(file);
  const question = { ...schedule, name, timetable: table.value, now, isBusy: newest.isBusy };
  const plan = planSlots({ ...question, progress: { ...progress, cursor: Math.max(progress.cursor, newest.slot) } });
  let { problem } = progress;
  if (plan.start !== null) problem = await start(file, progress, plan.start, options);
  const decided = { ...plan.progress, text: file.text, problem };
  if (JSON.stringify(decided) !== JSON.stringify({ ...progress })) writeProgress(project, name, decided);
  return plan.wakeAt;
}

/** Returns the problem that the schedule has from now on. */
async function start(
  file: ScheduleFile,
  progress: ScheduleProgress,
  slot: number,
  options: SchedulerOptions,
): Promise<string | null> {
  const { name } = file;
  const meta = { schedule: name, slot: new Date(slot).toISOString() };
  return startScheduled(file, { id: runOfSlot(name, slot), meta }, options, progress.problem);
}

/** Starts a run of the schedule. Returns its problem from now on, after reporting it unless it is that of `before`. */
export async function startScheduled(
  file: ScheduleFile,
  { id, meta }: { readonly id: string; readonly meta: Readonly<Record<string, string>> },
  options: SchedulerOptions,
  before: string | null,
): Promise<string | null> {
  const { name, project, schedule } = file;
  if (schedule === null) return before;
  const answer: StartAnswer = await startRun({ project, schedule, id, meta, environment: options.environment });
  switch (answer.kind) {
    case 'started':
      options.note(`schedule ${name}: started run ${id}`);
      return null;
    case 'exists':
      return null;
    case 'refused': {
      const why = firstLine(answer.why);
      if (why !== before) report(file, why, options);
      return why;
    }
  }
}

function noteProblem(file: ScheduleFile, progress: ScheduleProgress, why: string, options: SchedulerOptions): void {
  if (progress.problem === why) return;
  report(file, why, options);
  writeProgress(file.project, file.name, { ...progress, problem: why });
}

function report(file: ScheduleFile, why: string, options: SchedulerOptions): void {
  options.note(`schedule ${file.name}: ${why}`);
  options.problem(file, why);
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').replace(/^meow: /, '');
}

/** The first error of its file; null if there is none. */
export function placedProblem({ diagnostics }: ScheduleFile): string | null {
  const [error] = diagnostics.filter(({ severity }) => severity === 'error');
  return error === undefined ? null : `${error.span.file}:${error.span.line}:${error.span.column}: ${error.message}`;
}

/** As far as the run ids of the schedule tell. `slot`: 0 if it never started one. */
async function newestRun({
  name,
  project,
}: ScheduleFile): Promise<{ readonly slot: number; readonly isBusy: boolean }> {
  const store = storeOf(project);
  const runs = (await store.list({ prefix: `${name}-`, limit: RUNS_MAX })).filter(({ id }) => isRunOf(name, id));
  const slots = runs.map(({ id }) => slotOfRun(name, id) ?? 0);
  let isBusy = false;
  for (const { id, last } of runs) {
    if (isBusy || last === null || isAtRest(last)) continue;
    isBusy = isRecoverable(store.files(id).localPath(''), last) || (await store.holder(id)) !== null;
  }
  return { slot: Math.max(0, ...slots), isBusy };
}

/** Of the most recently active ones. */
const RUNS_MAX = 50;

/** Ended, stopped or paused. */
function isAtRest(last: JournalRecord): boolean {
  return last.decisions.some(({ kind }) => kind === 'run-ended');
}

/**
 * Whether the engine of a run without an end has died, or was never started: then the run is to be resumed. A run that was held
 * because of an error is not: its engine has released its lock.
 */
export function isRecoverable(runFolder: string, last: Pick<JournalRecord, 'seq'>): boolean {
  return last.seq === 1 || existsSync(`${runFolder}.yaml.lock`);
}
