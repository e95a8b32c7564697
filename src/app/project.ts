// The `.meow` folder of a command: that of the working directory, otherwise the nearest one in a parent folder below the
// home folder. If there is none, `meow run` creates one in the working directory. In a worktree of a run it is that of the
// run. `~/.meow` belongs to no project: it holds what all projects share. A folder of another user is skipped, because its
// commands would run with our rights.

import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { tolerate } from '../sys/errors.ts';

export interface Project {
  /** The working directory of the command; steps run here. */
  readonly cwd: string;
  /** The `.meow` folder; it may not exist yet. */
  readonly meow: string;
  readonly exists: boolean;
  readonly runs: string;
  /** What all projects share: `~/.meow`. */
  readonly shared: string;
}

/** `folder`: absolute; by default the working directory. */
export function findProject(folder?: string): Project {
  const cwd = folder ?? tolerate(['ENOENT'], null, () => process.cwd());
  if (cwd === null) throw new UsageError('the working directory has been deleted', 'change to another folder: cd ~');
  const home = homedir();
  const shared = sharedFolder();
  const own = join(cwd, '.meow');
  const ownKind = kindOf(own);
  if (ownKind === 'file') {
    throw new UsageError(`${own} is a file, but meow needs a folder of that name`, 'move the file away');
  }
  const found = aroundWorktree(cwd) ?? (ownKind === 'folder' ? own : above(cwd, home));
  const meow = found ?? own;
  return { cwd, meow, exists: found !== null, runs: join(meow, 'workflows'), shared };
}

/** The project with this `.meow` folder. Absolute. */
export function projectAt(meow: string): Project {
  return { cwd: dirname(meow), meow, exists: true, runs: join(meow, 'workflows'), shared: sharedFolder() };
}

export function sharedFolder(): string {
  return join(homedir(), '.meow');
}

/** A worktree of a run belongs to the run's project, even if the project's `.meow` is committed. */
function aroundWorktree(cwd: string): string | null {
  const [, meow] = /^(.+\/\.meow)\/worktrees\/[^/]+(?:\/|$)/.exec(cwd) ?? [];
  return meow !== undefined && kindOf(join(meow, 'workflows')) === 'folder' && isOurs(meow) ? meow : null;
}

function above(folder: string, home: string): string | null {
  const parent = dirname(folder);
  if (folder === home || parent === home || parent === folder) return null;
  const meow = join(parent, '.meow');
  return kindOf(meow) === 'folder' && isOurs(meow) ? meow : above(parent, home);
}

function kindOf(path: string): 'folder' | 'file' | null {
  return tolerate(['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'], null, () =>
    statSync(path).isDirectory() ? 'folder' : 'file',
  );
}

function isOurs(path: string): boolean {
  return process.getuid === undefined || statSync(path).uid === process.getuid();
}

export function ownEnvironment(): Readonly<Record<string, string>> {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
