// The only place that prints. A reader that has gone away (`meow run … | head -1`) is no reason to stop working: what it
// would have read is dropped. Nor is a file that takes no more, but somebody will read that: it is said, and it is a failure
// of a command that is there to print. To write takes longer than to run a small step, so what is said in quick succession
// is written together, a moment later; nothing of it is lost when the program ends, and stderr never overtakes stdout.

import { fstatSync, writeSync } from 'node:fs';

import { isErrno } from '../sys/errno.ts';
import { describeErrno } from '../app/errors.ts';

/** To stdout, as it is. */
export function print(text: string): void {
  if (unwritten === '') {
    // The program does not wait for it: at its end there is nothing more to come.
    writing = setTimeout(writeAll, Math.max(0, lastWriteAt + QUICK_MS - performance.now())).unref();
  }
  unwritten += text;
}

/** The same, at once: there may be no later moment. */
export function printNow(text: string): void {
  print(text);
  writeAll();
}

/** To stdout, with the line's end. */
export function say(line = ''): void {
  print(`${line}\n`);
}

/** To stderr, with the line's end. */
export function complain(line: string): void {
  writeAll();
  write(process.stderr, `${line}\n`);
}

/** Bytes of others, as they are. Resolves when they have been handed over, or nobody takes them. */
export function pass(to: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> {
  writeAll();
  return new Promise((resolve) => write(process[to], bytes, resolve));
}

/** On stderr, for a run that a command looked for something in and could not read. */
export function complainUnreadable(id: string): void {
  complain(`run ${id} is unreadable (see why: meow status ${id})`);
}

export function sayJson(value: unknown): void {
  say(JSON.stringify(value));
}

/** Whether nobody takes any more what is written to stdout. */
export function isDeaf(): boolean {
  return deaf.has(process.stdout);
}

/** From here on what is printed only accompanies a work, whose end is the same whether it can be written or not. */
export function accompanyWork(): void {
  accompanies = true;
}

/** Whether something was to be kept in a file, and could not be; not where it only accompanied a work. */
export function isLost(): boolean {
  return lost && !accompanies;
}

/** Resolves when all that was said has been handed over. */
export async function flushed(): Promise<void> {
  writeAll();
  for (const [stream, kind] of kinds) {
    if (kind === 'stream' && !deaf.has(stream)) {
      await new Promise<void>((resolve) => stream.write('', () => resolve()));
    }
  }
}

type Output = NodeJS.WriteStream & { readonly fd: 1 | 2 };

const QUICK_MS = 20;
const kinds = new Map<Output, 'file' | 'stream'>();
const deaf = new Set<Output>();
let lost = false;
let accompanies = false;
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
  if (deaf.has(stream)) return done();
  if (kind === 'stream') {
    stream.write(what, () => done());
    return;
  }
  try {
    writeWhole(stream.fd, Buffer.from(what));
  } catch (error) {
    refused(stream, error);
  }
  done();
}

/** A disk that is about to be full takes a part, and Node's own stream takes that for the whole. */
function writeWhole(fd: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
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
  if (deaf.has(stream)) return;
  deaf.add(stream);
  // EIO: the terminal is gone.
  if (isErrno(error, 'EPIPE', 'EIO', 'ECONNRESET', 'ERR_STREAM_DESTROYED')) return;
  if (!isErrno(error, 'ENOSPC', 'EDQUOT', 'EFBIG')) throw error;
  lost = true;
  const comfort = accompanies ? '; the run goes on' : '';
  complain(`meow: what is printed cannot be written: ${describeErrno(error.code)} (${error.code})${comfort}`);
}
