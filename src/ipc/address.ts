// The socket and the inbox of a run. Both paths follow from the run, so that a resumed run has the same ones. Nobody else can
// guess and occupy them: the run's folder is private, and if its path is too long for a socket, the socket is in a folder
// whose name contains the run's random mark.

import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { isErrno } from '../sys/errors.ts';

/** Operating systems allow 103 or 107. */
const SOCKET_BYTES_MAX = 100;

export interface Address {
  readonly socket: string;
  readonly inbox: string;
}

/** `runFolder`: absolute. */
export function addressOf(runFolder: string, mark: string): Address {
  const elsewhere = `meow-${mark}/sock`;
  const socket = [join(runFolder, 'sock'), join(tmpdir(), elsewhere)].find(
    (path) => Buffer.byteLength(path) <= SOCKET_BYTES_MAX,
  );
  return { socket: socket ?? join('/tmp', elsewhere), inbox: join(runFolder, 'inbox') };
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
