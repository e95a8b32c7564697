// Outputs of commands: the outcome by exit status, the values captured, and stored values as parts of a text.

import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  createWriteStream,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { err, ok, type Result } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import type { RunFiles } from '../engine/ports.ts';
import { type CommandSpec, type Outcome, success, type Success } from '../ir/effect.ts';
import { failure, type Failure, type FailureKind } from '../ir/failure.ts';
import {
  type Capture,
  coerce,
  type Outputs,
  storedFileOf,
  storedOutputValue,
  type StoredFile,
  type ValueType,
} from '../ir/output.ts';
import { quote } from '../ir/quote.ts';
import { type FilledText, plainText } from '../ir/text.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED, tolerate, tolerateAsync } from '../sys/errors.ts';
import { makeFolder, openPrivate, readFileEnd, readUntrustedFile } from '../sys/files.ts';
import { SIGNAL_NAMES } from '../sys/process.ts';
import type { Secrets } from '../sys/secrets.ts';
import { fileName, stepFile, type StepFolder, writeStepFile } from './step-folder.ts';

export function failed(kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(kind, message, more) };
}

/** For a command that exited. */
export async function commandOutcome(spec: CommandSpec<FilledText>, left: Left): Promise<Outcome> {
  const captured = await capture(spec.captures, left);
  const outputs = { exit_code: left.status, outcome: left.status === 0 ? 'true' : 'false', ...captured.outputs };
  const { kept, problems } = captured;
  const fail = (kind: FailureKind, message: string): Outcome =>
    failed(kind, message, { code: left.status, output: tail(left.folder, left.secrets), outputs, kept });
  const broken = brokenBy(left.status, spec);
  if (broken !== null) return fail(broken, `the command ${endedWith(left.status)}`);
  const [problem] = problems;
  if (problem !== undefined) return fail(problem.kind, problems.map(({ message }) => message).join('; '));
  const route = spec.verdict === 'condition' ? (left.status === 0 ? 'true' : 'false') : null;
  return success(outputs, { kept, route });
}

/** For a command that was stopped or lost: it has no status, but may have output. */
export async function unfinishedOutcome(
  kind: FailureKind,
  message: string,
  spec: CommandSpec<FilledText>,
  left: Omit<Left, 'status'>,
): Promise<Outcome> {
  const captures = spec.captures.filter(({ from }) => from.kind !== 'exit-code');
  const { outputs, kept } = await capture(captures, { ...left, status: 0 });
  return failed(kind, message, { output: tail(left.folder, left.secrets), outputs, kept });
}

function brokenBy(status: number, { verdict, errors }: CommandSpec<FilledText>): FailureKind | null {
  if (status === 0) return null;
  const bySignal = signalOf(status) !== null;
  if (verdict === 'success') return bySignal ? 'signal' : 'exit-nonzero';
  return bySignal || status === 126 || status === 127 || errors.includes(status) ? 'condition-error' : null;
}

export function endedWith(status: number): string {
  const signal = signalOf(status);
  if (signal !== null) return `ended with status ${status}, as one killed by ${signal} does`;
  if (status === 127) return 'exited with status 127: a program was not found';
  if (status === 126) return 'exited with status 126: a program could not be executed';
  return `exited with status ${status}`;
}

/** A shell exits with 128 + N if its command was killed by signal N. */
function signalOf(status: number): string | null {
  return status > 128 ? (SIGNAL_NAMES.get(status - 128) ?? null) : null;
}

// Captures the outputs of a command that has ended.
//
// Bytes that are not UTF-8 become U+FFFD. White space is trimmed at both ends, unless the capture of a text says otherwise.
// An output over 1 MB does not go into the journal: a file holds it, durable before the command is answered, and the value
// names the file. JSON is parsed only to validate it.

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
  /** Of the run: what is stored or cut contains none of them. */
  readonly secrets?: Secrets | undefined;
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

