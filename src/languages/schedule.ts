// Reads `.meow/schedules/NAME.toml`: a workflow, and when `meow serve` starts it. Every problem is reported with its place.

import { isJsonMap, type JsonMap } from '../base/json.ts';
import { type Diagnostic, hasErrors, makeSource } from '../base/source.ts';
import { namesOf } from './keys.ts';
import { checkKeys, createReport, missing, type Report, START } from './report.ts';
import { MISSED, OVERLAPS, RATE, SCHEDULE, SCHEDULE_NAME, TRIGGER } from './schedule-keys.ts';
import { booleanAt, durationAt, filledStringAt, stringAt, stringsAt, tableAt, wordAt } from './toml-fields.ts';
import { type TomlTable, tomlToJson } from './toml-tree.ts';
import { readToml } from './toml.ts';

export interface Schedule {
  readonly when: ScheduledWhen;
  /** `PATH[#WORKFLOW]` */
  readonly path: string;
  readonly variables: JsonMap;
  /** Flags of `meow run`. */
  readonly args: readonly string[];
  readonly overlap: (typeof OVERLAPS)[number];
  readonly missed: (typeof MISSED)[number];
  readonly jitterMs: number;
  readonly paused: boolean;
}

export type ScheduledWhen =
  /** `timezone` is null for that of the machine. */
  | { readonly kind: 'cron'; readonly cron: string; readonly timezone: string | null }
  | { readonly kind: 'watch'; readonly globs: readonly string[]; readonly settleMs: number }
  | {
      readonly kind: 'hook';
      readonly hook: string;
      readonly secret: string;
      readonly body: string;
      readonly rate: Rate;
    };

export interface Rate {
  readonly count: number;
  readonly perMs: number;
}

export interface ScheduleInput {
  /** Path as the user knows it. */
  readonly file: string;
  readonly text: string;
  /** Why this is not a time zone; null if it is one. */
  readonly zoneProblem: (timezone: string) => string | null;
  /** Why this is not a cron line, or never comes; null if it does. */
  readonly cronProblem: (cron: string, timezone: string | null) => string | null;
}

const SETTLE_MS = 2_000;
const RATE_DEFAULT: Rate = { count: 60, perMs: 60_000 };
const PER_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** The schedule is null if a diagnostic is an error. */
export function readSchedule(input: ScheduleInput): {
  readonly schedule: Schedule | null;
  readonly diagnostics: readonly Diagnostic[];
} {
  const report = createReport(makeSource(input.file, input.text));
  const root = readToml(report);
  const schedule = root === null ? null : read(report, root, input);
  const diagnostics = report.diagnostics();
  return { schedule: hasErrors(diagnostics) ? null : schedule, diagnostics };
}

function read(report: Report, root: TomlTable, input: ScheduleInput): Schedule | null {
  checkKeys(report, root, namesOf(SCHEDULE.root.keys), 'a schedule', 'error');
  if (!root.entries.has('path'))
    missing(report, START, 'a schedule', 'path', 'Write the workflow that it starts: path = "nightly.meow.toml".');
  const path = filledStringAt(report, root, 'path', 'Write the workflow that it starts: path = "nightly.meow.toml".');
  const when = readWhen(report, root, input);
  const variables = tableAt(report, root, 'variables', 'Write [variables] and a line for each.');
  const values = variables === null ? {} : tomlToJson(variables);
  const rest = {
    variables: isJsonMap(values) ? values : {},
    args: stringsAt(report, root, 'args', 'For example args = ["--budget-usd", "5"].'),
    overlap: wordAt(report, root, 'overlap', OVERLAPS) ?? 'skip',
    missed: wordAt(report, root, 'missed', MISSED) ?? 'once',
    jitterMs: durationAt(report, root, 'jitter') ?? 0,
    paused: booleanAt(report, root, 'paused') ?? false,
  };
  return path === null || when === null ? null : { when, path, ...rest };
}

