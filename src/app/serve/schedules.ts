// Schedules as `meow schedule` shows them, and what it does with one.

import { UsageError } from '../../base/errors.ts';
import { formatMoment } from '../../base/time.ts';
import { runStatus } from '../../view/status.ts';
import type { Project } from '../project.ts';
import { readRun, storeOf, unlessRefused } from '../runs.ts';
import { isRunOf, runOfSlot } from './due-slots.ts';
import { servedEnvironment } from './environment-file.ts';
import { progressOf, type ScheduleFile, schedulesOf } from './schedule-files.ts';
import { placedProblem } from './scheduler.ts';
import { secretOf } from './hooks.ts';
import { refusalOf, startRun } from './start-run.ts';
import { machineZone, timetable } from './timetable.ts';

/** The keys of `meow schedule list --json`. */
export interface ShownSchedule {
  readonly name: string;
  /** Null if it has a trigger. */
  readonly cron: string | null;
  readonly timezone: string | null;
  readonly path: string | null;
  readonly paused: boolean;
  readonly next: string | null;
  readonly last: { readonly run: string; readonly slot: string | null; readonly status: string } | null;
  readonly problem: string | null;
}

export function listedSchedules(project: Project): Promise<readonly ShownSchedule[]> {
  return Promise.all(schedulesOf(project).map(shownSchedule));
}

async function shownSchedule(file: ScheduleFile): Promise<ShownSchedule> {
  const { name, schedule } = file;
  const cron = schedule?.when.kind === 'cron' ? schedule.when : null;
  const timezone = cron === null ? null : (cron.timezone ?? machineZone());
  const coming = cron === null || schedule?.paused === true ? null : slotsAfter(file, Date.now(), 1)[0];
  return {
    name,
    cron: cron?.cron ?? null,
    timezone,
    path: schedule?.path ?? null,
    paused: schedule?.paused ?? false,
    next: coming ?? null,
    last: await lastRun(file),
    problem: await problemOf(file),
  };
}

async function problemOf(file: ScheduleFile): Promise<string | null> {
  const { project, schedule } = file;
  const written = placedProblem(file);
  if (written !== null || schedule === null) return written;
  const environment = servedEnvironment();
  if (schedule.when.kind === 'hook' && secretOf(schedule.when.secret, environment) === null)
    return `the secret of the hook is not set: ${schedule.when.secret} (in the environment of meow serve, or in ~/.meow/env)`;
  const body = schedule.when.kind === 'hook' ? { body: { name: schedule.when.body, text: '' } } : {};
  const refusal = await refusalOf({ project, schedule, environment, ...body });
  return refusal?.split('\n')[0]?.replace(/^meow: /, '') ?? progressOf(file).problem;
}

async function lastRun({ name, project }: ScheduleFile): Promise<ShownSchedule['last']> {
  const store = storeOf(project);
  const runs = (await store.list({ prefix: `${name}-` })).filter(({ id }) => isRunOf(name, id));
  const newest = runs.toSorted((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0))[0];
  if (newest === undefined) return null;
  const run = await unlessRefused(readRun(store, newest.id), null);
  if (run === null) return { run: newest.id, slot: null, status: 'unreadable' };
  return { run: run.id, slot: run.state.request?.meta['slot'] ?? null, status: runStatus(run.state) };
}

export interface ScheduledRun {
  readonly run: string;
  readonly status: string;
}

/** The latest runs of each schedule, newest first. Reads only their last records. */
export async function recentRuns(project: Project, name: string, count: number): Promise<readonly ScheduledRun[]> {
  const runs = await unlessRefused(storeOf(project).list({ prefix: `${name}-` }), []);
  return runs
    .filter(({ id }) => isRunOf(name, id))
    .toSorted((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0))
    .slice(0, count)
    .map(({ id, last }) => {
      const end = last?.decisions.find((decision) => decision.kind === 'run-ended');
      return { run: id, status: last === null ? 'unreadable' : (end?.end ?? 'running') };
    });
}

export function nextSlots(
  file: ScheduleFile,
  from: number,
  count: number,
): { readonly timezone: string; readonly slots: readonly string[] } {
  const { name, schedule } = file;
  const problem = placedProblem(file);
  if (schedule === null) throw new UsageError(`schedule ${name}: ${problem ?? 'it has errors'}`, 'meow schedule list');
  if (schedule.when.kind !== 'cron')
    throw new UsageError(`schedule ${name} has a trigger instead of a cron line`, 'meow schedule list shows it');
  return { timezone: schedule.when.timezone ?? machineZone(), slots: slotsAfter(file, from, count) };
}

function slotsAfter({ schedule }: ScheduleFile, from: number, count: number): readonly string[] {
  if (schedule?.when.kind !== 'cron') return [];
  const table = timetable(schedule.when.cron, schedule.when.timezone ?? machineZone());
  if (!table.ok) return [];
  const slots: string[] = [];
  for (let at = table.value.next(from); at !== null && slots.length < count; at = table.value.next(at))
    slots.push(formatMoment(at));
  return slots;
}

/** Starts a run of the schedule at once. Returns its id. */
export async function startNow(file: ScheduleFile): Promise<string> {
  const { name, project, schedule } = file;
  if (schedule === null)
    throw new UsageError(`schedule ${name}: ${placedProblem(file) ?? 'it has errors'}`, 'meow schedule list');
  const now = Date.now();
  const id = runOfSlot(name, now);
  const meta = { schedule: name, slot: new Date(now).toISOString() };
  const answer = await startRun({ project, schedule, id, meta, environment: servedEnvironment() });
  if (answer.kind === 'refused') throw new UsageError(answer.why.replace(/^meow: /, ''));
  return id;
}
