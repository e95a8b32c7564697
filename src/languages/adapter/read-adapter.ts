// Reads `adapter.toml` as an Adapter. Checks every key and reports every problem. An unknown key is a warning, because
// adapters move between versions; everything else is an error. Docs: docs/adapters.md.

import { type Diagnostic, hasErrors, makeSource } from '../../base/source.ts';
import { type Adapter, type AdapterFile, channelsOf, type ProgramCheck } from '../../ir/adapter.ts';
import type { Text } from '../../ir/text.ts';
import { type KeyIn, namesOf } from '../keys.ts';
import { checkKeys, createReport, missing, type Report, START } from '../report.ts';
import { isVariableName, readEnvironment, tableAt } from '../toml-fields.ts';
import type { TomlString } from '../toml-tree.ts';
import { readToml } from '../toml.ts';
import { type Fields, groupsIn, pattern, plainText, type Reading, sectionAt, sectionsAt } from './fields.ts';
import { readAcp, readHeadless } from './headless.ts';
import { ADAPTER, CHECK, FILE, FORMATS, HEAD, HOME, HOOKS, LIMIT, MAILBOX, PROGRAM, RESETS } from './keys.ts';
import { readTerminal } from './terminal.ts';

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
  const adapter = root === null ? null : read({ report, root, used: new Set() }, readers);
  const diagnostics = report.diagnostics();
  return { adapter: hasErrors(diagnostics) ? null : adapter, diagnostics };
}

function read(reading: Reading, readers: readonly string[]): Adapter {
  checkKeys(reading.report, reading.root, namesOf(ADAPTER.root.keys), 'an adapter', 'warning');
  const hooks = readHooks(reading);
  const adapter: Adapter = {
    ...readHead(reading),
    program: readProgram(reading),
    environment: readOwnEnvironment(reading),
    home: readHome(reading),
    files: readFiles(reading),
    hooks,
    terminal: readTerminal(reading, hooks),
    headless: readHeadless(reading, readers),
    acp: readAcp(reading),
    mailbox: sectionAt(reading, MAILBOX, 'below it enabled = true', (mailbox) => mailbox.boolean('enabled')) ?? false,
    limits: readLimits(reading),
  };
  checkChannels(reading, adapter);
  checkHook(reading);
  return adapter;
}

function readHead(reading: Reading): Pick<Adapter, 'name' | 'description' | 'isDefault' | 'alias'> {
  const { report, root } = reading;
  const advice = 'below it name = "my-agent"';
  if (!root.entries.has('adapter')) missing(report, START, 'the file', '[adapter]', `Write [adapter] and ${advice}.`);
  const head = sectionAt(reading, HEAD, advice, (section) => {
    const name = section.needed('name', 'Give it the name that workflows use: name = "my-agent".');
    if (name !== null && !isAdapterName(name.value)) {
      const message = `${JSON.stringify(name.value)} is not a valid name for an adapter`;
      const hint = 'A name has 1 to 40 letters, digits, "-" and "_": it is the name of a folder, too.';
      report.error('invalid-name', name.place, message, hint);
    }
    return {
      name: name?.value ?? '',
      description: section.string('description') ?? '',
      isDefault: section.boolean('default') ?? false,
      alias: section.string('alias'),
    };
  });
  return head ?? { name: '', description: '', isDefault: false, alias: null };
}

export function isAdapterName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/.test(text);
}

function readLimits(reading: Reading): Adapter['limits'] {
  const { report, root } = reading;
  return sectionsAt(reading, root.entries.get('limits')?.value, 'limits', LIMIT, (limit) => {
    const written = limit.needed('pattern', "Say what the agent says then: pattern = 'usage limit'.");
    const source = written === null ? null : pattern(report, written);
    const reset = limit.word('reset', RESETS);
    if (written !== null && source !== null && reset !== null && groupsIn(source) === 0) {
      const message = 'the pattern has no group, and its first group must tell when the limit ends';
      const hint = "Put it in brackets: 'try again in (\\d+m)'; or remove reset.";
      report.error('invalid-pattern', written.place, message, hint);
    }
    return { pattern: source ?? '', reset };
  });
}

function checkChannels({ report, root }: Reading, adapter: Adapter): void {
  const written = ['spawn', 'headless', 'acp'].some((section) => root.entries.has(section));
  if (written || channelsOf(adapter).length > 0) return;
  const place = root.entries.get('adapter')?.keyPlace ?? START;
  const hint = 'Add [spawn] for an agent in a terminal, [headless] for one that answers and ends, or [acp].';
  report.error('no-channel', place, 'the adapter has no way to start an agent', hint);
}

/** Named hooks must be called. */
function checkHook({ report, root, used }: Reading): void {
  const hooks = root.entries.get('hooks');
  if (hooks === undefined || used.has('hook')) return;
  const message = 'nothing calls {{hook}}, so these events never arrive';
  const hint = 'Have the agent call {{hook}} NAME for each, in a file or a command of this adapter.';
  report.warning('unused-section', hooks.keyPlace, message, hint);
}

function readHooks(reading: Reading): Adapter['hooks'] {
  return sectionAt(reading, HOOKS, 'below it accepted = "NAME"', (hooks) => {
    const hook = (key: KeyIn<typeof HOOKS>): string | null => {
      const name = hooks.filled(key);
      return name === null ? null : hookName(reading.report, name);
    };
    return {
      begun: hook('begun'),
      accepted: hook('accepted'),
      toolBegun: hook('tool_begun'),
      toolEnded: hook('tool_ended'),
      blocked: hooks.texts('blocked').flatMap((name) => hookName(reading.report, name) ?? []),
      stopped: hook('stopped'),
      failed: hook('failed'),
      ended: hook('ended'),
      sessionKey: hooks.text('session_key') ?? 'session_id',
      promptKey: hooks.text('prompt_key'),
      messageKey: hooks.text('message_key'),
    };
  });
}

