// The only place that prints. A reader that has gone away (`meow run … | head -1`) is no reason to stop working: what it
// would have read is dropped. To write takes longer than to run a small step, so what is said in quick succession is
// written together, a moment later; nothing of it is lost when the program ends, and stderr never overtakes stdout.

import type { Writable } from 'node:stream';

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

export function sayJson(value: unknown): void {
  say(JSON.stringify(value));
}

/** Whether the reader of stdout has gone away. */
export function isDeaf(): boolean {
  return deaf.has(process.stdout);
}

/** Resolves when all that was said has been handed over. */
export async function flushed(): Promise<void> {
  writeAll();
  for (const stream of [process.stdout, process.stderr]) {
    if (!deaf.has(stream)) await new Promise<void>((resolve) => stream.write('', () => resolve()));
  }
}

const QUICK_MS = 20;
const listened = new Set<Writable>();
const deaf = new Set<Writable>();
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

function write(stream: Writable, text: string): void {
  listen(stream);
  if (!deaf.has(stream)) stream.write(text);
}

function listen(stream: Writable): void {
  if (listened.has(stream)) return;
  listened.add(stream);
  stream.on('error', (error: NodeJS.ErrnoException) => {
    deaf.add(stream);
    // EIO: the terminal is gone. ENOSPC: stdout is a file on a full disk; the journal has its own voice for that.
    if (!['EPIPE', 'EIO', 'ENOSPC', 'ECONNRESET', 'ERR_STREAM_DESTROYED'].includes(error.code ?? '')) throw error;
  });
}
