// The schedules of a project: `.meow/schedules/NAME.toml`. What has been decided for each is in `~/.meow/schedules`, which
// belongs to no repository.

import { createHash } from 'node:crypto';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { UsageError } from '../../base/errors.ts';
import { isJsonMap, type Json } from '../../base/json.ts';
import { didYouMean } from '../../base/names.ts';
import { type Diagnostic, hasErrors } from '../../base/source.ts';
import { readSchedule, type Schedule } from '../../languages/schedule.ts';
import { SCHEDULE_NAME } from '../../languages/schedule-keys.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { makeFolder, readJsonFile, readUntrustedFile, replacePrivate, writeJsonFile } from '../../sys/files.ts';
import type { Project } from '../project.ts';
import { shownPath } from '../sources.ts';
import type { SlotProgress } from './due-slots.ts';
import { cronProblem } from './timetable.ts';
import { zoneProblem } from '../../base/time-zone.ts';

export interface ScheduleFile {
  readonly name: string;
  readonly project: Project;
  /** Null if the file has errors. */
  readonly schedule: Schedule | null;
  readonly diagnostics: readonly Diagnostic[];
  /** The file as it is, so that a change is noticed. */
  readonly text: string;
  readonly changedAt: number;
}

const ENDING = '.toml';
const BYTES_MAX = 1_000_000;

export function scheduleFolder({ meow }: Pick<Project, 'meow'>): string {
  return join(meow, 'schedules');
}

/** By name. A file whose name is not that of a schedule is reported as one with an error. */
export function schedulesOf(project: Project): readonly ScheduleFile[] {
  const files = tolerate(UNUSABLE, [], () => readdirSync(scheduleFolder(project)));
  const names = files.filter((file) => file.endsWith(ENDING) && !file.startsWith('.'));
  return names.toSorted().flatMap((file) => readScheduleFile(project, file.slice(0, -ENDING.length)) ?? []);
}

/** Throws a UsageError if there is none. */
export function scheduleNamed(project: Project, name: string): ScheduleFile {
  const found = readScheduleFile(project, name);
  if (found !== null) return found;
  const known = schedulesOf(project).map((file) => file.name);
  throw new UsageError(
    `there is no schedule ${JSON.stringify(name)} in this project`,
    `${didYouMean(name, known)}all schedules: meow schedule list`,
  );
}

export function checkScheduleName(name: string): void {
  if (new RegExp(SCHEDULE_NAME).test(name)) return;
  throw new UsageError(
    `${JSON.stringify(name)} cannot be the name of a schedule`,
    'use at most 20 of the characters a-z, 0-9 and -',
  );
}

function readScheduleFile(project: Project, name: string): ScheduleFile | null {
  const path = pathOf(project, name);
  const file = readUntrustedFile(path, BYTES_MAX);
  if (file === null) return null;
  checkScheduleName(name);
  const text = file.text ?? '';
  return { name, project, text, changedAt: file.mtimeMs, ...parseSchedule(project, name, text) };
}

export function parseSchedule(
  project: Project,
  name: string,
  text: string,
): { readonly schedule: Schedule | null; readonly diagnostics: readonly Diagnostic[] } {
  return readSchedule({ file: shownPath(project, pathOf(project, name)), text, zoneProblem, cronProblem });
}

/** Throws a UsageError if there is one of that name. */
export function writeSchedule(project: Project, name: string, text: string): void {
  if (tolerate(UNUSABLE, null, () => statSync(pathOf(project, name))) !== null)
    throw new UsageError(`there is a schedule ${name} already`, `remove it first: meow schedule remove ${name}`);
  makeFolder(scheduleFolder(project));
  replacePrivate(pathOf(project, name), text);
  const now = Date.now();
  writeProgress(project, name, { ...FIRST, cursor: now, text });
}

/** Its runs stay. */
export function removeSchedule(project: Project, name: string): void {
  scheduleNamed(project, name);
  rmSync(pathOf(project, name));
  rmSync(progressPath(project, name), { force: true });
}

/** Slots of the time in which it was paused are not missed. */
export function setPaused(project: Project, name: string, paused: boolean): void {
  const { text, diagnostics } = scheduleNamed(project, name);
  const line = /^paused[ \t]*=.*$/m;
  const written = `paused = ${paused}`;
  // A key after a table header would belong to that table.
  const changed = line.test(text.split(/^\[/m)[0] ?? '') ? text.replace(line, written) : `${written}\n${text}`;
  if (hasErrors(parseSchedule(project, name, changed).diagnostics) && !hasErrors(diagnostics))
    throw new UsageError(`cannot change ${pathOf(project, name)}`, `write ${written} into it`);
  replacePrivate(pathOf(project, name), changed);
  writeProgress(project, name, { ...readProgress(project, name), cursor: Date.now(), queue: [], text: changed });
}

function pathOf(project: Pick<Project, 'meow'>, name: string): string {
  return join(scheduleFolder(project), `${name}${ENDING}`);
}

/** What has been decided for a schedule. */
export interface ScheduleProgress extends SlotProgress {
  /** The file for which that was decided; null: not known. */
  readonly text: string | null;
  /** Why the last slot could not be started; null if it was. */
  readonly problem: string | null;
}

const FIRST: ScheduleProgress = { cursor: 0, queue: [], text: null, problem: null };

/** With the cursor of a file that has changed since then, or was never decided about: its last change. */
export function progressOf({ project, name, text, changedAt }: ScheduleFile): ScheduleProgress {
  const known = readProgress(project, name);
  return known.text === text
    ? known
    : { ...known, cursor: Math.max(known.cursor, Math.floor(changedAt)), queue: [], text };
}

function readProgress(project: Project, name: string): ScheduleProgress {
  const value = readJsonFile(progressPath(project, name)) as Json;
  if (!isJsonMap(value)) return FIRST;
  const { cursor, queue, text, problem } = value;
  return {
    cursor: typeof cursor === 'number' ? cursor : 0,
    queue: Array.isArray(queue) ? queue.filter((slot) => typeof slot === 'number') : [],
    text: typeof text === 'string' ? text : null,
    problem: typeof problem === 'string' ? problem : null,
  };
}

export function writeProgress(project: Project, name: string, progress: ScheduleProgress): void {
  makeFolder(join(project.shared, 'schedules'));
  writeJsonFile(progressPath(project, name), progress);
}

function progressPath({ shared, meow }: Project, name: string): string {
  const hash = createHash('sha256').update(meow).digest('hex').slice(0, 16);
  return join(shared, 'schedules', `${hash}-${name}.json`);
}
