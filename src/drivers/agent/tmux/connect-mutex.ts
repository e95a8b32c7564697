// A mutex among all engines that use a tmux server. tmux before 3.7 crashes if it must notify control-mode clients
// while another one is connecting: so while one engine connects, no other creates or destroys sessions. (Actions of
// agents and people cannot be prevented; the window is short.)
//
// The mutex is a name in the abstract socket namespace, which the system frees when its holder exits. Only Linux has
// it; elsewhere there is no mutex. Nobody waits for it longer than a moment.

import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { isErrno } from '../../../sys/errno.ts';

/** Far longer than any protected action takes. */
const TIMEOUT_MS = 5_000;

export async function withConnectMutex<T>(what: string, act: () => Promise<T>): Promise<T> {
  if (process.platform !== 'linux') return act();
  const hash = createHash('sha256').update(what).digest('hex').slice(0, 32);
  const mutex = await acquire(`\0meow-${process.getuid?.() ?? 0}-${hash}`);
  try {
    return await act();
  } finally {
    mutex?.release();
  }
}

interface Mutex {
  release(): void;
}

/** Null after the time limit, or if the system has none. */
async function acquire(name: string): Promise<Mutex | null> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    const mutex = await tryAcquire(name);
    const left = deadline - Date.now();
    if (mutex !== 'taken' || left <= 0) return mutex === 'taken' ? null : mutex;
    await untilReleased(name, left);
  }
}

function tryAcquire(name: string): Promise<Mutex | 'taken' | null> {
  return new Promise((resolve) => {
    const waiting = new Set<Socket>();
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('error', () => undefined); // the wait ended already
      socket.on('close', () => waiting.delete(socket));
    });
    const release = (): void => {
      server.close();
      for (const socket of waiting) socket.destroy();
    };
    server.once('error', (error) => resolve(isErrno(error, 'EADDRINUSE') ? 'taken' : null));
    server.listen(name, () => resolve({ release }));
    // The protected action itself keeps the process alive.
    server.unref();
  });
}

/** The mutex may have been freed before we asked. */
const PAUSE_MS = 5;

function untilReleased(name: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(name);
    let timer = setTimeout(() => socket.destroy(), timeoutMs);
    socket.on('error', () => undefined); // `close` follows
    socket.on('close', (isFailed) => {
      clearTimeout(timer);
      if (isFailed) timer = setTimeout(resolve, PAUSE_MS);
      else resolve();
    });
    socket.resume();
  });
}
