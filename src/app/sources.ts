// Files of the project as languages read them, and the text of a single file.

import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

import { present } from '../base/assert.ts';
import type { Diagnostic } from '../base/diagnostic.ts';
import { makeSource } from '../base/source.ts';
import { UsageError } from '../base/usage-error.ts';
import type { FolderFile, SourceReader } from '../languages/language.ts';
import { createReport } from '../languages/report.ts';
import { shellPath } from '../stores/usage-errors.ts';
import { isErrno, isSystemError } from '../sys/errno.ts';
import { InvalidWorkflow } from './errors.ts';
import type { Project } from './project.ts';

/** The file system, as the languages see it. */
export function projectReader(project: Project): SourceReader {
  const { cwd, meow, shared, exists } = project;
  const shown = (path: string): string => shownPath(project, path);
  return {
    resolve: (folder, path) => resolve(folder, path),
    folderOf: (path) => dirname(path),
    shown,
    realPath,
    kindOf,
    text: (path) => readText(path, shown(path)),
    optionalText: (path) => optionalText(path),
    files: (folder) => filesIn(project, folder),
    folders: {
      work: cwd,
      project: realPath(exists ? dirname(meow) : cwd),
      templates: searchedFolders(project),
      prompts: [meow, shared, join(packageFolder(), 'lib')].map((folder) => join(folder, 'prompts')),
      library: packageFolder(),
    },
  };
}

/** Folders that are searched for names that are not paths. */
export function searchedFolders({ meow, shared }: Project): readonly string[] {
  return [...new Set([meow, shared])].flatMap((folder) => [join(folder, 'templates'), join(folder, 'workflows')]);
}

function filesIn(project: Project, folder: string): readonly FolderFile[] {
  return readdirSync(folder)
    .toSorted()
    .flatMap((name) => {
      const path = join(folder, name);
      const stats = statSync(path, { throwIfNoEntry: false });
      if (stats?.isFile() !== true) return [];
      const isExecutable = (stats.mode & 0o111) !== 0;
      return [{ name, path, isExecutable, bytes: stats.size, text: () => textOrNull(path, shownPath(project, path)) }];
    });
}

function textOrNull(path: string, file: string): string | null {
  const bytes = readBytes(path, file);
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString('utf8') : null;
}

function optionalText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EISDIR')) return null;
    throw error;
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    // Reading it reports why it cannot be read.
    if (isSystemError(error)) return path;
    throw error;
  }
}

/** What may not be looked at counts as a file: reading it says why. */
export function kindOf(path: string): 'file' | 'folder' | null {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (isErrno(error, 'EACCES')) return 'file';
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP')) return null;
    if (error instanceof TypeError) return null; // a NUL byte in the path
    throw error;
  }
}

/** Where `bin/` and `lib/` are, seen from the bundle in `dist/` or from this source. */
export function packageFolder(): string {
  const [bundled, source] = ['..', '../..'].map((up) => resolve(import.meta.dirname, up)) as [string, string];
  return kindOf(join(bundled, 'bin')) === null ? source : bundled;
}

/** More than this is not even looked at; from 10 MB on it is the language that refuses, with a place. */
const BYTES_MAX = 100_000_000;

/** The whole text of a file, which must be UTF-8. */
export function readText(path: string, file: string): string {
  const bytes = readBytes(path, file);
  if (!isUtf8(bytes)) throw notUtf8(bytes, path, file);
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

function readBytes(path: string, file: string): Buffer {
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) throw new UsageError(`${file} is a folder, and a file is needed`, 'name the file in it');
    if (!stats.isFile()) throw new UsageError(`${file} is not a regular file`, 'write the workflow to a file');
    if (stats.size > BYTES_MAX) {
      const size = `${Math.round(stats.size / 1_000_000)} MB`;
      throw new InvalidWorkflow(`${file} has ${size}, far more than the 10 MB that are read`, 'is it the right file?');
    }
    return readFileSync(path);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new UsageError(`cannot read ${file} (${error.code})`, cureOf(error.code ?? '', file));
  }
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
