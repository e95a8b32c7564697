// Files of the project: as languages read them, the text of a single file, whether workflows have changed since they were
// compiled, and the configuration.

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

import { present, UsageError } from '../base/errors.ts';
import { type Diagnostic, makeSource } from '../base/source.ts';
import type { Program } from '../ir/program.ts';
import { shellWord } from '../ir/quote.ts';
import { writtenText } from '../ir/text.ts';
import { type Config, DEFAULT_CONFIG, readConfig } from '../languages/config.ts';
import type { FolderFile, SourceReader } from '../languages/language.ts';
import { createReport } from '../languages/report.ts';
import { isErrno, isSystemError, tolerate } from '../sys/errors.ts';
import { type ArchivedPath, Archives } from './archives.ts';
import { InvalidWorkflow } from './errors.ts';
import type { Project } from './project.ts';

/** The file system, as the languages see it. Archives are folders. */
export function projectReader(project: Project, archives = new Archives()): SourceReader {
  const { cwd, meow, shared, exists } = project;
  const shown = (path: string): string => shownPath(project, path);
  const archived = (path: string): ArchivedPath | null => archives.find(path, shown);
  return {
    resolve: (folder, path) => resolve(folder, path),
    folderOf: (path) => dirname(path),
    shown,
    realPath: (path) => archives.realPath(path) ?? realPath(path),
    kindOf(path) {
      const found = archived(path);
      return found === null ? kindOf(path) : found.kind;
    },
    text(path) {
      const found = archived(path);
      const file = found?.archive.files.get(found.inside);
      return file === undefined ? readText(path, shown(path)) : decodeText(file.bytes, path, shown(path));
    },
    optionalText: (path) => tolerate(['ENOENT', 'ENOTDIR', 'EACCES', 'EISDIR'], null, () => readFileSync(path, 'utf8')),
    files(folder) {
      const found = archived(folder);
      return found === null ? filesIn(folder, shown) : filesInArchive(folder, found);
    },
    folders: {
      work: cwd,
      project: realPath(exists ? dirname(meow) : cwd),
      templates: searchedFolders(project),
      prompts: [meow, shared, join(packageFolder(), 'lib')].map((folder) => join(folder, 'prompts')),
      library: packageFolder(),
    },
  };
}

/**
 * Calls `note` with the path and the text of every file that is compiled; the library of meow is left out. Files in
 * archives are left out too: see `Archives`.
 */
export function notingReader(reader: SourceReader, note: (path: string, text: string) => void): SourceReader {
  const library = join(packageFolder(), 'lib/');
  const noted = <T extends string | null>(path: string, text: T): T => {
    if (text !== null && !path.startsWith(library) && kindOf(path) === 'file') note(path, text);
    return text;
  };
  return {
    ...reader,
    text: (path) => noted(path, reader.text(path)),
    files: (folder) => reader.files(folder).map((file) => ({ ...file, text: () => noted(file.path, file.text()) })),
  };
}

const SOURCES = 'sources';

/** The hashes of the files that a Program is compiled from, as an attachment of it. */
export function attachSources(sources: ReadonlyMap<string, string>): Program['attachments'] {
  return { [SOURCES]: JSON.stringify(Object.fromEntries(sources)) };
}

/** The files that a Program was compiled from. Absolute; none for runs of early versions. */
export function sourcePathsOf({ attachments }: Program): readonly string[] {
  return Object.keys(JSON.parse(attachments[SOURCES] ?? '{}') as Readonly<Record<string, string>>);
}

