// Start environment of an agent: environment variables, a home folder of its own, and files written for it.

import { hasErrors } from '../../base/diagnostic.ts';
import { makeSource } from '../../base/source.ts';
import type { AdapterFile, HomeFolder } from '../../ir/adapter.ts';
import type { Text } from '../../ir/text.ts';
import { isVariableName, readEnvironment } from '../environment.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import { readToml } from '../toml.ts';
import { checkKeys, tableAt, wordAt } from '../toml-fields.ts';
import type { TomlString, TomlTable } from '../toml-tree.ts';
import { neededAt, tablesAt, textsAt } from './fields.ts';
import type { Texts } from './placeholders.ts';
import { value } from './placeholders.ts';

export function readOwnEnvironment(texts: Texts, root: TomlTable): Readonly<Record<string, Text>> {
  const table = tableAt(texts.report, root, 'environment', 'Write [environment] and below it NAME = "value".');
  return readEnvironment(texts.report, table, (string) => value(texts, string));
}

export function readHome(report: Report, root: TomlTable): HomeFolder | null {
  const table = tableAt(report, root, 'home', 'Write [home] and below it variable and from.');
  if (table === null) return null;
  checkKeys(report, table, ['variable', 'from', 'link', 'copy'], '[home]', 'warning');
  const hint = 'Name the variable that tells the agent where its home is: variable = "AGENT_HOME".';
  const variable = neededAt(report, table, '[home]', 'variable', hint);
  if (variable !== null && !isVariableName(variable.value)) {
    const message = `"${variable.value}" is not a valid name for an environment variable`;
    report.error('invalid-name', variable.place, message, 'It is made of letters, digits and _.');
  }
  const from = neededAt(report, table, '[home]', 'from', 'Say where the user\'s own is: from = ".agent".');
  const inside = (key: string): readonly string[] =>
    (textsAt(report, table, key) ?? []).flatMap((string) => relativePath(report, string) ?? []);
  return {
    variable: variable?.value ?? '',
    from: (from === null ? null : relativePath(report, from)) ?? '',
    link: inside('link'),
    copy: inside('copy'),
  };
}

export function readFiles(texts: Texts, root: TomlTable): readonly AdapterFile[] {
  return tablesAt(texts.report, root, 'files').map((table) => readFile(texts, table));
}

const FORMATS = ['json', 'toml', 'text'] as const;

function readFile(texts: Texts, table: TomlTable): AdapterFile {
  const { report } = texts;
  checkKeys(report, table, ['path', 'format', 'content'], '[[files]]', 'warning');
  const path = neededAt(report, table, '[[files]]', 'path', 'Say where it is written: path = "settings.json".');
  const content = neededAt(report, table, '[[files]]', 'content', "Write what is in it: content = '''…'''.");
  if (path !== null) relativePath(report, path, /^\{\{\s*home\s*\}\}\//);
  const format = wordAt(report, table, 'format', FORMATS) ?? formatOf(path?.value ?? '');
  const text = content === null ? '' : value(texts, content);
  if (content !== null) checkContent(report, content, format, text);
  return { path: path === null ? '' : value(texts, path), format, content: text };
}

function formatOf(path: string): AdapterFile['format'] {
  return FORMATS.find((format) => path.endsWith(`.${format}`)) ?? 'text';
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
  report.error('invalid-path', place, `${JSON.stringify(value)} is outside of the folder it must be in`, hint);
  return null;
}
