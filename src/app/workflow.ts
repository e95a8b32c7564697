// From what the user wrote after `meow run` to a workflow's text: which file, which workflow of it, in which language, and
// the other files that it leads to.

import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, extname, isAbsolute, join, relative, resolve } from 'node:path';

import { present } from '../base/assert.ts';
import type { Diagnostic } from '../base/diagnostic.ts';
import type { Json } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import { makeSource } from '../base/source.ts';
import { UsageError } from '../base/usage-error.ts';
import type { OtherFiles } from '../languages/meow/compile.ts';
import type { MeowFile } from '../languages/meow/modules.ts';
import { isPlaced, spellingsOf } from '../languages/meow/reference.ts';
import { createSearch } from '../languages/meow/search.ts';
import { createReport } from '../languages/report.ts';
import type { Source } from '../ir/program.ts';
import { isErrno, isSystemError, shellPath } from '../stores/usage-errors.ts';
import { InvalidWorkflow } from './invalid-workflow.ts';
import type { Project } from './project.ts';

export interface WorkflowText {
  /** As messages name it. */
  readonly file: string;
  /** Absolute. */
  readonly path: string;
  readonly text: string;
  /** After `#`; null is the main one. */
  readonly workflow: string | null;
  /** The files that it leads to. */
  readonly others: OtherFiles;
}

export interface FoundWorkflow {
  /** As messages name it. */
  readonly file: string;
  /** Absolute. */
  readonly path: string;
  /** After `#`; null is the main one. */
  readonly workflow: string | null;
  readonly language: Language;
}

/** What a reference names, `PATH[#WORKFLOW]` or a bare name, and in which language it is. */
export function findWorkflow(project: Project, reference: string, language: string | null): FoundWorkflow {
  const { path, workflow } = locate(project, reference);
  const file = shownPath(project, path);
  const spoken = checkLanguage(language) ?? languageOf(path, file);
  return { file, path, workflow, language: spoken };
}

/** A MEOW file and every file that it leads to. `values`: what the run is given, for templates that a variable names. */
export function readMeow(
  project: Project,
  { file, path, workflow }: FoundWorkflow,
  values: Readonly<Record<string, Json>>,
): WorkflowText {
  const text = readText(path, file);
  return { file, path, text, workflow, others: readOthers(project, { file, path, text }, values) };
}

/** A workflow that leads through more files than this has lost its way. */
const FILES_MAX = 1_000;

/** Reads what the references of a file may mean, and what those of these files may mean, until there is nothing more. */
function readOthers(
  project: Project,
  entry: MeowFile & { readonly path: string },
  values: Readonly<Record<string, Json>>,
): OtherFiles {
  const search = createSearch(values);
  const pathOf = new Map([[entry.file, entry.path]]);
  const files: MeowFile[] = [];
  const found = new Map<string, string>();
  const keyOf = (from: string, name: string): string => `${from}\0${name}`;
  const open = [...search.add(entry)];
  for (let wanted = open.shift(); wanted !== undefined; wanted = open.shift()) {
    const { from, name } = wanted;
    const path = locateTemplate(project, dirname(pathOf.get(from) ?? entry.path), name);
    if (path === null) continue;
    const file = shownPath(project, path);
    found.set(keyOf(from, name), file);
    if (pathOf.has(file)) continue;
    if (files.length >= FILES_MAX) {
      throw new InvalidWorkflow(`${entry.file} leads through more than ${FILES_MAX} files`, 'is that meant?');
    }
    const other = { file, text: readText(path, file) };
    pathOf.set(file, path);
    files.push(other);
    open.push(...search.add(other));
  }
  return { files, find: (from, name) => found.get(keyOf(from, name)) ?? null };
}

/** Relative to the file that the name stands in; else in the folders that are searched, the built-in library last. */
function locateTemplate(project: Project, folder: string, name: string): string | null {
  const builtIn = name.startsWith('lib/') ? [packageFolder()] : [];
  const folders = isPlaced(name) ? [folder] : [folder, ...searchedFolders(project), ...builtIn];
  for (const each of folders) {
    for (const spelling of spellingsOf(name)) {
      const path = resolve(each, spelling);
      if (mayBeFile(path)) return path;
    }
  }
  return null;
}

