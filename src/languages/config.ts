// `.meow/config.toml`: settings of a project or, in the home folder, of a person. Every key is checked. A file
// overrides a base, so that a project's file overrides a person's.

import type { Diagnostic } from '../base/diagnostic.ts';
import { hasErrors } from '../base/diagnostic.ts';
import { makeSource } from '../base/source.ts';
import type { Channel } from '../ir/adapter.ts';
import { OPEN_CHANNELS } from '../ir/adapter.ts';
import type { Limits } from '../ir/program.ts';
import { DEFAULT_LIMITS } from '../ir/program.ts';
import type { ConductorConfig } from './conductor/config.ts';
import { CONDUCTOR_SECTIONS, DEFAULT_CONDUCTOR, readConductorConfig } from './conductor/config.ts';
import type { Report } from './report.ts';
import { createReport } from './report.ts';
import { readToml } from './toml.ts';
import { checkKeys, countAt, durationAt, stringAt, tableAt, wordAt } from './toml-fields.ts';
import type { TomlTable } from './toml-tree.ts';
import { describeToml } from './toml-tree.ts';

export interface Config {
  readonly limits: Limits;
  /** The shell for scripts of steps, run as `SHELL -c SCRIPT`. */
  readonly shell: string;
  /** Default adapter; null: MEOW's default. */
  readonly defaultAdapter: string | null;
  /** Default channel of agents; null: the adapter's preferred one. */
  readonly channel: Channel | null;
  /** tmux server for terminals: our own, or the user's. */
  readonly tmux: 'private' | 'shared';
  readonly conductor: ConductorConfig;
  readonly gates: GatesConfig;
}

export interface GatesConfig {
  /** Command that notifies people of an open gate; null: none. */
  readonly remind: string | null;
  /** Repeats the notification at this interval while the gate is open; null: once. */
  readonly remindEveryMs: number | null;
}

export const DEFAULT_CONFIG: Config = {
  limits: DEFAULT_LIMITS,
  shell: 'sh',
  defaultAdapter: null,
  channel: null,
  tmux: 'private',
  conductor: DEFAULT_CONDUCTOR,
  gates: { remind: null, remindEveryMs: null },
};

export interface ConfigInput {
  /** Path as the user knows it. */
  readonly file: string;
  readonly text: string;
  /** Values for absent keys. */
  readonly base?: Config;
}

/** The config is null if a diagnostic is an error. */
export function readConfig({ file, text, base = DEFAULT_CONFIG }: ConfigInput): {
  readonly config: Config | null;
  readonly diagnostics: readonly Diagnostic[];
} {
  const report = createReport(makeSource(file, text));
  const root = readToml(report);
  const config = root === null ? null : read(report, root, base);
  const diagnostics = report.diagnostics();
  return { config: hasErrors(diagnostics) ? null : config, diagnostics };
}

function read(report: Report, root: TomlTable, base: Config): Config {
  const known = ['limits', 'shell', 'tmux', 'agents', 'agent', 'gates', ...CONDUCTOR_SECTIONS];
  checkKeys(report, root, known, 'the configuration', 'warning');
  const agents = readAgents(report, root, 'agents');
  const agent = readAgents(report, root, 'agent');
  return {
    limits: readLimits(report, root, base.limits),
    shell: readShell(report, root) ?? base.shell,
    defaultAdapter: agents.defaultAdapter ?? agent.defaultAdapter ?? base.defaultAdapter,
    channel: agents.channel ?? agent.channel ?? base.channel,
    tmux: wordAt(report, root, 'tmux', ['private', 'shared'] as const) ?? base.tmux,
    conductor: readConductorConfig(report, root, base.conductor),
    gates: readGates(report, root, base.gates),
  };
}

function readGates(report: Report, root: TomlTable, base: GatesConfig): GatesConfig {
  const table = tableAt(report, root, 'gates', 'Write [gates] and below it remind = "COMMAND".');
  if (table === null) return base;
  checkKeys(report, table, ['remind', 'remind_every'], '[gates]', 'warning');
  const every = durationAt(report, table, 'remind_every');
  return {
    remind: readCommand(report, table, 'remind') ?? base.remind,
    remindEveryMs: every === 0 ? null : (every ?? base.remindEveryMs),
  };
}

function readCommand(report: Report, table: TomlTable, key: string): string | null {
  const command = stringAt(report, table, key);
  if (command === null || command.value.trim() !== '') return command?.value ?? null;
  report.error('invalid-value', command.place, `"${key}" is empty`, 'Write a command, or leave it out.');
  return null;
}

function readLimits(report: Report, root: TomlTable, base: Limits): Limits {
  const table = tableAt(report, root, 'limits', 'Write [limits] and one line for each.');
  if (table === null) return base;
  const known = ['max_expansion_depth', 'max_total_steps', 'max_workflow_file_size'];
  checkKeys(report, table, known, '[limits]', 'warning');
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
  report.error(
    'invalid-size',
    value.place,
    `"${key}" must be a size, got ${got}`,
    'For example "10MB", "500KB" or a number of bytes.',
  );
  return null;
}

function readShell(report: Report, root: TomlTable): string | null {
  const shell = stringAt(report, root, 'shell');
  if (shell === null || shell.value.trim() !== '') return shell?.value ?? null;
  report.error(
    'invalid-value',
    shell.place,
    '"shell" is empty',
    'Write the name or the path of a shell: shell = "sh".',
  );
  return null;
}

function readAgents(report: Report, root: TomlTable, section: string): Pick<Config, 'defaultAdapter' | 'channel'> {
  const table = tableAt(report, root, section, `Write [${section}] and below it default_adapter = "sim".`);
  if (table === null) return { defaultAdapter: null, channel: null };
  checkKeys(report, table, ['default_adapter', 'channel'], `[${section}]`, 'warning');
  return {
    defaultAdapter: readAdapter(report, table),
    channel: wordAt(report, table, 'channel', OPEN_CHANNELS),
  };
}

function readAdapter(report: Report, table: TomlTable): string | null {
  const adapter = stringAt(report, table, 'default_adapter');
  if (adapter === null || adapter.value.trim() !== '') return adapter?.value ?? null;
  report.error('invalid-value', adapter.place, '"default_adapter" is empty', 'For example default_adapter = "sim".');
  return null;
}
