// `meow schedule`: adds, lists and changes the schedules of a project.

import { findProject, type Project } from '../../app/project.ts';
import { listedSchedules, nextSlots, type ShownSchedule, startNow } from '../../app/serve/schedules.ts';
import { addSchedule } from '../../app/serve/add-schedule.ts';
import { removeSchedule, scheduleNamed, setPaused } from '../../app/serve/schedule-files.ts';
import { UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { sanitize } from '../../base/sanitize.ts';
import { EXIT, printJson, printLine, printLines, printResult } from '../output.ts';

interface ScheduleFlags {
  readonly timezone?: string;
  readonly overlap?: string;
  readonly missed?: string;
  readonly jitter?: string;
  readonly from?: string;
  readonly count?: number;
  readonly json?: true;
}

const ACTIONS = ['add', 'list', 'next', 'remove', 'run', 'pause', 'resume'] as const;
type Action = (typeof ACTIONS)[number];

type Names = readonly [name: string | undefined, cron: string | undefined, path: string | undefined];

/** `runFlags`: flags of `meow run` that were given. */
export async function schedule(
  wanted: string,
  names: Names,
  flags: ScheduleFlags,
  runFlags: readonly string[],
): Promise<number> {
  const action = ACTIONS.find((each) => each === wanted);
  if (action === undefined) {
    throw new UsageError(
      `meow schedule cannot ${JSON.stringify(wanted)}`,
      `${didYouMean(wanted, ACTIONS)}it can ${ACTIONS.join(', ')}`,
    );
  }
  refuseForeignFlags(action, flags, runFlags);
  const project = findProject();
  const [name, ...rest] = names;
  const [cron, path] = rest;
  if (action === 'list') {
    refuseMore(action, names);
    return list(project, flags.json === true);
  }
  if (name === undefined) throw new UsageError(`meow schedule ${action} needs the name of a schedule`, USAGE[action]);
  if (action === 'add') {
    if (cron === undefined || path === undefined)
      throw new UsageError('meow schedule add needs a name, a cron line and a workflow', USAGE.add);
    const added = await addSchedule(project, { ...flags, name, cron, path, args: runFlags });
    printLine(`added schedule ${name}; next: ${added.next} (${added.timezone})`);
    if (!added.isServed)
      printLine('  nothing is started until meow serve is running: meow serve, or meow serve --install');
    return EXIT.done;
  }
  refuseMore(action, rest);
  return changed(project, action, name, flags);
}

async function changed(
  project: Project,
  action: Exclude<Action, 'add' | 'list'>,
  name: string,
  flags: ScheduleFlags,
): Promise<number> {
  switch (action) {
    case 'next':
      return next(project, name, flags);
    case 'remove':
      removeSchedule(project, name);
      printLine(`removed schedule ${name}; its runs stay`);
      return EXIT.done;
    case 'run': {
      const run = await startNow(scheduleNamed(project, name));
      if (flags.json) printJson({ run });
      else printLine(run);
      return EXIT.done;
    }
    case 'pause':
    case 'resume':
      setPaused(project, name, action === 'pause');
      printLine(
        action === 'pause' ? `paused schedule ${name}: it starts nothing` : `schedule ${name} starts runs again`,
      );
      return EXIT.done;
  }
}

const USAGE = {
  add: 'meow schedule add nightly "0 3 * * *" nightly.meow.toml',
  next: 'meow schedule next NAME [--from ISO] [--count N] [--json]',
  remove: 'meow schedule remove NAME',
  run: 'meow schedule run NAME',
  pause: 'meow schedule pause NAME',
  resume: 'meow schedule resume NAME',
} as const;

function refuseMore(action: Action, names: readonly (string | undefined)[]): void {
  const [more] = names.filter((name) => name !== undefined);
  if (more !== undefined)
    throw new UsageError(`meow schedule ${action} takes no further argument: ${more}`, 'see: meow help schedule');
}

/** Flags that belong to certain actions. */
const FLAGS: Readonly<Record<string, readonly Action[]>> = {
  timezone: ['add'],
  overlap: ['add'],
  missed: ['add'],
  jitter: ['add'],
  from: ['next'],
  count: ['next'],
  json: ['list', 'next', 'run'],
};

function refuseForeignFlags(action: Action, flags: ScheduleFlags, runFlags: readonly string[]): void {
  const foreign = Object.keys(FLAGS).filter((name) => name in flags && FLAGS[name]?.includes(action) !== true);
  const [wrong] = [...foreign.map((name) => `--${name}`), ...(action === 'add' ? [] : runFlags)];
  if (wrong !== undefined)
    throw new UsageError(`meow schedule ${action} does not take ${wrong}`, 'see: meow help schedule');
}

async function list(project: Project, json: boolean): Promise<number> {
  const schedules = await listedSchedules(project);
  if (json) return printResult(schedules);
  if (schedules.length === 0) {
    printLine('this project has no schedules; add one:');
    printLine(`  ${USAGE.add}`);
    return EXIT.done;
  }
  printLines(schedules.flatMap(linesOf));
  return EXIT.done;
}

function linesOf({
  name,
  cron,
  timezone,
  path,
  paused,
  next: coming,
  last,
  problem,
}: ShownSchedule): readonly string[] {
  const when = cron === null ? 'when it is triggered' : `${cron} (${timezone ?? ''})`;
  const then = paused ? 'paused' : coming === null ? 'no next time' : `next ${coming}`;
  const before = last === null ? '' : ` · last ${last.run} ${last.status}`;
  return [
    `${name}  ${sanitize(when)}  ${sanitize(path ?? '')}`,
    `  ${cron === null && !paused ? 'waits for its trigger' : then}${before}`,
    ...(problem === null ? [] : [`  problem: ${sanitize(problem)}`]),
  ];
}

function next(project: Project, name: string, { from, count = 5, json }: ScheduleFlags): number {
  const moment = from === undefined ? Date.now() : Date.parse(from);
  if (Number.isNaN(moment))
    throw new UsageError(`--from ${JSON.stringify(from)} is not a moment`, 'for example --from 2026-03-29T00:00:00Z');
  const { timezone, slots } = nextSlots(scheduleNamed(project, name), moment, count);
  if (json) return printResult({ name, timezone, slots });
  printLines(slots);
  return EXIT.done;
}
