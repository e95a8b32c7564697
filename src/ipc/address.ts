// The socket and the inbox of a run. Both paths follow from the run, so that a resumed run has the same ones. Nobody else can
// guess and occupy them: the run's folder is private, and if its path is too long for a socket, the socket is in a folder
// whose name contains the run's random mark.

import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { UsageError } from '../base/usage-error.ts';
import { isErrno } from '../sys/errno.ts';

/** Operating systems allow 103 or 107. */
const SOCKET_BYTES_MAX = 100;

export interface Address {
  readonly socket: string;
  readonly inbox: string;
}

/** `runFolder`: absolute. */
export function addressOf(runFolder: string, mark: string): Address {
  const inRun = join(runFolder, 'sock');
  return { socket: fits(inRun) ? inRun : socketElsewhere(mark), inbox: join(runFolder, 'inbox') };
}

function socketElsewhere(mark: string): string {
  const path = join(tmpdir(), `meow-${mark}`, 'sock');
  return fits(path) ? path : `/tmp/meow-${mark}/sock`;
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= SOCKET_BYTES_MAX;
}

/** Creates the folder of the socket, unless it is the run's own. Refuses a folder that others can use. */
export function makeSocketFolder(socket: string, runFolder: string): void {
  const folder = dirname(socket);
  if (folder !== runFolder) makePrivateFolder(folder);
}

/** 0700, whatever the umask. An existing folder must be ours, closed to others, and not a link. */
export function makePrivateFolder(path: string): void {
  try {
    mkdirSync(path, 0o700);
    chmodSync(path, 0o700);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    const stats = lstatSync(path);
    const ours = process.getuid === undefined || stats.uid === process.getuid();
    if (stats.isDirectory() && ours && (stats.mode & 0o077) === 0) return;
    throw new UsageError(`${path} is not a private folder of yours`, 'move it away; meow creates its own');
  }
}
