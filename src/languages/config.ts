// `.meow/config.toml`: settings of a project or, in the home folder, of a person. Every key is checked. A file
// overrides a base, so that a project's file overrides a person's.

import { type Diagnostic, hasErrors, makeSource } from '../base/source.ts';
import { type Channel, OPEN_CHANNELS, PERMISSIONS, type Permissions } from '../ir/adapter.ts';
import { DEFAULT_LIMITS, type Limits } from '../ir/program.ts';
import type { ConductorConfig } from './conductor/config.ts';
import { DEFAULT_CONDUCTOR, readConductorConfig } from './conductor/config.ts';
import { AGENTS, CONFIG, GATES, LIMITS, RETENTION, RETENTION_STATUSES, SECRETS, SERVE, TMUX } from './config-keys.ts';
import { namesOf } from './keys.ts';
import { type ConfigScope, DEFAULT_MONEY, type MoneyConfig, readMoneyConfig } from './money-config.ts';
import { DEFAULT_NOTIFY, type NotifyConfig, readNotifyConfig } from './notify-config.ts';
import { checkKeys, createReport, type Report } from './report.ts';
import { booleanAt, countAt, durationAt, filledStringAt, tableAt, wordAt } from './toml-fields.ts';
import { DEFAULT_TELEMETRY, readTelemetryConfig, type TelemetryConfig } from './telemetry-config.ts';
import { describeToml, type TomlTable } from './toml-tree.ts';
import { readToml } from './toml.ts';

export interface Config {
  readonly limits: Limits;
  /** The shell for scripts of steps, run as `SHELL -c SCRIPT`. */
  readonly shell: string;
  /** Default adapter; null: MEOW's default. */
  readonly defaultAdapter: string | null;
  /** Default channel of agents; null: the adapter's preferred one. */
  readonly channel: Channel | null;
  /** What agents may do without asking; null: nobody has chosen. */
  readonly permissions: Permissions | null;
  /** tmux server for terminals: our own, or the user's. */
  readonly tmux: 'private' | 'shared';
  readonly conductor: ConductorConfig;
  readonly gates: GatesConfig;
  readonly money: MoneyConfig;
  readonly notify: NotifyConfig;
  readonly serve: ServeConfig;
  /** What `meow serve` removes; null: nothing. */
  readonly retention: RetentionConfig | null;
  /** Names of environment variables whose values are secrets. `*` stands for any characters. */
  readonly secretNames: readonly string[];
  readonly telemetry: TelemetryConfig;
}

export interface ServeConfig {
  /** Whether `meow serve` resumes runs whose engine has died. */
  readonly resume: boolean;
}

/** Runs that are removed. */
export interface RetentionConfig {
  readonly olderThanMs: number | null;
  /** So many of the newest stay. */
  readonly keep: number | null;
  /** Empty: all that are over. */
  readonly status: readonly string[];
}

export interface GatesConfig {
  /** Command that notifies people of an open gate; null: none. */
  readonly remind: string | null;
  /** Repeats the notification at this interval while the gate is open; null: once. */
  readonly remindEveryMs: number | null;
  /** File with the SSH keys of people who may sign decisions, relative to the project; null: `.meow/allowed_signers`. */
  readonly allowedSigners: string | null;
}

export const DEFAULT_CONFIG: Config = {
  limits: DEFAULT_LIMITS,
  shell: 'sh',
  defaultAdapter: null,
  channel: null,
  permissions: null,
  tmux: 'private',
  conductor: DEFAULT_CONDUCTOR,
  gates: { remind: null, remindEveryMs: null, allowedSigners: null },
  money: DEFAULT_MONEY,
  notify: DEFAULT_NOTIFY,
  serve: { resume: true },
  retention: null,
  secretNames: ['*_TOKEN', '*_KEY', '*_SECRET', '*PASSWORD*', '*CREDENTIALS*'],
  telemetry: DEFAULT_TELEMETRY,
};

export interface ConfigInput {
  /** Path as the user knows it. */
  readonly file: string;
  readonly text: string;
  /** Values for absent keys. */
  readonly base?: Config;
  /** Whose file it is; default: the project's. */
  readonly scope?: ConfigScope;
}

/** The config is null if a diagnostic is an error. */
export function readConfig({ file, text, base = DEFAULT_CONFIG, scope = 'project' }: ConfigInput): {
  readonly config: Config | null;
  readonly diagnostics: readonly Diagnostic[];
} {
  const report = createReport(makeSource(file, text));
  const root = readToml(report);
  const config = root === null ? null : read(report, root, base, scope);
  const diagnostics = report.diagnostics();
  return { config: hasErrors(diagnostics) ? null : config, diagnostics };
}

function read(report: Report, root: TomlTable, base: Config, scope: ConfigScope): Config {
  checkKeys(report, root, namesOf(CONFIG.root.keys), 'the configuration', 'warning');
  const agents = readAgents(report, root, 'agents');
  const agent = readAgents(report, root, 'agent');
  return {
    limits: readLimits(report, root, base.limits),
    shell: filledStringAt(report, root, 'shell', 'Write the name or the path of a shell: shell = "sh".') ?? base.shell,
    defaultAdapter: agents.defaultAdapter ?? agent.defaultAdapter ?? base.defaultAdapter,
    channel: agents.channel ?? agent.channel ?? base.channel,
    permissions: agents.permissions ?? agent.permissions ?? base.permissions,
    tmux: wordAt(report, root, 'tmux', TMUX) ?? base.tmux,
    conductor: readConductorConfig(report, root, base.conductor),
    gates: readGates(report, root, base.gates),
    money: readMoneyConfig(report, root, base.money, scope),
    notify: readNotifyConfig(report, root, base.notify),
    serve: readServe(report, root, base.serve),
    retention: readRetention(report, root, base.retention),
    secretNames: readSecretNames(report, root) ?? base.secretNames,
    telemetry: readTelemetryConfig(report, root, base.telemetry),
  };
}