/** The files that differ from what the Program was compiled from, or are gone; those of older runs are unknown. */
export function changedSources({ attachments, blocks }: Program): ChangedSources {
  const recorded = JSON.parse(attachments[SOURCES] ?? '{}') as Readonly<Record<string, string>>;
  const changed = Object.keys(recorded).filter((path) => hashNow(path) !== recorded[path]);
  if (changed.length === 0) return { compiled: [], scripts: [] };
  const acts = Object.values(blocks).flatMap(({ steps }) => steps.map(({ act }) => act));
  const commands = acts.flatMap((act) =>
    act.kind === 'effect' && act.effect.kind === 'command' ? [writtenText(act.effect.script)] : [],
  );
  // Such a command ends with the path of the script, in quotes.
  const isScript = (path: string): boolean =>
    commands.some((command) => command.endsWith(` '${path.replaceAll("'", `'\\''`)}'`));
  return { compiled: changed.filter((path) => !isScript(path)), scripts: changed.filter(isScript) };
}

/** Absolute paths. */
interface ChangedSources {
  /** The run keeps their text. */
  readonly compiled: readonly string[];
  /** The run executes these from their paths. */
  readonly scripts: readonly string[];
}

export function hashOf(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

function hashNow(path: string): string | null {
  try {
    return hashOf(readBytes(path, path));
  } catch (error) {
    if (error instanceof UsageError || error instanceof InvalidWorkflow) return null;
    throw error;
  }
}

/** Folders that are searched for names that are not paths. */
export function searchedFolders({ meow, shared }: Project): readonly string[] {
  return [...new Set([meow, shared])].flatMap((folder) => [join(folder, 'templates'), join(folder, 'workflows')]);
}

function filesIn(folder: string, shown: (path: string) => string): readonly FolderFile[] {
  const names = readdirSync(folder).toSorted();
  return names.flatMap((name) => {
    const path = join(folder, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isFile() !== true) return [];
    const text = (): string | null => textOf(readBytes(path, shown(path)));
    return [{ name, path, isExecutable: (stats.mode & 0o111) !== 0, bytes: stats.size, text }];
  });
}

function filesInArchive(folder: string, { archive, inside }: ArchivedPath): readonly FolderFile[] {
  const prefix = inside === '' ? '' : `${inside}/`;
  const here = [...archive.files].filter(
    ([path]) => path.startsWith(prefix) && !path.slice(prefix.length).includes('/'),
  );
  return here
    .map(([path, { bytes, isExecutable }]) => ({
      name: path.slice(prefix.length),
      path: join(folder, path.slice(prefix.length)),
      isExecutable,
      bytes: bytes.length,
      stored: `${archive.stored}/${path}`,
      text: () => textOf(bytes),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function textOf(bytes: Buffer): string | null {
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString('utf8') : null;
}

/** The path itself if it has none: reading it reports the reason. */
function realPath(path: string): string {
  return tolerate('any', path, () => realpathSync(path));
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

/** Location of `bin/` and `lib/`, relative to the bundle in `dist/` or to this source. */
export function packageFolder(): string {
  const parent = dirname(import.meta.dirname);
  return kindOf(join(parent, 'bin')) === null ? dirname(parent) : parent;
}

/** More than this is not even looked at; from 10 MB on it is the language that refuses, with a place. */
const BYTES_MAX = 100_000_000;

/** The whole text of a file, which must be UTF-8. */
export function readText(path: string, file: string): string {
  return decodeText(readBytes(path, file), path, file);
}

function decodeText(bytes: Buffer, path: string, file: string): string {
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
    throw new UsageError(`cannot read ${file} (${error.code})`, cureOf(error.code, file));
  }
}

/** A file that must be text contains something else. In a workflow it is reported like any other problem. */
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
  // Up to the end of the line, with a replacement character in the place of the wrong byte.
  const end = bytes.indexOf(0x0a, offset);
  const decode = (to?: number): string => new TextDecoder().decode(bytes.subarray(0, to));
  const from = decode(offset).length;
  const report = createReport(makeSource(file, decode(end === -1 ? undefined : end)));
  report.error(
    'not-utf8',
    { from, to: from + 1 },
    `the file is not UTF-8 text (byte ${value} at offset ${offset})`,
    `Save it as UTF-8, for example: iconv -f ${seems} -t UTF-8 ${shellWord(file)} > new; is it the right file?`,
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
  let offset = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1 && isUtf8(bytes.subarray(offset, end)); ) {
    offset = end + 1;
    end = bytes.indexOf(0x0a, offset);
  }
  for (;;) {
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

/** The configuration: that of the user, overridden by that of the project. */
export interface Settings {
  /** Defaults replace a file with errors. */
  readonly config: Config;
  readonly diagnostics: readonly Diagnostic[];
}

export function readSettings(project: Project): Settings {
  let config = DEFAULT_CONFIG;
  const diagnostics: Diagnostic[] = [];
  for (const folder of new Set([project.shared, project.meow])) {
    const path = join(folder, 'config.toml');
    if (!existsSync(path)) continue;
    const file = shownPath(project, path);
    const scope = folder === project.shared ? 'user' : 'project';
    const read = readConfig({ file, text: readText(path, file), base: config, scope });
    diagnostics.push(...read.diagnostics);
    config = read.config ?? config;
  }
  return { config, diagnostics };
}
