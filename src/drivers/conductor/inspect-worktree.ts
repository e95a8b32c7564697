// Observes a worktree before and after work in it.
//
// worktree/1  Leftover processes of a turn are killed before the observation, so nothing changes meanwhile.
// worktree/2  A worktree points to its repository by a file `.git`. Without it, git would use the repository around the
//             worktree, which is the user's own: so the file is restored before git is called.

import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

import { err, ok, type Result } from '../../base/errors.ts';
import { type JsonMap, own } from '../../base/json.ts';
import { ABSENT, isErrno, REFUSED, tolerate } from '../../sys/errors.ts';
import { makeFolder, writePrivate } from '../../sys/files.ts';
import { killProcessTree } from '../../sys/kill-process-tree.ts';
import { markerOf } from '../environment.ts';
import type { Change } from '../git/diff.ts';
import type { GitProblem } from '../git/git.ts';
import type { Snapshot } from '../git/snapshot.ts';
import type { Comparison, Tips, Worktree } from '../git/worktree.ts';
import { sharedFile } from '../step-folder.ts';
import type { ConductorContext, StepRecord, Task } from './context.ts';
import { snapshotName } from './workspace.ts';

/** The state before the work. */
export type Before = Snapshot & {
  /** In milliseconds since 1970. */
  readonly at: number;
  /** Content of the file `.git`; null if that is a folder. */
  readonly pointer: string | null;
  readonly governing: Governing;
  /** Of protected branches. */
  readonly tips: Tips;
  /** Full names of refs that replace objects. Absent, like the rest, in old journals. */
  readonly replaced?: readonly string[];
  /** The state before the run. */
  readonly start?: Snapshot;
  /** Rules outside of the tree that make git ignore files, as they were before the run. */
  readonly excludes?: string;
};

/** Files and settings that control git: name and fingerprint. */
type Governing = Readonly<Record<string, string>>;

/** `tampered`: names of changed files and settings that control git. */
export type After = Comparison & { readonly tampered: readonly string[] };

export async function observeBefore(
  { context, visit }: Task,
  git: Worktree,
  start: Snapshot,
): Promise<Result<Before, GitProblem>> {
  const at = Date.now();
  const taken = await git.snapshot(snapshotName(visit));
  if (!taken.ok) return taken;
  const tips = await git.tips(context.settings.protectedBranches);
  if (!tips.ok) return tips;
  const refs = await git.watchedRefs();
  if (!refs.ok) return refs;
  const [pointer, governing] = [pointerOf(git.path), governingOf(git.path)];
  const { replaced } = refs.value;
  const about = { at, pointer, governing, tips: tips.value, replaced, start, excludes: git.ignored };
  return ok({ ...taken.value, ...about });
}

/** `snapshots`: all that the journal knows. */
export async function observeAfter(
  task: Task,
  git: Worktree,
  { before, snapshots }: { readonly before: Before; readonly snapshots: readonly Snapshot[] },
): Promise<Result<After, GitProblem>> {
  const restored = restorePointer(task, git, before);
  if (!restored.ok) return restored;
  const governing = differences(before.governing, governingOf(git.path));
  const moved = await movedRefs(git, before, snapshots);
  if (!moved.ok) return moved;
  const tampered = [...(restored.value ? ['.git'] : []), ...governing, ...moved.value];
  const compared = await git.compare(before, before.tips, task.context.settings.protectedBranches);
  return compared.ok ? ok({ ...compared.value, tampered }) : compared;
}

/** Refs that replace objects, and snapshots that are not where the journal knows them. The latter are put back. */
async function movedRefs(
  git: Worktree,
  { replaced = [] }: Before,
  snapshots: readonly Snapshot[],
): Promise<Result<readonly string[], GitProblem>> {
  const refs = await git.watchedRefs();
  if (!refs.ok) return refs;
  const found = refs.value.replaced.filter((ref) => !replaced.includes(ref));
  for (const snapshot of new Map(snapshots.map((each) => [each.name, each])).values()) {
    if (own(refs.value.snapshots, snapshot.name) === snapshot.commit) continue;
    found.push(git.refOf(snapshot.name));
    const back = await git.putBack(snapshot);
    if (!back.ok) return back;
  }
  return ok(found);
}

/** Restores `.git` (worktree/2). Returns whether it had been changed, also if an earlier engine saw that. */
export function restorePointer(task: Task, git: Worktree, { pointer }: Before): Result<boolean, GitProblem> {
  const aside = sharedFile(task.context.run.files, task.effect.step, 'replaced-git');
  if (pointerOf(git.path) === pointer && commonDirOf(git.path) !== null) return ok(pathExists(aside));
  const path = join(git.path, '.git');
  const refused = (why: string): Result<boolean, GitProblem> =>
    err({ kind: 'gone', message: `${path} is not what it was: ${why}`, cure: 'start another run' });
  if (pointer === null) return refused('the repository in it is gone');
  try {
    makeFolder(dirname(aside));
    if (pathExists(path)) renameSync(path, aside);
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
  for (const name of ['info/exclude', 'info/attributes', 'info/grafts', 'objects/info/alternates']) {
    const text = readFileIfAny(join(common, name));
    if (text !== null) prints[`.git/${name}`] = createHash('sha256').update(text).digest('hex');
  }
  const folders = { config: common, 'config.worktree': gitDirOf(folder) ?? common };
  for (const [name, above] of Object.entries(folders)) {
    const settings = readFileIfAny(join(above, name)) ?? '';
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

const UNREADABLE = [...ABSENT, ...REFUSED];

function entriesOf(folder: string) {
  return tolerate(UNREADABLE, [], () => readdirSync(folder, { withFileTypes: true }));
}

/** Of content or mode: nobody can set it back. */
function changedAt(path: string): number {
  return tolerate(UNREADABLE, 0, () => lstatSync(path).ctimeMs);
}

function readFileIfAny(path: string): string | null {
  // Reading a pipe would never end.
  return tolerate(UNREADABLE, null, () => (statSync(path).isFile() ? readFileSync(path, 'utf8') : null));
}

function pathExists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
