// Reads `adapter.toml` as an Adapter. Checks every key and reports every problem. An unknown key is a warning, because
// adapters move between versions; everything else is an error. Docs: docs/adapters.md.

import type { Diagnostic } from '../../base/diagnostic.ts';
import { hasErrors } from '../../base/diagnostic.ts';
import { makeSource } from '../../base/source.ts';
import type { Adapter, HookNames, LimitPattern, ProgramCheck, RequiredProgram } from '../../ir/adapter.ts';
import { channelsOf } from '../../ir/adapter.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import { booleanAt, checkKeys, missing, stringAt, tableAt, wordAt } from '../toml-fields.ts';
import type { TomlString, TomlTable } from '../toml-tree.ts';
import { readToml } from '../toml.ts';
import { filledAt, groupsIn, neededAt, pattern, tablesAt, textsAt } from './fields.ts';
import { readAcp, readHeadless } from './headless.ts';
import type { Texts } from './placeholders.ts';
import { readFiles, readHome, readOwnEnvironment } from './start-environment.ts';
import { readTerminal, TERMINAL_SECTIONS } from './terminal.ts';

export interface AdapterInput {
  /** Path as the user knows it. */
  readonly file: string;
  readonly text: string;
  /** Names of the readers for output of headless agents. */
  readonly readers: readonly string[];
}

/** The adapter is null if a diagnostic is an error. */
export function readAdapter({ file, text, readers }: AdapterInput): {
  readonly adapter: Adapter | null;
  readonly diagnostics: readonly Diagnostic[];
} {
  const report = createReport(makeSource(file, text));
  const root = readToml(report);
  const adapter = root === null ? null : read(report, root, readers);
  const diagnostics = report.diagnostics();
  return { adapter: hasErrors(diagnostics) ? null : adapter, diagnostics };
}

const SECTIONS = [
  'adapter',
  'program',
  'environment',
  'home',
  'files',
  'hooks',
  ...TERMINAL_SECTIONS,
  'headless',
  'acp',
  'mailbox',
  'limits',
];

function read(report: Report, root: TomlTable, readers: readonly string[]): Adapter {
  checkKeys(report, root, SECTIONS, 'an adapter', 'warning');
  const texts: Texts = { report, home: root.entries.has('home'), used: new Set() };
  const hooks = readHooks(report, root);
  const adapter: Adapter = {
    ...readHead(report, root),
    program: readProgram(report, root),
    environment: readOwnEnvironment(texts, root),
    home: readHome(report, root),
    files: readFiles(texts, root),
    hooks,
    terminal: readTerminal(texts, root, hooks),
    headless: readHeadless(texts, root, readers),
    acp: readAcp(texts, root),
    mailbox: readMailbox(report, root),
    limits: tablesAt(report, root, 'limits').map((table) => readLimit(report, table)),
  };
  checkChannels(report, root, adapter);
  checkHook(report, root, texts);
  return adapter;
}

function readHead(report: Report, root: TomlTable): Pick<Adapter, 'name' | 'description' | 'isDefault' | 'alias'> {
  const table = tableAt(report, root, 'adapter', 'Write [adapter] and below it name = "my-agent".');
  if (table === null) {
    if (!root.entries.has('adapter'))
      missing(report, START, 'the file', '[adapter]', 'Write [adapter] and below it name = "my-agent".');
    return { name: '', description: '', isDefault: false, alias: null };
  }
  checkKeys(report, table, ['name', 'description', 'default', 'alias'], '[adapter]', 'warning');
  const name = neededAt(report, table, '[adapter]', 'name', 'Give it the name that workflows use: name = "my-agent".');
  if (name !== null && !isAdapterName(name.value)) {
    const hint = 'A name has 1 to 40 letters, digits, "-" and "_": it is the name of a folder, too.';
    report.error('invalid-name', name.place, `${JSON.stringify(name.value)} is not a valid name for an adapter`, hint);
  }
  return {
    name: name?.value ?? '',
    description: stringAt(report, table, 'description')?.value ?? '',
    isDefault: booleanAt(report, table, 'default') ?? false,
    alias: stringAt(report, table, 'alias')?.value ?? null,
  };
}

export function isAdapterName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/.test(text);
}

function readMailbox(report: Report, root: TomlTable): boolean {
  const table = tableAt(report, root, 'mailbox', 'Write [mailbox] and below it enabled = true.');
  if (table === null) return false;
  checkKeys(report, table, ['enabled'], '[mailbox]', 'warning');
  return booleanAt(report, table, 'enabled') ?? false;
}