/** A value as an output. If it is too large for the journal, it is written to `file` (default: `name`), and stored. */
export async function captureValue(
  name: string,
  value: Json,
  { file = name, ...place }: Pick<Left, 'files' | 'folder' | 'secrets'> & { readonly file?: string },
): Promise<Captured> {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (Buffer.byteLength(text) <= LOADED_BYTES_MAX) return { outputs: { [name]: value }, kept: [], problems: [] };
  const { folder } = place;
  writeStepFile(folder, file, text);
  const path = stepFile(folder, file);
  const type = typeof value === 'string' ? 'string' : 'json';
  const one = { name, from: { kind: 'file', path }, type, required: true } as const;
  return capture([one], { ...place, cwd: dirname(path), status: 0 });
}

/** The end of stderr, or of stdout if stderr is empty; null if both are. */
export function tail(folder: StepFolder, secrets?: Secrets): string | null {
  const ends = ['stderr', 'stdout'].map((name) => fileEnd(stepFile(folder, name), TAIL_BYTES, secrets));
  return ends.find((text) => text !== '') ?? null;
}

/** The trimmed end of a file; empty if it cannot be read. */
export function fileEnd(path: string, bytesMax: number, secrets?: Secrets): string {
  return tolerate([...ABSENT, ...REFUSED], '', () => {
    const { size } = lstatSync(path);
    // Most are empty.
    if (size > bytesMax && secrets !== undefined)
      return wholeEnd(readFileEnd(path, bytesMax + BEFORE), bytesMax, secrets);
    const text = size === 0 ? '' : readFileEnd(path, bytesMax);
    // The cut may split a character.
    return (size > bytesMax ? text.replace(/^\uFFFD+/, '') : text).trim();
  });
}

/** A cut does not go through a secret (secrets/3). */
function wholeEnd(text: string, bytesMax: number, secrets: Secrets): string {
  return text.slice(secrets.wholeFrom(text, Math.max(0, text.length - bytesMax))).trim();
}

/** More than a secret has, except for keys, which have several lines. */
const BEFORE = 20_200;
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
  const isText = one.type === 'any' || one.type === 'string';
  const trims = (usually: boolean): boolean => !isText || (one.trim ?? usually);
  switch (one.from.kind) {
    case 'exit-code':
      return one.type === 'any' ? ok({ value: left.status, inFile: false }) : typed(String(left.status), one.type);
    case 'stdout':
    case 'stderr':
      return takeFile({ path: stepFile(left.folder, one.from.kind), trims: trims(true), isOurs: true }, one, left);
    case 'file': {
      const written = resolveText(one.from.path, left.files);
      if (!written.ok) return missing(written.error);
      if (written.value === '' || written.value.includes('\0'))
        return missing('the path of its file is empty or has a NUL byte');
      return takeFile({ path: resolve(left.cwd, written.value), trims: trims(false), isOurs: false }, one, left);
    }
  }
}

