// `adapter.toml` → Adapter. Every key is checked, and every problem reported: an unknown key is a warning, for adapters
// travel between versions; whatever else is wrong is an error. Docs: docs/adapters.md.

import type { Diagnostic } from '../../base/diagnostic.ts';
import { hasErrors } from '../../base/diagnostic.ts';
import { makeSource } from '../../base/source.ts';
import type { Adapter, LimitPattern } from '../../ir/adapter.ts';
import { channelsOf } from '../../ir/adapter.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import { readToml } from '../toml.ts';
import { booleanAt, checkKeys, missing, stringAt, tableAt, wordAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import { groupsIn, neededAt, pattern, tablesAt } from './fields.ts';
import { readAcp, readHeadless } from './headless.ts';
import type { Texts } from './holes.ts';
import { readHooks } from './hooks.ts';
import { readProgram } from './program.ts';
import { readFiles, readHome, readOwnEnvironment } from './surroundings.ts';
import { readTerminal, TERMINAL_SECTIONS } from './terminal.ts';

export interface AdapterInput {
  /** Path as the user knows it. */
  readonly file: string;
  readonly text: string;
  /** What reads the output of headless agents, by name. */
  readonly readers: readonly string[];
}

/** The adapter is null where a diagnostic is an error. */
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
    report.error('invalid-name', name.place, `${JSON.stringify(name.value)} is no name for an adapter`, hint);
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

/** Hooks that are named must be called. */
function checkHook(report: Report, root: TomlTable, { used }: Texts): void {
  const hooks = root.entries.get('hooks');
  if (hooks === undefined || used.has('hook')) return;
  const message = 'nothing calls {{hook}}, so these are never told';
  const hint = 'Have the agent call {{hook}} NAME for each, in a file or a command of this adapter.';
  report.warning('unused-section', hooks.keyPlace, message, hint);
}

const START = { from: 0, to: 1 };
