// Where a run is talked to: its socket and its inbox. Both are derived from the run, so that an engine that takes it up
// again is found where the last one was. Neither is ever a name that somebody else could guess and take first: the run's
// folder is private, and where its path is too long for a socket, the folder in its place has the run's random mark in its
// name.

import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { UsageError } from '../base/usage-error.ts';
import { isErrno } from '../sys/errno.ts';

/** Systems allow 103 or 107. */
const SOCKET_BYTES_MAX = 100;

export interface Address {
  readonly socket: string;
  readonly inbox: string;
}

/** `runFolder`: absolute. */
export function addressOf(runFolder: string, mark: string): Address {
  const near = join(runFolder, 'sock');
  return { socket: fits(near) ? near : farSocket(mark), inbox: join(runFolder, 'inbox') };
}

function farSocket(mark: string): string {
  const far = join(tmpdir(), `meow-${mark}`, 'sock');
  return fits(far) ? far : `/tmp/meow-${mark}/sock`;
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= SOCKET_BYTES_MAX;
}

/** Makes the folder that the socket is in, where it is not the run's own, and refuses one that is not ours alone. */
export function makeSocketFolder(socket: string, runFolder: string): void {
  const folder = dirname(socket);
  if (folder !== runFolder) makePrivateFolder(folder);
}

/** 0700 whatever the umask. One that is there already must be ours, closed to others, and no link. */
export function makePrivateFolder(path: string): void {
  try {
    mkdirSync(path, 0o700);
    chmodSync(path, 0o700);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    const stats = lstatSync(path);
    const ours = process.getuid === undefined || stats.uid === process.getuid();
    if (stats.isDirectory() && ours && (stats.mode & 0o077) === 0) return;
    throw new UsageError(`${path} is not a folder of yours alone`, 'move it away; meow makes its own');
  }
}
