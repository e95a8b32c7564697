// One at a time, among all engines that use a server. Before 3.7 tmux falls, with all that it holds, when it has news for
// clients in control mode while one of them is just introducing itself: so while one of us connects, no other makes or
// ends sessions, which is news. (What agents and people do meanwhile cannot be helped; the moment is short.)
//
// A turn is a name in the system's abstract namespace of sockets, which is given back by whoever ends, however it ends.
// Only Linux has that, and elsewhere there are no turns; nor are they waited for longer than a moment.

import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { isErrno } from '../../../sys/errno.ts';

/** Far longer than anything takes that is done in turn. */
const PATIENCE_MS = 5_000;

export async function withConnectMutex<T>(what: string, act: () => Promise<T>): Promise<T> {
  if (process.platform !== 'linux') return act();
  const hash = createHash('sha256').update(what).digest('hex').slice(0, 32);
  const turn = await takeTurn(`\0meow-${process.getuid?.() ?? 0}-${hash}`);
  try {
    return await act();
  } finally {
    turn?.end();
  }
}

interface Turn {
  end(): void;
}

/** Null where somebody does not end theirs, or the system has none for us. */
async function takeTurn(name: string): Promise<Turn | null> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const turn = await tryTurn(name);
    const left = deadline - Date.now();
    if (turn !== 'taken' || left <= 0) return turn === 'taken' ? null : turn;
    await endOfTurn(name, left);
  }
}

function tryTurn(name: string): Promise<Turn | 'taken' | null> {
  return new Promise((resolve) => {
    const waiting = new Set<Socket>();
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('error', () => undefined); // who waits no longer need not be told
      socket.on('close', () => waiting.delete(socket));
    });
    const end = (): void => {
      server.close();
      for (const socket of waiting) socket.destroy();
    };
    server.once('error', (error) => resolve(isErrno(error, 'EADDRINUSE') ? 'taken' : null));
    server.listen(name, () => resolve({ end }));
    // Whoever has a turn is kept from ending by what is done in it.
    server.unref();
  });
}

/** It may have been over before we could ask. */
const PAUSE_MS = 5;

function endOfTurn(name: string, timeoutMs: number): Promise<void> {
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