/** It is an argument of {{hook}} and part of a file name. */
function hookName(report: Report, { value, place }: TomlString): string | null {
  if (/^[A-Za-z0-9_-]+$/.test(value)) return value;
  const hint = 'It is made of letters, digits, "-" and "_": what the agent says behind {{hook}}.';
  return report.error('invalid-name', place, `${JSON.stringify(value)} is not a valid name for a hook`, hint);
}

function readProgram(reading: Reading): Adapter['program'] {
  return sectionAt(reading, PROGRAM, 'below it name = "PROGRAM"', (program) => {
    const name = program.needed('name', 'Name what is started: name = "my-agent".');
    if (name !== null && /[\s/]/.test(name.value)) {
      const message = `${JSON.stringify(name.value)} is not a valid name for a program`;
      reading.report.error('invalid-name', name.place, message, 'It is looked for on PATH by its name alone.');
    }
    const readCheck = (check: Fields<KeyIn<typeof CHECK>>): ProgramCheck => ({
      name: check.needed('name', 'Describe the check in a word or two: name = "first start".')?.value ?? '',
      command: check.needed('command', 'Write a command that succeeds where all is well.')?.value ?? '',
      cure: check.needed('cure', 'Say what is to be done where it does not.')?.value ?? '',
    });
    return {
      name: name?.value ?? '',
      versionCommand: program.text('version_command'),
      tried: program.texts('tried').map(({ value }) => value),
      install: program.text('install'),
      loginCommand: program.text('login_command'),
      loginCure: program.text('login_cure'),
      checks: sectionsAt(reading, program.value('checks'), 'checks', CHECK, readCheck),
    };
  });
}

/** Start environment of an agent: environment variables, a home folder of its own, and files written for it. */
function readOwnEnvironment(reading: Reading): Adapter['environment'] {
  const { report, root } = reading;
  const table = tableAt(report, root, 'environment', 'Write [environment] and below it NAME = "value".');
  return readEnvironment(report, table, (string) => plainText(reading, string));
}

function readHome(reading: Reading): Adapter['home'] {
  const { report } = reading;
  return sectionAt(reading, HOME, 'below it variable and from', (home) => {
    const hint = 'Name the variable that tells the agent where its home is: variable = "AGENT_HOME".';
    const variable = home.needed('variable', hint);
    if (variable !== null && !isVariableName(variable.value)) {
      const message = `"${variable.value}" is not a valid name for an environment variable`;
      report.error('invalid-name', variable.place, message, 'It is made of letters, digits and _.');
    }
    const from = home.needed('from', 'Say where the user\'s own is: from = ".agent".');
    return {
      variable: variable?.value ?? '',
      from: (from === null ? null : relativePath(report, from)) ?? '',
      link: home.texts('link').flatMap((path) => relativePath(report, path) ?? []),
      copy: home.texts('copy').flatMap((path) => relativePath(report, path) ?? []),
    };
  });
}

function readFiles(reading: Reading): Adapter['files'] {
  const { report, root } = reading;
  return sectionsAt(reading, root.entries.get('files')?.value, 'files', FILE, (file) => {
    const path = file.needed('path', 'Say where it is written: path = "settings.json".');
    const content = file.needed('content', "Write what is in it: content = '''…'''.");
    if (path !== null) relativePath(report, path, /^\{\{\s*home\s*\}\}\//);
    const byName = FORMATS.find((format) => path?.value.endsWith(`.${format}`)) ?? 'text';
    const format = file.word('format', FORMATS) ?? byName;
    const text = content === null ? '' : plainText(reading, content);
    if (content !== null) checkContent(report, content, format, text);
    return { path: path === null ? '' : plainText(reading, path), format, content: text };
  });
}

/** A placeholder there is inside a string, which its value cannot end. */
function checkContent(report: Report, string: TomlString, format: AdapterFile['format'], text: Text): void {
  const filled =
    typeof text === 'string' ? text : text.parts.map((part) => (typeof part === 'string' ? part : 'x')).join('');
  const problem = format === 'json' ? problemOfJson(filled) : format === 'toml' ? problemOfToml(filled) : null;
  if (problem === null) return;
  const hint = 'Fix it, or write format = "text". Each {{…}} must be inside quotes.';
  report.error('invalid-content', string.place, `the content is not valid ${format.toUpperCase()}: ${problem}`, hint);
}

function problemOfJson(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return error.message;
  }
}

function problemOfToml(text: string): string | null {
  const report = createReport(makeSource('', text));
  readToml(report);
  const [first] = report.diagnostics().filter((diagnostic) => hasErrors([diagnostic]));
  return first === undefined ? null : `line ${String(first.span.line)}: ${first.message}`;
}

/** `root`: a prefix that is allowed too. */
function relativePath(report: Report, { value, place }: TomlString, root?: RegExp): string | null {
  const inside = root === undefined ? value : value.replace(root, '');
  const leaves = inside.startsWith('/') || inside.startsWith('~') || inside.split('/').includes('..');
  if (!leaves && inside !== '') return value;
  const hint =
    root === undefined ? 'Write it without / in front and without "..".' : 'Write "NAME", or "{{home}}/NAME".';
  return report.error('invalid-path', place, `${JSON.stringify(value)} is outside of the folder it must be in`, hint);
}
