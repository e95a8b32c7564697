// Observes a worktree before and after work in it.
//
// worktree/1  Leftover processes of a turn are killed before the observation, so nothing changes meanwhile.
// worktree/2  A worktree points to its repository by a file `.git`. Without it, git would use the repository around the
//             worktree, which is the user's own: so the file is restored before git is called.

import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ABSENT, isErrno, REFUSED } from '../../sys/errno.ts';
import { own } from '../../base/json.ts';
import type { JsonMap } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { markerOf } from '../environment.ts';
import type { Change } from '../git/diff.ts';
import type { GitProblem } from '../git/git-error.ts';
import type { Snapshot } from '../git/snapshot.ts';
import type { Worktree } from '../git/worktree.ts';
import { killProcessTree } from '../../sys/kill-process-tree.ts';
import { makeFolder, writePrivate } from '../../sys/private-file.ts';
import { ownFolder } from './context.ts';
import type { ConductorContext, ConductorSettings, StepRecord, Task } from './context.ts';

/** The state before the work. */
export interface Before extends Snapshot {
  /** In milliseconds since 1970. */
  readonly at: number;
  /** Content of the file `.git`; null if that is a folder. */
  readonly pointer: string | null;
  readonly governing: Governing;
  /** Commits of protected branches. */
  readonly tips: Readonly<Record<string, string>>;
}

/** Files and settings that control git: name and fingerprint. */
type Governing = Readonly<Record<string, string>>;

export interface After extends Snapshot {
  readonly changes: readonly Change[];
  /** New files that git ignores. */
  readonly hidden: readonly string[];
  /** Protected branches that were moved to commits made here. */
  readonly moved: readonly string[];
  readonly tampered: readonly string[];
}

/** `name`: of the snapshot. */
export async function observeBefore(
  git: Worktree,
  { protectedBranches }: ConductorSettings,
  name: string,
): Promise<Result<Before, GitProblem>> {
  const at = Date.now();
  const taken = await git.snapshot(name);
  if (!taken.ok) return taken;
  const tips = await git.tips(protectedBranches);
  if (!tips.ok) return tips;
  const [pointer, governing] = [pointerOf(git.path), governingOf(git.path)];
  return ok({ ...taken.value, at, pointer, governing, tips: tips.value });
}

export async function lookAfter(task: Task, git: Worktree, before: Before): Promise<Result<After, GitProblem>> {
  const { protectedBranches } = task.context.settings;
  const led = restorePointer(task, git, before);
  if (!led.ok) return led;
  const tampered = [...(led.value ? ['.git'] : []), ...differences(before.governing, governingOf(git.path))];
  const now = await git.snapshot('now');
  if (!now.ok) return now;
  const changes = await git.changes({ kind: 'snapshot', name: before.name }, 'now');
  if (!changes.ok) return changes;
  const hidden = await git.hidden(before.name, 'now');
  if (!hidden.ok) return hidden;
  const moved = await movedBranches(git, before, protectedBranches);
  if (!moved.ok) return moved;
  return ok({ ...now.value, changes: changes.value, hidden: hidden.value, moved: moved.value, tampered });
}

/** Without branches that somebody else moved to their own commits. */
async function movedBranches(
  git: Worktree,
  before: Before,
  patterns: readonly string[],
): Promise<Result<readonly string[], GitProblem>> {
  const tips = await git.tips(patterns);
  if (!tips.ok) return tips;
  const moved: string[] = [];
  for (const [branch, commit] of Object.entries(tips.value)) {
    if (own(before.tips, branch) === commit) continue;
    const isNew = await git.isNew(commit, before.head);
    if (!isNew.ok) return isNew;
    if (isNew.value) moved.push(branch);
  }
  return ok(moved);
}

/** Restores `.git` (worktree/2). Returns whether it had been changed, also if an earlier engine saw that. */
export function restorePointer(task: Task, git: Worktree, { pointer }: Before): Result<boolean, GitProblem> {
  const aside = join(dirname(ownFolder(task).path), 'replaced-git');
  if (pointerOf(git.path) === pointer && commonDirOf(git.path) !== null) return ok(isThere(aside));
  const path = join(git.path, '.git');
  const refused = (why: string): Result<boolean, GitProblem> =>
    err({ kind: 'gone', message: `${path} is not what it was: ${why}`, cure: 'start another run' });
  if (pointer === null) return refused('the repository in it is gone');
  try {
    makeFolder(dirname(aside));
    if (isThere(path)) renameSync(path, aside);
    else writePrivate(aside, '');
    writeFileSync(path, pointer, { flag: 'wx' });
    return ok(true);
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, 'EXDEV', 'EEXIST', 'ENOTEMPTY')) return refused(error.message);
    throw error;
  }
}