/** Where `bin/` and `lib/` are, seen from the bundle in `dist/` or from this source. */
export function packageFolder(): string {
  const [bundled, source] = ['..', '../..'].map((up) => resolve(import.meta.dirname, up)) as [string, string];
  return exists(join(bundled, 'bin')) ? bundled : source;
}

/** The file that a reference names. */
function locate(project: Project, reference: string): { readonly path: string; readonly workflow: string | null } {
  if (reference === '') {
    throw new UsageError('"" names no workflow', 'name a file, a folder or a workflow; this folder is named .');
  }
  const whole = resolve(project.cwd, reference);
  if (exists(whole)) return { path: whole, workflow: null };
  const hash = reference.lastIndexOf('#');
  const name = hash === -1 ? reference : reference.slice(0, hash);
  const workflow = hash === -1 ? null : reference.slice(hash + 1);
  if (name === '') throw new UsageError(`${JSON.stringify(reference)} names no file`, 'write PATH#WORKFLOW');
  if (workflow === '')
    throw new UsageError(`${JSON.stringify(reference)} names no workflow after #`, `write ${name}, or ${name}#main`);
  const path = resolve(project.cwd, name);
  if (exists(path)) return { path, workflow };
  if (isAbsolute(name) || /^\.{1,2}\//.test(name)) throw missingFile(name);
  const candidates = [name, `${name}.meow.toml`, `${name}.toml`, `${name}.yaml`];
  const builtIn = name.startsWith('lib/') ? [packageFolder()] : [];
  for (const folder of [...searchedFolders(project), ...builtIn]) {
    for (const candidate of candidates) {
      const found = join(folder, candidate);
      // What a run has left is no workflow: neither its folder nor its state.
      if (exists(found) && !exists(join(folder, name, 'journal.jsonl'))) return { path: found, workflow };
    }
  }
  throw missingWorkflow(project, name);
}

/** Where names are searched that are no paths. */
export function searchedFolders({ meow, shared }: Project): readonly string[] {
  return [...new Set([meow, shared])].flatMap((folder) => [join(folder, 'templates'), join(folder, 'workflows')]);
}

function missingFile(name: string): UsageError {
  return new UsageError(`there is no file ${name}`, 'check the path; an example to begin with: meow init');
}

function missingWorkflow(project: Project, name: string): UsageError {
  if (name.includes('/') || /\.(toml|ya?ml|md)$/.test(name)) {
    const folder = resolve(project.cwd, name, '..');
    if (namesIn(folder).includes(basename(name)))
      return new UsageError(`${name} is a link that leads nowhere`, `see where: ls -l ${name}`);
    const guess = nearest(basename(name), namesIn(folder));
    const meant = guess === null ? '' : `did you mean ${shownPath(project, join(folder, guess))}? `;
    return new UsageError(`there is no file ${name}`, `${meant}A bare name is also searched in .meow/templates/`);
  }
  if (exists(join(project.runs, name, 'journal.jsonl'))) {
    return new UsageError(`${name} is a run, and meow run starts a new one`, `take it up again: meow resume ${name}`);
  }
  const known = searchedFolders(project)
    .flatMap(namesIn)
    .filter((file) => file.endsWith('.toml'))
    .map((file) => file.replace(/(\.meow)?\.toml$/, ''));
  const guess = nearest(name, known);
  const searched = searchedFolders(project).map((folder) => `${shownPath(project, folder)}/`);
  return new UsageError(
    `there is no workflow ${name}`,
    `${guess === null ? '' : `did you mean ${guess}? `}Searched here, in ${searched.join(', ')}`,
  );
}

type Language = Source['language'];
const LANGUAGES: readonly Language[] = ['meow', 'raymond', 'conductor'];

function checkLanguage(name: string | null): Language | null {
  if (name === null) return null;
  const known = LANGUAGES.find((language) => language === name);
  if (known !== undefined) return known;
  throw new UsageError(`there is no language ${JSON.stringify(name)}`, `--language is one of ${LANGUAGES.join(', ')}`);
}

function languageOf(path: string, file: string): Language {
  if (statSync(path).isDirectory()) return 'raymond';
  switch (extname(path).toLowerCase()) {
    case '.toml':
      return 'meow';
    case '.md':
      return 'raymond';
    case '.yaml':
    case '.yml': {
      const text = readText(path, file);
      if (/^["']?workflow_id["']?\s*:/m.test(text)) return 'conductor';
      if (/^states\s*:/m.test(text)) return 'raymond';
      if (/^id: \S+\ntemplate:/m.test(text)) {
        throw new UsageError(`${file} is the state of a run`, `take it up again: meow run --workflow ${file}`);
      }
      break;
    }
    default:
      break;
  }
  throw new UsageError(`cannot tell the language of ${file}`, 'name it NAME.meow.toml, or say --language meow');
}

/** More than this is not even looked at; from 10 MB on it is the language that refuses, with a place. */
const BYTES_MAX = 100_000_000;

/** The whole text of a file, which must be UTF-8. */
export function readText(path: string, file: string): string {
  let bytes: Buffer;
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) throw new UsageError(`${file} is a folder, and a file is needed`, 'name the file in it');
    if (!stats.isFile()) throw new UsageError(`${file} is no regular file`, 'write the workflow to a file');
    if (stats.size > BYTES_MAX) {
      const size = `${Math.round(stats.size / 1_000_000)} MB`;
      throw new InvalidWorkflow(`${file} has ${size}, far more than the 10 MB that are read`, 'is it the right file?');
    }
    bytes = readFileSync(path);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new UsageError(`cannot read ${file} (${error.code})`, cureOf(error.code ?? '', file));
  }
  if (!isUtf8(bytes)) throw notUtf8(bytes, path, file);
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

/** A file that is to hold text holds something else. Where it is a workflow's, it is a problem like all others of it. */
export class NotText extends InvalidWorkflow {
  /** Absolute. */
  readonly path: string;
  readonly diagnostic: Diagnostic;

  constructor(path: string, diagnostic: Diagnostic) {
    const { span, message, hint } = diagnostic;
    super(`${span.file}:${span.line}:${span.column}: ${message}`, hint);
    this.path = path;
    this.diagnostic = diagnostic;
  }
}

function notUtf8(bytes: Buffer, path: string, file: string): NotText {
  const offset = firstBadByte(bytes);
  const value = `0x${(bytes[offset] ?? 0).toString(16).toUpperCase().padStart(2, '0')}`;
  const mark = bytes.toString('latin1', 0, 2);
  const seems = mark === '\xFF\xFE' || mark === '\xFE\xFF' ? 'UTF-16' : 'LATIN1';
  // As far as the line goes, with a mark in the place of what is wrong.
  const end = bytes.indexOf(0x0a, offset);
  const decode = (to: number): string => new TextDecoder().decode(bytes.subarray(0, to));
  const from = decode(offset).length;
  const report = createReport(makeSource(file, decode(end === -1 ? bytes.length : end)));
  report.error(
    'not-utf8',
    { from, to: from + 1 },
    `the file is not UTF-8 text (byte ${value} at offset ${offset})`,
    `Save it as UTF-8, for example: iconv -f ${seems} -t UTF-8 ${shellPath(file)} > new; is it the right file?`,
  );
  return new NotText(path, present(report.diagnostics()[0], 'what was reported is there'));
}

function cureOf(code: string, file: string): string {
  if (code === 'ENOENT') return 'check the path';
  if (code === 'EACCES' || code === 'EPERM') return `make it readable: chmod u+r ${file}`;
  return 'check the path and the disk';
}

/** Its offset. No line end is ever a part of another character. */
function firstBadByte(bytes: Buffer): number {
  let start = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, start);
    if (end === -1 || !isUtf8(bytes.subarray(start, end))) break;
    start = end + 1;
  }
  for (let offset = start; ; ) {
    const lead = bytes[offset] ?? 0;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (offset >= bytes.length || !isUtf8(bytes.subarray(offset, offset + length))) return offset;
    offset += length;
  }
}

/** As short as it can be and still be pasted: relative inside the folder we were called in. */
export function shownPath({ cwd }: { readonly cwd: string }, path: string): string {
  const inside = relative(cwd, path);
  if (inside === '') return '.';
  if (!inside.startsWith('..')) return inside;
  const home = homedir();
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isSystemError(error)) return [];
    throw error;
  }
}

/** A file, or something that we may not look at: to read it says why. */
function mayBeFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch (error) {
    if (isErrno(error, 'EACCES')) return true;
    if (isSystemError(error) || error instanceof TypeError) return false; // a TypeError: a NUL byte in the path
    throw error;
  }
}

function exists(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP')) return false;
    if (isErrno(error, 'EACCES')) return true;
    if (error instanceof TypeError) return false; // a NUL byte in the path
    throw error;
  }
}
