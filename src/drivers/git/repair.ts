// Repairs the files by which git works in a worktree of a run, after somebody has changed them.
//
// repair/1  The registration of the worktree (`commondir`, `gitdir`) says what the journal knows.
// repair/2  Something that git cannot open as a file (a pipe, a folder), or cannot enter as a folder, is moved aside.
// repair/3  Links that lead to files and folders may be the user's, and stay.
// repair/4  The names of what was changed are known before the first repair, so that a crash does not hide them.

import { lstatSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { ABSENT, REFUSED, tolerate } from '../../sys/errors.ts';
import { clearPlaceOf, makeFolderBelow, replacePrivate } from '../../sys/files.ts';
import { isFolder, readSmallFile, type WorktreeInfo } from './worktree-paths.ts';

interface Repair {
  /** As people write it: `.git/worktrees/r/commondir`. */
  readonly name: string;
  carryOut(): void;
}

/** `note`: gets the names of what was changed, before anything is repaired. */
export function repairGitFiles(info: WorktreeInfo, note: (names: readonly string[]) => void): void {
  const repairs = [...repairsOfFolder(info), ...repairsOfTypes(info), ...repairsOfLinks(info)];
  if (repairs.length === 0) return;
  note([...new Set(repairs.map(({ name }) => name))]);
  for (const repair of repairs) repair.carryOut();
}

/** The git folder of a worktree of the run's own. */
function repairsOfFolder({ kind, gitDir, commonDir }: WorktreeInfo): readonly Repair[] {
  if (kind !== 'worktree' || isFolder(gitDir)) return [];
  return [{ name: shown(commonDir, gitDir), carryOut: () => makeFolderBelow(commonDir, gitDir) }];
}

const COMMON_FILES = [
  'config',
  'packed-refs',
  'shallow',
  'HEAD',
  'objects/info/alternates',
  'objects/info/commit-graph',
];
const COMMON_INFO = ['info/attributes', 'info/grafts', 'info/exclude', 'info/sparse-checkout'];
const TREE_FILES = ['HEAD', 'index', 'config.worktree', 'commondir', 'gitdir', 'logs/HEAD', 'ORIG_HEAD'];

/** Files that git opens whenever it works there, and the branch of the run. */
function repairsOfTypes({ kind, gitDir, commonDir, branch }: WorktreeInfo): readonly Repair[] {
  const ref = kind === 'worktree' && branch !== null ? `refs/heads/${branch}` : null;
  const own = ref === null ? [] : [ref, `${ref}.lock`, `logs/${ref}`];
  const common = [...COMMON_FILES, ...COMMON_INFO, ...own].map((name) => [commonDir, name] as const);
  const tree = [...TREE_FILES, 'index.lock', 'HEAD.lock'].map((name) => [gitDir, name] as const);
  return [...common, ...tree].flatMap(([top, name]) => {
    const obstacle = obstacleTo(top, name);
    return obstacle === null
      ? []
      : [{ name: shown(commonDir, join(top, obstacle)), carryOut: () => clearObstacle(top, obstacle) }];
  });
}

/** Part of the path that git cannot use as a folder, or all of it, if git cannot open it as a file; otherwise null. */
function obstacleTo(top: string, name: string): string | null {
  const parts = name.split('/');
  for (const at of parts.keys()) {
    const part = parts.slice(0, at + 1).join('/');
    const stats = tolerate([...ABSENT, ...REFUSED], undefined, () =>
      statSync(join(top, part), { throwIfNoEntry: false }),
    );
    if (stats === undefined) return null;
    const isLast = at === parts.length - 1;
    if (isLast ? !stats.isFile() : !stats.isDirectory()) return part;
  }
  return null;
}

function clearObstacle(top: string, name: string): void {
  const path = join(top, name);
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  // A file in the place of a folder.
  if (stats.isFile()) makeFolderBelow(join(path, '..'), path);
  else clearPlaceOf(path);
}

/** Files that git needs to find a worktree of the run's own, and its repository. */
function repairsOfLinks({ kind, path, gitDir, commonDir, branch }: WorktreeInfo): readonly Repair[] {
  if (kind !== 'worktree') return [];
  const expected = [
    ['commondir', commonDir, '../..\n'],
    ['gitdir', join(path, '.git'), `${join(path, '.git')}\n`],
  ] as const;
  const repairs = expected.flatMap(([name, target, text]) => {
    const file = join(gitDir, name);
    const found = readSmallFile(file);
    if (found !== null && resolve(gitDir, found.trimEnd()) === target) return [];
    return [{ name: shown(commonDir, file), carryOut: () => replacePrivate(file, text) }];
  });
  const head = join(gitDir, 'HEAD');
  if (readSmallFile(head) !== null || branch === null) return repairs;
  return [
    ...repairs,
    { name: shown(commonDir, head), carryOut: () => replacePrivate(head, `ref: refs/heads/${branch}\n`) },
  ];
}

function shown(commonDir: string, path: string): string {
  return path.startsWith(`${commonDir}/`) ? `.git${path.slice(commonDir.length)}` : path;
}