function readGates(report: Report, root: TomlTable, base: GatesConfig): GatesConfig {
  const table = tableAt(report, root, 'gates', 'Write [gates] and below it remind = "COMMAND".');
  if (table === null) return base;
  checkKeys(report, table, namesOf(GATES.keys), '[gates]', 'warning');
  const every = durationAt(report, table, 'remind_every');
  const signers = filledStringAt(report, table, 'allowed_signers', 'Write the path of a file, or leave it out.');
  return {
    allowedSigners: signers ?? base.allowedSigners,
    remind: filledStringAt(report, table, 'remind', 'Write a command, or leave it out.') ?? base.remind,
    remindEveryMs: every === 0 ? null : (every ?? base.remindEveryMs),
  };
}

function readServe(report: Report, root: TomlTable, base: ServeConfig): ServeConfig {
  const table = tableAt(report, root, 'serve', 'Write [serve] and below it resume = false.');
  if (table === null) return base;
  checkKeys(report, table, namesOf(SERVE.keys), '[serve]', 'warning');
  return { resume: booleanAt(report, table, 'resume') ?? base.resume };
}

function readRetention(report: Report, root: TomlTable, base: Config['retention']): Config['retention'] {
  const table = tableAt(report, root, 'retention', 'Write [retention] and below it older_than = "30d".');
  if (table === null) return base;
  checkKeys(report, table, namesOf(RETENTION.keys), '[retention]', 'warning');
  const value = table.entries.get('status')?.value;
  const hint = `For example status = ["done"]; the statuses are ${RETENTION_STATUSES.join(', ')}.`;
  const words = value === undefined ? [] : value.kind === 'list' ? value.items : [value];
  const status = words.flatMap((item) => {
    if (item.kind === 'string' && RETENTION_STATUSES.some((word) => word === item.value)) return [item.value];
    report.error('wrong-type', item.place, `"status" must name how runs end, got ${describeToml(item)}`, hint);
    return [];
  });
  const olderThanMs = durationAt(report, table, 'older_than');
  const keep = countAt(report, table, 'keep', 0);
  if (olderThanMs === null && keep === null && status.length === 0) return base;
  return { olderThanMs, keep, status };
}

function readSecretNames(report: Report, root: TomlTable): readonly string[] | null {
  const table = tableAt(report, root, 'secrets', 'Write [secrets] and below it env = ["*_TOKEN"].');
  if (table === null) return null;
  checkKeys(report, table, namesOf(SECRETS.keys), '[secrets]', 'warning');
  const value = table.entries.get('env')?.value;
  if (value === undefined) return null;
  const hint = 'Write names of environment variables; * stands for any characters: env = ["*_TOKEN", "MY_PIN"].';
  if (value.kind !== 'list')
    return report.error('wrong-type', value.place, `"env" must be a list of names, got ${describeToml(value)}`, hint);
  return value.items.flatMap((item) => {
    if (item.kind === 'string' && NAME_PATTERN.test(item.value)) return [item.value];
    report.error('wrong-type', item.place, `this is not the name of an environment variable`, hint);
    return [];
  });
}

const NAME_PATTERN = /^(?=.*[A-Za-z0-9_])[A-Za-z0-9_*]+$/;

function readLimits(report: Report, root: TomlTable, base: Limits): Limits {
  const table = tableAt(report, root, 'limits', 'Write [limits] and one line for each.');
  if (table === null) return base;
  checkKeys(report, table, namesOf(LIMITS.keys), '[limits]', 'warning');
  return {
    ...base,
    expansionDepthMax: countAt(report, table, 'max_expansion_depth', 1) ?? base.expansionDepthMax,
    stepsMax: countAt(report, table, 'max_total_steps', 1) ?? base.stepsMax,
    stateFileBytesMax: readSize(report, table, 'max_workflow_file_size') ?? base.stateFileBytesMax,
  };
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KIB: 1024,
  MIB: 1024 ** 2,
  GIB: 1024 ** 3,
};

/** `"10MB"`, or a number of bytes. */
function readSize(report: Report, table: TomlTable, key: string): number | null {
  const value = table.entries.get(key)?.value;
  if (value === undefined) return null;
  const text = value.kind === 'string' || value.kind === 'integer' ? String(value.value) : '';
  const [, amount = '', unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$/.exec(text) ?? [];
  const bytes = Math.floor(Number(amount) * (UNITS[unit.toUpperCase()] ?? Number.NaN));
  if (amount !== '' && Number.isSafeInteger(bytes) && bytes > 0) return bytes;
  const got = text === '' ? describeToml(value) : JSON.stringify(text);
  const hint = 'For example "10MB", "500KB" or a number of bytes.';
  return report.error('invalid-size', value.place, `"${key}" must be a size, got ${got}`, hint);
}

type AgentsConfig = Pick<Config, 'defaultAdapter' | 'channel' | 'permissions'>;

function readAgents(report: Report, root: TomlTable, section: string): AgentsConfig {
  const table = tableAt(report, root, section, `Write [${section}] and below it default_adapter = "sim".`);
  if (table === null) return { defaultAdapter: null, channel: null, permissions: null };
  checkKeys(report, table, namesOf(AGENTS.keys), `[${section}]`, 'warning');
  return {
    defaultAdapter: filledStringAt(report, table, 'default_adapter', 'For example default_adapter = "sim".'),
    channel: wordAt(report, table, 'channel', OPEN_CHANNELS),
    permissions: wordAt(report, table, 'permissions', PERMISSIONS),
  };
}
