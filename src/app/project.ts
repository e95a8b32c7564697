// Which `.meow` folder a command works with: the one of the folder it was called in; else the nearest one above, as far
// as the home folder; else none yet, and `meow run` makes it where it was called. Within a worktree of a run it is that of
// the run. The home folder's own `.meow` is no project's: it holds what all projects share. One above that belongs to
// somebody else is passed over, for what it says would be run as us.

import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

import { UsageError } from '../base/usage-error.ts';
import { isErrno } from '../sys/errno.ts';

export interface Project {
  /** Where the command was called; steps run here. */
  readonly cwd: string;
  /** The `.meow` folder; it may not exist yet. */
  readonly meow: string;
  readonly exists: boolean;
  /** Where runs are kept. */
  readonly runs: string;
  /** What all projects share: `~/.meow`. */
  readonly shared: string;
}

export function findProject(): Project {
  const cwd = currentFolder();
  const home = homedir();
  const shared = join(home, '.meow');
  const own = join(cwd, '.meow');
  const ownKind = kindOf(own);
  if (ownKind === 'file') {
    throw new UsageError(`${own} is a file, and meow keeps its runs in a folder of that name`, 'move that file away');
  }
  const found = aroundWorktree(cwd) ?? (ownKind === 'folder' ? own : above(cwd, home));
  const meow = found ?? own;
  return { cwd, meow, exists: found !== null, runs: join(meow, 'workflows'), shared };
}

/** A worktree of a run belongs to the run's project, whatever of that project is committed. */
function aroundWorktree(cwd: string): string | null {
  const [, meow] = /^(.+\/\.meow)\/worktrees\/[^/]+(?:\/|$)/.exec(cwd) ?? [];
  return meow !== undefined && kindOf(join(meow, 'workflows')) === 'folder' && isOurs(meow) ? meow : null;
}

function above(cwd: string, home: string): string | null {
  for (let folder = cwd; folder !== home && dirname(folder) !== folder; ) {
    folder = dirname(folder);
    if (folder === home) return null;
    const meow = join(folder, '.meow');
    if (kindOf(meow) === 'folder' && isOurs(meow)) return meow;
  }
  return null;
}

function kindOf(path: string): 'folder' | 'file' | null {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP')) return null;
    throw error;
  }
}

function isOurs(path: string): boolean {
  return process.getuid === undefined || statSync(path).uid === process.getuid();
}

function currentFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
    throw new UsageError('the folder that meow was called in has been deleted', 'change to another folder: cd ~');
  }
}

/** The environment that meow was called in. */
export function ownEnvironment(): Readonly<Record<string, string>> {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