async function takeFile(
  { path, trims, isOurs }: { readonly path: string; readonly trims: boolean; readonly isOurs: boolean },
  one: Capture<FilledText>,
  left: Left,
): Promise<Result<Taken | null, Problem>> {
  try {
    // Links are followed for files of the user, not for ours.
    const stat = isOurs ? lstatSync(path) : statSync(path);
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

async function keep(path: string, trims: boolean, name: string, { files, folder, secrets }: Left): Promise<Json> {
  const inRun = `${folder.inRun}outputs/${fileName(name)}`;
  const kept = files.localPath(inRun);
  makeFolder(dirname(kept));
  // A crash may have left an incomplete file.
  await rm(kept, { force: true });
  // Created first, so that it is private before it has contents.
  closeSync(openPrivate(kept));
  const { start, end } = trims ? withoutWhiteSpace(path) : { start: 0, end: Infinity };
  const hash = createHash('sha256');
  const masks = secrets?.maskingStream() ?? null;
  const hashed = new Transform({
    transform(chunk: Buffer, _, pass) {
      const masked = masks?.push(chunk) ?? chunk;
      hash.update(masked);
      pass(null, masked);
    },
    flush(pass) {
      const rest = masks?.end() ?? Buffer.alloc(0);
      hash.update(rest);
      pass(null, rest);
    },
  });
  if (end > start) await pipeline(createReadStream(path, { start, end: end - 1 }), hashed, createWriteStream(kept));
  const file = await open(kept, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  for (let at = dirname(inRun); at !== '.'; at = dirname(at)) await syncFolder(files.localPath(at));
  await syncFolder(files.localPath(''));
  return storedOutputValue({ file: inRun, sha256: hash.digest('hex') }, statSync(kept).size);
}

/** Makes the entries of a folder durable, if the file system can. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await tolerateAsync(['EINVAL', 'ENOTSUP'], undefined, folder.sync());
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

function missing(message: string): { readonly ok: false; readonly error: Problem } {
  return err({ kind: 'output-missing', message });
}

function invalid(message: string): { readonly ok: false; readonly error: Problem } {
  return err({ kind: 'output-invalid', message });
}

/**
 * A filled text made whole: the pieces that stayed in files are read and quoted as their places demand. Only outputs
 * that this run has kept are read, whatever a journal names: no other file of the machine can be made a part of a
 * command. An error is a sentence.
 */
export function resolveText(text: FilledText, files: RunFiles): Result<string, string> {
  if (typeof text === 'string') return ok(text);
  const pieces: string[] = [];
  for (const piece of text) {
    if (typeof piece === 'string') {
      pieces.push(piece);
      continue;
    }
    const read = 'secret' in piece ? ok(plainText(piece.secret)) : storedText(piece, files);
    if (!read.ok) return read;
    const quoted = quote(read.value, piece.quote);
    if (!quoted.ok) return err(`${'secret' in piece ? 'a value' : `the contents of ${piece.file}`}: ${quoted.error}`);
    pieces.push(quoted.value);
  }
  return ok(pieces.join(''));
}

/** The same for several texts, by their names. */
export function resolveTexts<K extends string>(
  texts: Readonly<Record<K, FilledText>>,
  files: RunFiles,
): Result<Readonly<Record<K, string>>, string> {
  const resolved: (readonly [string, string])[] = [];
  for (const [name, text] of Object.entries<FilledText>(texts)) {
    const one = resolveText(text, files);
    if (!one.ok) return one;
    resolved.push([name, one.value]);
  }
  return ok(Object.fromEntries(resolved) as Record<K, string>);
}

/** The answer of a turn, its output `result`, also if it is stored in a file. An error is a sentence. */
export function answerText(
  { outputs, kept }: Pick<Success, 'outputs' | 'kept'>,
  files: RunFiles,
): Result<string, string> {
  const { result } = outputs;
  if (!kept.includes('result')) return typeof result === 'string' ? ok(result) : err('it has no answer');
  const file = storedFileOf(result ?? null);
  return file === null ? err('its answer was not kept') : storedText(file, files);
}

const PIECE_BYTES_MAX = 128 * 1024 * 1024;

const KEPT = /^steps\/[^/]+[/.]\d+[/.]outputs\/[^/]+$/;

/**
 * The contents of a stored output, if they are still those that the journal describes. Only files in which this run has
 * stored outputs are read, whatever a journal names. An error is a sentence.
 */
export function storedText({ file, sha256 }: StoredFile, files: RunFiles): Result<string, string> {
  // Not by `localPath`: the name may be wrong, and is checked below.
  const runFolder = files.localPath('');
  const path = join(runFolder, file);
  try {
    const inRun = relative(realpathSync(runFolder), realpathSync(path));
    if (!KEPT.test(inRun)) return err(`${path} is not a stored output of this run`);
    const read = readUntrustedFile(path, PIECE_BYTES_MAX, 'latin1');
    if (read === null) return err(`${path} is not a regular file`);
    if (read.text === null) return err(`${path} is too large to be put into a text; use the file itself`);
    const bytes = Buffer.from(read.text, 'latin1');
    const isSame = sha256 === undefined || createHash('sha256').update(bytes).digest('hex') === sha256;
    return isSame ? ok(bytes.toString('utf8')) : err(`${path} has changed since its step left it there`);
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return err(`${path} cannot be read (${error.code})`);
    throw error;
  }
}