/** Kills leftover processes of an attempt (worktree/1). */
export async function killLeftovers({ run }: ConductorContext, { id, attempt }: StepRecord): Promise<void> {
  const marker = markerOf(run, `${id}#${attempt}`);
  await killProcessTree({ marker, leader: null }, { graceMs: LEFT_GRACE_MS }).done;
}

/** Format of outputs and evidence. */
export function changeSummary(changes: readonly Change[]): JsonMap {
  const count = (...statuses: readonly Change['status'][]): number =>
    changes.filter(({ status }) => statuses.includes(status)).length;
  return {
    files: changes.length,
    added: count('added'),
    modified: count('modified', 'typechange', 'renamed'),
    deleted: count('deleted'),
    paths: changes.slice(0, PATHS_MAX).map(({ path }) => path),
  };
}

/** Files that others than the engine wrote into the run directory since a time. */
export function writtenSince(runDir: string, at: number): readonly string[] {
  const found: string[] = [];
  let looked = 0;
  const look = (folder: string): void => {
    for (const entry of entriesOf(join(runDir, folder))) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (folder === '' && OF_THE_ENGINE.test(entry.name)) continue;
      looked += 1;
      if (found.length >= PATHS_MAX || looked > LOOKED_MAX) return;
      if (entry.isDirectory()) look(path);
      else if (changedAt(join(runDir, path)) > at - CLOCK_STEP_MS) found.push(path);
    }
  };
  look('');
  return found;
}

const PATHS_MAX = 200;
/** A long run has many screenshots and logs, which do not matter here. */
const LOOKED_MAX = 10_000;
const LEFT_GRACE_MS = 2_000;
/** The clock of a file system may lag this much. */
const CLOCK_STEP_MS = 20;
const OF_THE_ENGINE =
  /^(?:artifacts|metadata\.json|status\.json.*|events\.ndjson|final-state\.txt|diff\.patch|transcript\.md|\.gitignore)$/;

/** Null if it is a folder, absent or not a file. */
function pointerOf(folder: string): string | null {
  return readFileIfAny(join(folder, '.git'));
}

/** Hooks, excludes, and settings that name a program or what git looks for. Empty without a repository. */
function governingOf(folder: string): Governing {
  const common = commonDirOf(folder);
  if (common === null) return {};
  const prints: Record<string, string> = {};
  for (const { name } of entriesOf(join(common, 'hooks'))) {
    prints[`.git/hooks/${name}`] = String(changedAt(join(common, 'hooks', name)));
  }
  for (const name of ['info/exclude', 'info/attributes', 'info/grafts']) {
    const text = readFileIfAny(join(common, name));
    if (text !== null) prints[`.git/${name}`] = hash(text);
  }
  const files = {
    config: join(common, 'config'),
    'config.worktree': join(gitDirOf(folder) ?? common, 'config.worktree'),
  };
  for (const [name, path] of Object.entries(files)) {
    const settings = readFileIfAny(path) ?? '';
    for (const [line] of settings.matchAll(GOVERNING_SETTING)) prints[`.git/${name}: ${line.trim()}`] = '';
  }
  return prints;
}

/** The section header may be on the same line. */
const GOVERNING_SETTING =
  /^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(?:hooksPath|fsmonitor|sshCommand|editor|pager|worktree|attributesFile|excludesFile|textconv|external|command|clean|smudge|process|driver|helper|program|askPass|gitProxy|path|insteadOf|pushInsteadOf|fileMode|symlinks|ignoreCase|checkStat|trustCtime|worktreeConfig|sparseCheckout)[ \t]*(?:=.*)?$/gim;

function differences(before: Governing, after: Governing): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]);
}

/** Of the worktree itself. Null if not found. */
function gitDirOf(folder: string): string | null {
  const path = join(folder, '.git');
  if (entriesOf(path).length > 0) return path;
  const [, target] = /^gitdir: (.+)\n?$/.exec(readFileIfAny(path) ?? '') ?? [];
  return target === undefined ? null : resolve(folder, target);
}

/** Shared by all worktrees. */
function commonDirOf(folder: string): string | null {
  const gitDir = gitDirOf(folder);
  if (gitDir === null) return null;
  const common = readFileIfAny(join(gitDir, 'commondir'));
  return common === null ? gitDir : resolve(gitDir, common.trimEnd());
}

function entriesOf(folder: string): readonly { readonly name: string; isDirectory(): boolean }[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return [];
    throw error;
  }
}

/** Of content or mode: nobody can set it back. */
function changedAt(path: string): number {
  try {
    return lstatSync(path).ctimeMs;
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return 0;
    throw error;
  }
}

function readFileIfAny(path: string): string | null {
  try {
    // Reading a pipe would never end.
    return statSync(path).isFile() ? readFileSync(path, 'utf8') : null;
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return null;
    throw error;
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
