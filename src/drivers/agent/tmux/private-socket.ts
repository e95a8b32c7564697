// The socket of a run's own tmux server: `tmux-UID/default` in a folder of the run. That is where tmux itself looks
// below TMUX_TMPDIR, so commands of the run and people reach the server with plain `tmux` and that variable.
//
// One server for each run: versions before 3.7 sometimes crash, with all sessions, if several clients use one. The
// folder follows from the run alone, so a later engine finds its terminals. If the run's path is too long for a socket,
// the folder is a temporary one with the run's random mark in its name.

import type { RunFiles } from '../../../engine/ports.ts';
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { present } from '../../../base/assert.ts';
import { ABSENT, isErrno, REFUSED } from '../../../sys/errno.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';

export interface PrivateSocket {
  readonly folder: string;
  readonly socket: string;
}

/** Systems allow 103 or 107. */
const SOCKET_BYTES_MAX = 100;

export interface RunOfSocket {
  readonly files: RunFiles;
  readonly mark: string;
}

export function socketPaths(run: RunOfSocket): PrivateSocket {
  const folders = [run.files.localPath('tmux'), join(tmpdir(), `meow-${run.mark}-tmux`), `/tmp/meow-${run.mark}-tmux`];
  const places = folders.map((folder) => ({ folder, socket: join(folder, `tmux-${UID}`, 'default') }));
  const fitting = places.find(({ socket }) => Buffer.byteLength(socket) <= SOCKET_BYTES_MAX);
  return present(fitting, 'no place is short enough for a socket');
}

/** Creates its folders. The error is a sentence. */
export function privateSocket(run: RunOfSocket): Result<PrivateSocket, string> {
  const place = socketPaths(run);
  try {
    for (const path of [place.folder, dirname(place.socket)]) {
      if (!isMadePrivate(path)) return err(`${path} is not a folder of yours alone: move it away`);
    }
    return ok(place);
  } catch (error) {
    if (!isErrno(error, ...ABSENT, ...REFUSED)) throw error;
    return err(`cannot create a socket for the run's tmux server: ${error.message}`);
  }
}

const UID = String(process.getuid?.() ?? 0);

/** Mode 0700 whatever the umask. An existing folder must be ours, closed to others, and not a link. */
function isMadePrivate(path: string): boolean {
  try {
    mkdirSync(path, 0o700);
    chmodSync(path, 0o700);
    return true;
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    const stats = lstatSync(path);
    const isOurs = process.getuid === undefined || stats.uid === process.getuid();
    return stats.isDirectory() && isOurs && (stats.mode & 0o077) === 0;
  }
}
