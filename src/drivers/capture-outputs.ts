// Captures the outputs of a command that has ended.
//
// Bytes that are not UTF-8 become U+FFFD. White space is trimmed at both ends of standard output and error; a file that is
// captured as text is not changed. An output over 1 MB does not go into the journal: a file holds it, durable before the
// command is answered, and the value names the file. JSON is parsed only to validate it.

import type { RunFiles } from '../engine/ports.ts';
import { closeSync, createReadStream, createWriteStream, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { constants, copyFile, open, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Json } from '../base/json.ts';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { Failure } from '../ir/failure.ts';
import type { Capture, Outputs, ValueType } from '../ir/output.ts';
import { coerce, storedOutputValue } from '../ir/output.ts';
import type { FilledText } from '../ir/text.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { fileName } from './step-folder.ts';
import { makeFolder, openPrivate } from '../sys/private-file.ts';
import type { StepFolder } from './step-folder.ts';
import { resolveText } from './resolve-text.ts';

export interface Captured {
  readonly outputs: Outputs;
  /** Names of the outputs that are stored in files. */
  readonly kept: readonly string[];
  /** Problems of the other outputs; the first determines the kind of the failure. */
  readonly problems: readonly Problem[];
}

export interface Problem {
  readonly kind: Extract<Failure['kind'], 'output-missing' | 'output-invalid'>;
  readonly message: string;
}

/** Where a command ran, and how it ended. */
export interface Left {
  readonly files: RunFiles;
  readonly folder: StepFolder;
  readonly cwd: string;
  readonly status: number;
}

export async function capture(captures: readonly Capture<FilledText>[], left: Left): Promise<Captured> {
  const outputs: [string, Json][] = [];
  const kept: string[] = [];
  const problems: Problem[] = [];
  for (const one of captures) {
    // One at a time: each may need a large file in memory.
    const taken = await take(one, left);
    if (!taken.ok) {
      problems.push({ ...taken.error, message: `output ${one.name}: ${taken.error.message}` });
    } else if (taken.value !== null) {
      outputs.push([one.name, taken.value.value]);
      if (taken.value.inFile) kept.push(one.name);
    }
  }
  return { outputs: Object.fromEntries(outputs), kept, problems };
}

/** The end of stderr, or of stdout if stderr is empty; null if both are. */
export function tail(folder: StepFolder): string | null {
  return tailOf(join(folder.path, 'stderr')) ?? tailOf(join(folder.path, 'stdout'));
}

/** Larger outputs stay in files. */
const LOADED_BYTES_MAX = 1_000_000;
/** Larger JSON is not even validated. */
const CHECKED_BYTES_MAX = 128_000_000;
const TAIL_BYTES = 4_096;
const CHUNK_BYTES = 65_536;

interface Taken {
  readonly value: Json;
  readonly inFile: boolean;
}

/** Null if absent and optional. */
async function take(one: Capture<FilledText>, left: Left): Promise<Result<Taken | null, Problem>> {
  switch (one.from.kind) {
    case 'exit-code':
      return one.type === 'any' ? ok({ value: left.status, inFile: false }) : typed(String(left.status), one.type);
    case 'stdout':
    case 'stderr':
      return takeFile({ path: join(left.folder.path, one.from.kind), trims: true }, one, left);
    case 'file': {
      const written = resolveText(one.from.path, left.files);
      if (!written.ok) return missing(written.error);
      if (written.value === '' || written.value.includes('\0'))
        return missing('the path of its file is empty or has a NUL byte');
      const trims = one.type !== 'any' && one.type !== 'string';
      return takeFile({ path: resolve(left.cwd, written.value), trims }, one, left);
    }
  }
}

async function takeFile(
  { path, trims }: { readonly path: string; readonly trims: boolean },
  one: Capture<FilledText>,
  left: Left,
): Promise<Result<Taken | null, Problem>> {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) return missing(`${path} is not a regular file`);
    if (stat.size > LOADED_BYTES_MAX) {
      const problem = misfitOfLarge(path, stat.size, one.type);
      return problem === null ? ok({ value: await keep(path, trims, one.name, left), inFile: true }) : invalid(problem);
    }
    const bytes = readFileSync(path);
    return typed((trims ? trimmed(bytes) : bytes).toString('utf8'), one.type);
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return one.required ? missing(`there is no file ${path}`) : ok(null);
    if (isErrno(error, ...REFUSED, ...EXHAUSTED)) return missing(`${path} could not be read or kept (${error.code})`);
    throw error;
  }
}

