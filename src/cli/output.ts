// The only file that prints. If the reader of stdout is gone (`meow run … | head -1`), output is dropped and the command
// continues. If a file cannot take more output, the command warns and fails, unless its output only accompanies a run.
// Writing takes longer than a small step, so lines in quick succession are written together a moment later. No output is
// lost when the program exits, and stderr never overtakes stdout.

import { fstatSync, writeSync } from 'node:fs';

import { DiskFailure, InvalidWorkflow } from '../app/errors.ts';
import { UsageError } from '../base/errors.ts';
import { cureOfErrno, describeErrno, type ErrnoError, EXHAUSTED, isErrno } from '../sys/errors.ts';

export function print(text: string): void {
  if (unwritten === '') {
    // The timer does not keep the program alive: what is left is written when it exits.
    writing = setTimeout(writeAll, Math.max(0, lastWriteAt + QUICK_MS - performance.now())).unref();
  }
  unwritten += text;
}

export function printNow(text: string): void {
  print(text);
  writeAll();
}

export function printLine(line = ''): void {
  print(`${line}\n`);
}

/** Only a terminal has a bell. */
export function ringBell(): void {
  if (process.stderr.isTTY) process.stderr.write('\x07');
}

export function warn(line: string): void {
  writeAll();
  write(process.stderr, `${line}\n`);
}

/** Writes bytes unchanged. Resolves when they are written or dropped. */
export function pass(to: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> {
  writeAll();
  return new Promise((resolve) => write(process[to], bytes, resolve));
}

export function warnUnreadable(id: string): void {
  warn(`run ${id} is unreadable (see why: meow status ${id})`);
}

/** Prints the result of a command as indented JSON; returns the exit code. */
export function printResult(value: unknown): number {
  printLine(JSON.stringify(value, null, 2));
  return EXIT.done;
}

export function printLines(lines: Iterable<string>): void {
  for (const line of lines) printLine(line);
}

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value));
}

/** Whether stdout is closed: output is dropped. */
export function isOutputClosed(): boolean {
  return closed.has(process.stdout);
}

/** From now on the output only accompanies a run; losing it does not change the exit code. */
export function tolerateLostOutput(): void {
  toleratesLoss = true;
}

/** Whether output for a file was lost, unless that is tolerated. */
export function hasLostOutput(): boolean {
  return lost && !toleratesLoss;
}

export async function flushed(): Promise<void> {
  writeAll();
  for (const [stream, kind] of kinds) {
    if (kind === 'stream' && !closed.has(stream)) {
      await new Promise<void>((resolve) => stream.write('', () => resolve()));
    }
  }
}

type Output = NodeJS.WriteStream & { readonly fd: 1 | 2 };

const QUICK_MS = 20;
const kinds = new Map<Output, 'file' | 'stream'>();
const closed = new Set<Output>();
let lost = false;
let toleratesLoss = false;
let unwritten = '';
let lastWriteAt = -Infinity;
let writing: NodeJS.Timeout | undefined;

process.on('beforeExit', writeAll);
process.once('exit', writeAll);

function writeAll(): void {
  if (unwritten === '') return;
  clearTimeout(writing);
  const text = unwritten;
  unwritten = '';
  lastWriteAt = performance.now();
  write(process.stdout, text);
}

function write(stream: Output, what: string | Uint8Array, done: () => void = () => {}): void {
  const kind = kindOf(stream);
  if (closed.has(stream)) return done();
  if (kind === 'stream') {
    stream.write(what, () => done());
    return;
  }
  const bytes = Buffer.from(what);
  try {
    // A disk that is almost full writes only a part, which Node's stream would take for the whole.
    for (let written = 0; written < bytes.length; ) written += writeSync(stream.fd, bytes, written);
  } catch (error) {
    refused(stream, error);
  }
  done();
}

function kindOf(stream: Output): 'file' | 'stream' {
  const known = kinds.get(stream);
  if (known !== undefined) return known;
  const stats = fstatSync(stream.fd);
  const kind = stats.isFile() || (stats.isCharacterDevice() && !stream.isTTY) ? 'file' : 'stream';
  kinds.set(stream, kind);
  stream.on('error', (error) => refused(stream, error));
  return kind;
}

function refused(stream: Output, error: unknown): void {
  if (closed.has(stream)) return;
  closed.add(stream);
  // EIO: the terminal was closed.
  if (isErrno(error, 'EPIPE', 'EIO', 'ECONNRESET', 'ERR_STREAM_DESTROYED')) return;
  if (!isErrno(error, 'ENOSPC', 'EDQUOT', 'EFBIG')) throw error;
  lost = true;
  const note = toleratesLoss ? '; the run continues' : '';
  warn(`meow: cannot write the output: ${describeErrno(error.code)} (${error.code})${note}`);
}

// Exit codes, and the messages for errors. Both depend on whose fault the error is.

declare const MEOW_VERSION: string;

export const EXIT = {
  done: 0,
  /** The run failed, or the workflow is invalid. */
  failed: 1,
  usage: 2,
  /** Paused, held, or waiting for a person. */
  paused: 3,
  bug: 70,
} as const;

/** Prints the error and its hint; returns the exit code. */
export function report(error: unknown): number {
  if (error instanceof UsageError || error instanceof InvalidWorkflow) {
    warn(`meow: ${error.message}`);
    if (error.hint !== null) warn(`  ${error.hint}`);
    if (error instanceof DiskFailure) return EXIT.paused;
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
  if (isErrno(error, ...EXHAUSTED, 'ENOSPC', 'EDQUOT')) return reportShortage(error);
  reportBug(error);
  return EXIT.bug;
}

/** Reports an error that nobody caught, and exits once everything is written. */
export function exitOnUncaughtError(): void {
  process.on('uncaughtException', (error) => {
    const status = report(error);
    void flushed().then(() => process.exit(status));
  });
}

export function workingOn(runId: string | null): void {
  heldRun = runId;
}

let heldRun: string | null = null;

/** The disk is full, or the system lacks another resource. */
function reportShortage({ code, message }: ErrnoError): number {
  const why = `${describeErrno(code)} (${message})`;
  warn(heldRun === null ? `meow: ${why}` : `meow: run ${heldRun} is held: ${why}`);
  warn(`  ${cureOfErrno(code)}`);
  if (heldRun !== null)
    warn(`  its journal is complete, and nothing more is started; resume it: meow resume ${heldRun}`);
  return heldRun === null ? EXIT.usage : EXIT.paused;
}

function reportBug(error: unknown): void {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  warn('meow: this is a bug in meow, not in your workflow');
  if (heldRun !== null) {
    warn(`  run ${heldRun} is held: its journal is complete, and nothing more is started`);
    warn(`  resume it: meow resume ${heldRun}`);
  }
  const about = `meow ${MEOW_VERSION}, node ${process.version}, ${process.platform}-${process.arch}`;
  warn('  please report it with the lines below and what you did:');
  warn(`  ${about}${heldRun === null ? '' : `, run ${heldRun}`}`);
  warn(what.replaceAll(/^/gm, '  '));
}