function readWhen(report: Report, root: TomlTable, input: ScheduleInput): ScheduledWhen | null {
  const trigger = tableAt(report, root, 'trigger', 'Write [trigger] and below it watch = ["src/**"].');
  const cron = stringAt(report, root, 'cron', 'For example cron = "0 3 * * *": every night at three.');
  const zone = stringAt(report, root, 'timezone');
  const zoneProblem = zone === null ? null : input.zoneProblem(zone.value);
  if (zone !== null && zoneProblem !== null)
    report.error('unknown-timezone', zone.place, zoneProblem, 'For example timezone = "Europe/Berlin" or "UTC".');
  if (root.entries.has('cron') && root.entries.has('trigger')) {
    const place = root.entries.get('trigger')?.keyPlace ?? START;
    return report.error('conflicting-keys', place, 'a schedule has cron or [trigger]', 'Leave out one of the two.');
  }
  if (trigger !== null) return readTrigger(report, root, trigger);
  if (!root.entries.has('cron') && !root.entries.has('trigger'))
    return missing(report, START, 'a schedule', 'cron', 'Say when it starts: cron = "0 3 * * *", or [trigger].');
  if (cron === null || zoneProblem !== null) return null;
  const timezone = zone?.value ?? null;
  const problem = input.cronProblem(cron.value, timezone);
  if (problem === null) return { kind: 'cron', cron: cron.value, timezone };
  return report.error('invalid-cron', cron.place, problem, CRON_HINT);
}

const CRON_HINT = 'Five fields: minute, hour, day, month, weekday, as in "30 3 * * 1-5"; six have seconds first.';

function readTrigger(report: Report, root: TomlTable, trigger: TomlTable): ScheduledWhen | null {
  checkKeys(report, trigger, namesOf(TRIGGER.keys), '[trigger]', 'error');
  const isHook = trigger.entries.has('hook');
  if (isHook === trigger.entries.has('watch')) {
    const message = `[trigger] must have ${isHook ? 'only one of ' : ''}watch or hook`;
    return report.error('conflicting-keys', trigger.place, message, 'Write watch = ["src/**"], or hook = "NAME".');
  }
  if (!isHook) {
    const globs = stringsAt(report, trigger, 'watch', 'For example watch = ["src/**"].');
    const list = trigger.entries.get('watch');
    if (list?.value.kind === 'list' && globs.length === 0)
      return report.error('invalid-value', list.value.place, '"watch" is empty', 'For example watch = ["src/**"].');
    return { kind: 'watch', globs, settleMs: durationAt(report, trigger, 'settle') ?? SETTLE_MS };
  }
  const overlap = root.entries.get('overlap');
  if (overlap !== undefined) {
    const hint = 'Leave it out: meow serve promises a run for each call.';
    report.error(
      'conflicting-keys',
      overlap.keyPlace,
      'every call of a hook starts a run: "overlap" cannot be set',
      hint,
    );
  }
  const hook = matchingAt(report, trigger, 'hook', SCHEDULE_NAME, 'At most 20 of a-z, 0-9 and -, as in "deploy".');
  const secret = filledStringAt(report, trigger, 'secret', SECRET_HINT);
  if (!trigger.entries.has('secret')) missing(report, trigger.place, 'a hook', 'secret', SECRET_HINT);
  const body = filledStringAt(report, trigger, 'body', 'Name a variable of the workflow.') ?? 'body';
  const rate = matchingAt(report, trigger, 'rate', RATE, 'For example rate = "60/m": 60 calls in a minute.');
  if (hook === null || secret === null) return null;
  return { kind: 'hook', hook, secret, body, rate: rate === null ? RATE_DEFAULT : rateOf(rate) };
}

const SECRET_HINT = 'Name an environment variable with the secret: secret = "$HOOK_SECRET".';

function rateOf(text: string): Rate {
  const [count = '', unit = ''] = text.split('/');
  return { count: Number(count), perMs: PER_MS[unit] ?? RATE_DEFAULT.perMs };
}

function matchingAt(report: Report, table: TomlTable, key: string, pattern: string, hint: string): string | null {
  const string = stringAt(report, table, key);
  if (string === null || new RegExp(pattern).test(string.value)) return string?.value ?? null;
  return report.error('invalid-value', string.place, `"${key}" cannot be ${JSON.stringify(string.value)}`, hint);
}