function typed(text: string, type: ValueType): Result<Taken, Problem> {
  const value = coerce(text, type);
  return value.ok ? ok({ value: value.value, inFile: false }) : invalid(value.error);
}

/** Null if a value of this size can have the type. */
function misfitOfLarge(path: string, size: number, type: ValueType): string | null {
  if (type === 'any' || type === 'string') return null;
  if (type !== 'json') return `expected ${type}, got ${size} bytes`;
  if (size > CHECKED_BYTES_MAX) return `expected JSON, got ${size} bytes: too many to be checked; leave its type out`;
  const value = coerce(readFileSync(path, 'utf8'), type);
  return value.ok ? null : value.error;
}

async function keep(path: string, trims: boolean, name: string, { files, folder }: Left): Promise<Json> {
  const outputs = join(folder.path, 'outputs');
  const kept = join(outputs, fileName(name));
  makeFolder(outputs);
  // A crash may have left an incomplete file.
  await rm(kept, { force: true });
  // Created first, so that it is private before it has contents.
  closeSync(openPrivate(kept));
  if (!trims) {
    await copyFile(path, kept, constants.COPYFILE_FICLONE);
  } else {
    const { start, end } = withoutWhiteSpace(path);
    if (end > start) await pipeline(createReadStream(path, { start, end: end - 1 }), createWriteStream(kept));
  }
  const file = await open(kept, 'r');
  try {
    // A copy inherits the mode of its source.
    await file.chmod(0o600);
    await file.sync();
  } finally {
    await file.close();
  }
  for (let at = join(folder.inRun, 'outputs'); at !== '.'; at = dirname(at)) await syncFolder(files.localPath(at));
  await syncFolder(files.localPath(''));
  return storedOutputValue(join(folder.inRun, 'outputs', fileName(name)), statSync(kept).size);
}

/** Makes the entries of a folder durable, if the file system can. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } catch (error) {
    if (!isErrno(error, 'EINVAL', 'ENOTSUP')) throw error;
  } finally {
    await folder.close();
  }
}

/** The range of a file without white space at its ends; reads only the ends. */
function withoutWhiteSpace(path: string): { readonly start: number; readonly end: number } {
  const file = openSync(path, 'r');
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let end = statSync(path).size;
    let start = 0;
    for (let found = false; !found && start < end; ) {
      const length = readSync(file, chunk, 0, Math.min(CHUNK_BYTES, end - start), start);
      const at = chunk.subarray(0, length).findIndex((byte) => !isWhite(byte));
      found = at !== -1 || length === 0;
      start += at === -1 ? length : at;
    }
    for (let found = false; !found && end > start; ) {
      const from = Math.max(start, end - CHUNK_BYTES);
      const length = readSync(file, chunk, 0, end - from, from);
      const at = chunk.subarray(0, length).findLastIndex((byte) => !isWhite(byte));
      found = at !== -1 || length === 0;
      end = from + at + 1;
    }
    return { start, end };
  } finally {
    closeSync(file);
  }
}

function trimmed(bytes: Buffer): Buffer {
  const start = bytes.findIndex((byte) => !isWhite(byte));
  return start === -1 ? bytes.subarray(0, 0) : bytes.subarray(start, bytes.findLastIndex((byte) => !isWhite(byte)) + 1);
}

/** Space, and tab to carriage return. */
function isWhite(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

function tailOf(path: string): string | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return null;
    throw error;
  }
  try {
    const { size } = statSync(path);
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const length = readSync(file, bytes, 0, bytes.length, size - bytes.length);
    // The cut may split a character.
    const cut = size > bytes.length ? bytes.findIndex((byte) => (byte & 0xc0) !== 0x80) : 0;
    const text = bytes.subarray(Math.max(0, cut), length).toString('utf8').trim();
    return text === '' ? null : text;
  } finally {
    closeSync(file);
  }
}

function missing(message: string): { readonly ok: false; readonly error: Problem } {
  return err({ kind: 'output-missing', message });
}

function invalid(message: string): { readonly ok: false; readonly error: Problem } {
  return err({ kind: 'output-invalid', message });
}
