// `meow schedule add`: everything that is wrong is refused before the schedule exists.

import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

import { present, UsageError } from '../../base/errors.ts';
import { isHolderAlive, readLockHolder } from '../../stores/lock.ts';
import type { Project } from '../project.ts';
import { listProject } from '../projects.ts';
import { servedEnvironment } from './environment-file.ts';
import { checkScheduleName, parseSchedule, scheduleNamed, writeSchedule } from './schedule-files.ts';
import { nextSlots } from './schedules.ts';
import { refusalOf } from './start-run.ts';

export interface NewSchedule {
  readonly name: string;
  readonly cron: string;
  readonly path: string;
  readonly timezone?: string;
  readonly overlap?: string;
  readonly missed?: string;
  readonly jitter?: string;
  /** Flags of `meow run`. */
  readonly args: readonly string[];
}

export interface AddedSchedule {
  readonly timezone: string;
  readonly next: string;
  /** Whether `meow serve` is running. */
  readonly isServed: boolean;
}

/** Throws a UsageError for everything that is wrong with it, also with its workflow. */
export async function addSchedule(project: Project, added: NewSchedule): Promise<AddedSchedule> {
  const { name } = added;
  checkScheduleName(name);
  const text = textOf({ ...added, path: fromProject(project, added.path) });
  const { schedule, diagnostics } = parseSchedule(project, name, text);
  const [error] = diagnostics.filter(({ severity }) => severity === 'error');
  if (error !== undefined) throw new UsageError(error.message, error.hint);
  const ready = { project, schedule: present(schedule, 'a schedule without errors'), environment: servedEnvironment() };
  const refusal = await refusalOf(ready);
  if (refusal !== null)
    throw new UsageError(
      `the workflow of schedule ${name} cannot be started:\n${refusal}`,
      'fix it, then add the schedule',
    );
  writeSchedule(project, name, text);
  listProject(project.runs);
  const { timezone, slots } = nextSlots(scheduleNamed(project, name), Date.now(), 1);
  const holder = await readLockHolder(join(project.shared, 'serve.lock'));
  return { timezone, next: slots[0] ?? '', isServed: holder !== null && isHolderAlive(holder) };
}

/** A file that is named from another folder of the project. */
function fromProject({ cwd, meow }: Project, reference: string): string {
  const [, path = '', workflow = ''] = /^(.*?)(#[^#]*)?$/s.exec(reference) ?? [];
  const folder = dirname(meow);
  const named = resolve(cwd, path);
  return folder !== cwd && existsSync(named) ? `${relative(folder, named)}${workflow}` : reference;
}

/** TOML strings have the escapes of JSON. */
function textOf({ cron, timezone, path, overlap, missed, jitter, args }: NewSchedule): string {
  const lines = Object.entries({ cron, timezone, path, overlap, missed, jitter }).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key} = ${JSON.stringify(value)}`],
  );
  const flags = args.length === 0 ? [] : [`args = [${args.map((arg) => JSON.stringify(arg)).join(', ')}]`];
  return `${[...lines, ...flags].join('\n')}\n`;
}