function readLimit(report: Report, table: TomlTable): LimitPattern {
  const section = '[[limits]]';
  checkKeys(report, table, ['pattern', 'reset'], section, 'warning');
  const said = neededAt(report, table, section, 'pattern', "Say what the agent says then: pattern = 'usage limit'.");
  const source = said === null ? null : pattern(report, said);
  const reset = wordAt(report, table, 'reset', ['epoch', 'duration', 'clock'] as const);
  if (said !== null && source !== null && reset !== null && groupsIn(source) === 0) {
    const message = 'the pattern has no group, and its first group must tell when the limit ends';
    report.error(
      'invalid-pattern',
      said.place,
      message,
      "Put it in brackets: 'try again in (\\d+m)'; or remove reset.",
    );
  }
  return { pattern: source ?? '', reset };
}

function checkChannels(report: Report, root: TomlTable, adapter: Adapter): void {
  const written = ['spawn', 'headless', 'acp'].some((section) => root.entries.has(section));
  if (written || channelsOf(adapter).length > 0) return;
  const place = root.entries.get('adapter')?.keyPlace ?? START;
  const hint = 'Add [spawn] for an agent in a terminal, [headless] for one that answers and ends, or [acp].';
  report.error('no-channel', place, 'the adapter has no way to start an agent', hint);
}

/** Named hooks must be called. */
function checkHook(report: Report, root: TomlTable, { used }: Texts): void {
  const hooks = root.entries.get('hooks');
  if (hooks === undefined || used.has('hook')) return;
  const message = 'nothing calls {{hook}}, so these events never arrive';
  const hint = 'Have the agent call {{hook}} NAME for each, in a file or a command of this adapter.';
  report.warning('unused-section', hooks.keyPlace, message, hint);
}

const START = { from: 0, to: 1 };

const HOOK_KEYS = [
  'begun',
  'accepted',
  'tool_begun',
  'tool_ended',
  'blocked',
  'stopped',
  'failed',
  'ended',
  'session_key',
  'prompt_key',
  'message_key',
];

function readHooks(report: Report, root: TomlTable): HookNames | null {
  const table = tableAt(report, root, 'hooks', 'Write [hooks] and below it accepted = "NAME".');
  if (table === null) return null;
  checkKeys(report, table, HOOK_KEYS, '[hooks]', 'warning');
  const text = (key: string): string | null => filledAt(report, table, key)?.value ?? null;
  const hook = (key: string): string | null => {
    const string = filledAt(report, table, key);
    return string === null ? null : hookName(report, string);
  };
  return {
    begun: hook('begun'),
    accepted: hook('accepted'),
    toolBegun: hook('tool_begun'),
    toolEnded: hook('tool_ended'),
    blocked: (textsAt(report, table, 'blocked') ?? []).flatMap((string) => hookName(report, string) ?? []),
    stopped: hook('stopped'),
    failed: hook('failed'),
    ended: hook('ended'),
    sessionKey: text('session_key') ?? 'session_id',
    promptKey: text('prompt_key'),
    messageKey: text('message_key'),
  };
}

/** It is an argument of {{hook}} and part of a file name. */
function hookName(report: Report, { value, place }: TomlString): string | null {
  if (/^[A-Za-z0-9_-]+$/.test(value)) return value;
  const hint = 'It is made of letters, digits, "-" and "_": what the agent says behind {{hook}}.';
  report.error('invalid-name', place, `${JSON.stringify(value)} is not a valid name for a hook`, hint);
  return null;
}

const PROGRAM_KEYS = ['name', 'version_command', 'tried', 'install', 'login_command', 'login_cure', 'checks'];

function readProgram(report: Report, root: TomlTable): RequiredProgram | null {
  const table = tableAt(report, root, 'program', 'Write [program] and below it name = "PROGRAM".');
  if (table === null) return null;
  checkKeys(report, table, PROGRAM_KEYS, '[program]', 'warning');
  const name = neededAt(report, table, '[program]', 'name', 'Name what is started: name = "my-agent".');
  if (name !== null && /[\s/]/.test(name.value)) {
    const hint = 'It is looked for on PATH by its name alone.';
    report.error('invalid-name', name.place, `${JSON.stringify(name.value)} is not a valid name for a program`, hint);
  }
  const text = (key: string): string | null => filledAt(report, table, key)?.value ?? null;
  return {
    name: name?.value ?? '',
    versionCommand: text('version_command'),
    tried: (textsAt(report, table, 'tried') ?? []).map(({ value }) => value),
    install: text('install'),
    loginCommand: text('login_command'),
    loginCure: text('login_cure'),
    checks: tablesAt(report, table, 'checks', 'program.checks').map((check) => readCheck(report, check)),
  };
}

function readCheck(report: Report, table: TomlTable): ProgramCheck {
  const section = '[[program.checks]]';
  checkKeys(report, table, ['name', 'command', 'cure'], section, 'warning');
  const text = (key: string, hint: string): string => neededAt(report, table, section, key, hint)?.value ?? '';
  return {
    name: text('name', 'Describe the check in a word or two: name = "first start".'),
    command: text('command', 'Write a command that succeeds where all is well.'),
    cure: text('cure', 'Say what is to be done where it does not.'),
  };
}
