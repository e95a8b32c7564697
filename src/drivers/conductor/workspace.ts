// Where a run works: in its own worktree, in the user's tree, or, if it changes nothing, in a folder as it is. The
// first call creates it; later engines find the same, from the same commit. The snapshot `pre_run` holds the state
// before the run. A worktree is observed before and after work in it.
//
// worktree/1  Leftover processes of a turn are killed before the observation, so nothing changes meanwhile.
// worktree/2  A worktree points to its repository by a file `.git`. Without it, git would use the repository around the
//             worktree, which is the user's own: so the file is restored before git is called.

import { createHash, randomUUID } from 'node:crypto';
import {
  accessSync,
  constants,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { err, ok, type Result } from '../../base/errors.ts';
import { type JsonMap, own } from '../../base/json.ts';
import { ABSENT, isErrno, REFUSED, tolerate, UNUSABLE } from '../../sys/errors.ts';
import { makeFolder, readJsonFile, writeJsonFile, writePrivate } from '../../sys/files.ts';
import { killProcessTree } from '../../sys/kill-process-tree.ts';
import { markerOf } from '../environment.ts';
import type { Change } from '../git/diff.ts';
import { asResult, type GitProblem } from '../git/git.ts';
import { branchOf, readRunRecord, Repository } from '../git/repository.ts';
import type { Snapshot } from '../git/snapshot.ts';
import { grantAccess } from '../git/walk.ts';
import type { Comparison, Tips, Worktree } from '../git/worktree.ts';
import { exists } from '../git/worktree-paths.ts';
import { sharedFile } from '../step-folder.ts';
import { syncDisk } from '../sync-disk.ts';
import type { ConductorContext, OpenWorkspace, StepRecord, Task, Workspace } from './context.ts';

export interface WorkspaceRequest {
  readonly runId: string;
  /** The folder that contains `.meow`. Absolute. */
  readonly project: string;
  /** For people; neither may contain the other. Absolute. */
  readonly runDir: string;
  readonly environment: Readonly<Record<string, string>>;
  /** First commit, if known; otherwise HEAD at the first call. */
  readonly base?: string | null;
  readonly hasWorked?: () => boolean;
  /** The state before the run, by the journal; null if the journal does not have it. */
  readonly start?: () => StartFacts | null;
  /** For a fork: the snapshot that its worktree starts from, and the folder for files about it. Otherwise null. */
  readonly fork?: () => { readonly from: ForkStart; readonly folder: string } | null;
  /** `as-it-is`: the run changes nothing and needs no git. */
  readonly kind: 'worktree' | 'in-place' | 'as-it-is';
}

/** The state before the run that a fork comes from, and the state after the last step that it keeps. */
export type ForkStart = {
  readonly start: Snapshot;
  readonly excludes: string;
  readonly state: Snapshot;
  /** Snapshots of kept steps. Each gets a ref of the fork. */
  readonly snapshots: readonly { readonly name: string; readonly commit: string }[];
};

/** What the journal knows about the state before the run. */
export interface StartFacts {
  readonly snapshot: Snapshot;
  /** Rules outside of the tree that make git ignore files. */
  readonly excludes: string;
  /** Content of the file `.git`; null if that is a folder. */
  readonly pointer: string | null;
}

/** Null if the journal of an old version does not have them. */
export function startFacts(before: Before | null): StartFacts | null {
  const { start: snapshot, excludes, pointer = null } = before ?? {};
  return snapshot === undefined || excludes === undefined ? null : { snapshot, excludes, pointer };
}

const PRE_RUN = 'pre_run';

export function workspaceFor(request: WorkspaceRequest): Workspace {
  let opened: Promise<Result<OpenWorkspace, string>> | null = null;
  return {
    async open() {
      opened ??= open(request);
      const result = await opened;
      // The obstacle may be gone at the next call.
      if (!result.ok) opened = null;
      return result;
    },
  };
}

export function worktreePath(project: string, runId: string): string {
  return join(project, '.meow', 'worktrees', runId);
}

async function open(request: WorkspaceRequest): Promise<Result<OpenWorkspace, string>> {
  const { project } = request;
  if (request.kind === 'as-it-is') return ok({ folder: project, git: null, start: null });
  const repository = await Repository.open(project, request.environment);
  if (!repository.ok) return err(sentence(repository.error));
  const known = request.start?.() ?? null;
  const worktree = await worktreeIn(repository.value, request, known);
  if (!worktree.ok) return err(sentence(worktree.error));
  const git = worktree.value;
  // An agent may change the user's ignore rules, so those from the start of the run apply.
  const fork = known === null ? (request.fork?.() ?? null) : null;
  git.ignoring(known?.excludes ?? fork?.from.excludes ?? git.excludes());
  if (fork !== null) {
    const begun = await beginFork(git, fork);
    return begun.ok ? ok({ folder: git.path, git, start: fork.from.start }) : err(sentence(begun.error));
  }
  const start = known?.snapshot ?? git.find(PRE_RUN);
  if (start !== null) return ok({ folder: git.path, git, start });
  const taken = await git.snapshot(PRE_RUN);
  return taken.ok ? ok({ folder: git.path, git, start: taken.value }) : err(sentence(taken.error));
}

/** Once: what validators of the fork leave in the worktree stays. */
async function beginFork(
  git: Worktree,
  { from: { start, state }, folder }: NonNullable<ReturnType<NonNullable<WorkspaceRequest['fork']>>>,
): Promise<Result<void, GitProblem>> {
  const marker = join(folder, 'fork-begun');
  if (exists(marker)) return ok(undefined);
  const [before, after] = [join(folder, 'fork-before.patch'), join(folder, 'fork-after.patch')];
  const about = { protectedBranches: [], lastCommit: git.base, before, after };
  const restored = await git.restore({ id: 'fork', to: state, start, ...about });
  if (!restored.ok) return restored;
  await syncDisk(git.places);
  writePrivate(marker, '');
  return ok(undefined);
}

async function worktreeIn(
  repository: Repository,
  { runId: run, project, runDir, kind, base: settled, hasWorked }: WorkspaceRequest,
  started: StartFacts | null,
): Promise<Result<Worktree, GitProblem>> {
  if (started !== null && started.snapshot.head !== null) {
    const { head: base, branch } = started.snapshot;
    const { path: own } = repository.info;
    const place =
      kind === 'in-place'
        ? ({ kind, path: own, branch } as const)
        : ({ kind: 'worktree', path: realFolder(worktreePath(project, run)), branch: branchOf(run) } as const);
    return repository.reopen({ run, ...place, base, pointer: started.pointer });
  }
  if (kind === 'in-place') return repository.inPlace({ run, runFolder: runDir });
  const known = readRunRecord(repository.info.commonDir, run);
  if (known === null && hasWorked?.() === true) {
    const message = `the worktree of run ${run} is gone, with what was done in it`;
    return err({ kind: 'gone', message, cure: 'it was removed, perhaps by meow gc: start another run' });
  }
  const base = settled ?? known?.base ?? repository.head;
  const path = worktreePath(project, run);
  const ignored = await asResult(async () => hideFromGit(dirname(path), '*\n'));
  return ignored.ok ? repository.addWorktree({ run, path, base, runFolder: runDir }) : ignored;
}

/** As git knows it. */
function realFolder(path: string): string {
  return tolerate(ABSENT, path, () => join(realpathSync(dirname(path)), basename(path)));
}

/** Hides files of a folder from `git status`. Another run, which asks git about the same folder, finds them hidden at any moment. */
export function hideFromGit(folder: string, ignored: string): void {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, '.gitignore');
  if (statSync(file, { throwIfNoEntry: false })?.size) return;
  const whole = `${file}.${randomUUID()}`;
  writeFileSync(whole, ignored, { flag: 'wx' });
  renameSync(whole, file);
}

/** Name of the snapshot before a visit: the visit's own if possible. */
function snapshotName(visit: string): string {
  if (/^[A-Za-z0-9_#-]{1,90}$/.test(visit)) return visit;
  const hash = createHash('sha256').update(visit).digest('hex').slice(0, 16);
  return `${visit.slice(0, 60).replaceAll(/[^A-Za-z0-9_#-]/g, '_')}-${hash}`;
}

export function sentence({ message, cure }: GitProblem): string {
  return `${message}; ${cure}`;
}

export type Before = Snapshot & {
  /** In milliseconds since 1970. */
  readonly at: number;
  /** Content of the file `.git`; null if that is a folder. Absent if another run took the snapshot. */
  readonly pointer?: string | null;
  readonly governing: Governing;
  /** Tips of protected branches. */
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
  const repaired = await git.repair(() => undefined);
  if (!repaired.ok) return repaired;
  const taken = await git.snapshot(snapshotName(visit));
  if (!taken.ok) return taken;
  const tips = await git.tips(context.settings.protectedBranches);
  if (!tips.ok) return tips;
  const refs = await git.watchedRefs();
  if (!refs.ok) return refs;
  const [pointer, governing] = [readFileIfAny(join(git.path, '.git')), governingOf(git)];
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
  const repaired = await repairWorktree(task, git, before);
  if (!repaired.ok) return repaired;
  const governing = governingOf(git);
  const names = [...new Set([...Object.keys(before.governing), ...Object.keys(governing)])];
  const changed = names.filter((name) => before.governing[name] !== governing[name]);
  const moved = await movedRefs(git, before, snapshots);
  const tampered = [...new Set([...repaired.value, ...changed, ...(moved.ok ? moved.value : [])])];
  const compared = moved.ok
    ? await git.compare(before, before.tips, task.context.settings.protectedBranches)
    : err(moved.error);
  if (compared.ok) return ok({ ...compared.value, tampered });
  const intact = await git.isIntact(before);
  if (compared.error.kind !== 'no-snapshot' && (!intact.ok || intact.value)) return compared;
  // Without the objects of the snapshot the changes are unknown. This counts against the agent.
  const { name, commit, tree, head, branch } = before;
  const nothing = { changes: [], hidden: [], moved: [] };
  return ok({ name, commit, tree, head, branch, ...nothing, tampered: [...tampered, OBJECTS] });
}

const ACCESS = constants.R_OK | constants.W_OK | constants.X_OK;
const OBJECTS = '.git/objects (snapshots were removed or forged)';

/** Makes git work again in the worktree. Returns the names of what was changed, also if an earlier engine saw that. */
export async function repairWorktree(
  task: Task,
  git: Worktree,
  before: Before | null,
): Promise<Result<readonly string[], GitProblem>> {
  const isOwnTree = typeof before?.pointer === 'string';
  if (isOwnTree && !tolerate(UNUSABLE, false, () => accessSync(git.path, ACCESS) === undefined)) grantAccess(git.path);
  const pointer = before === null ? ok(false) : restorePointer(task, git, before);
  if (!pointer.ok) return pointer;
  const file = sharedFile(task.context.run.files, task.effect.step, 'tampered');
  const known = readJsonFile(file);
  const names = new Set<string>(Array.isArray(known) ? known.filter((name) => typeof name === 'string') : []);
  const repaired = await git.repair((found) => {
    for (const name of found) names.add(name);
    makeFolder(dirname(file));
    writeJsonFile(file, [...names]);
  });
  return repaired.ok ? ok([...(pointer.value ? ['.git'] : []), ...names]) : repaired;
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
function restorePointer(task: Task, git: Worktree, { pointer }: Before): Result<boolean, GitProblem> {
  if (pointer === undefined) return ok(false);
  const aside = sharedFile(task.context.run.files, task.effect.step, 'replaced-git');
  const path = join(git.path, '.git');
  if (readFileIfAny(path) === pointer && (pointer === null || !lstatSync(path).isSymbolicLink())) {
    return ok(exists(aside));
  }
  const refused = (why: string): Result<boolean, GitProblem> =>
    err({ kind: 'gone', message: `${path} is not what it was: ${why}`, cure: 'start another run' });
  if (pointer === null) return refused('the repository in it is gone');
  try {
    makeFolder(dirname(aside));
    // Somebody may have foreseen the name.
    const place = exists(aside) ? `${aside}.${randomUUID()}` : aside;
    if (exists(path)) renameSync(path, place);
    else writePrivate(place, '');
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
  /^(?:artifacts|metadata\.json|status\.json.*|events\.ndjson|final-state\.txt|diff\.patch|transcript\.md|\.gitignore|\..*\.[0-9a-f]{12}\.tmp)$/;

/** Hooks, excludes, and settings that name a program or what git looks for. */
function governingOf({ gitDir, commonDir: common }: Worktree): Governing {
  const prints: Record<string, string> = {};
  for (const { name } of entriesOf(join(common, 'hooks'))) {
    prints[`.git/hooks/${name}`] = String(changedAt(join(common, 'hooks', name)));
  }
  for (const name of ['info/exclude', 'info/attributes', 'info/grafts', 'objects/info/alternates']) {
    const text = readFileIfAny(join(common, name));
    if (text !== null) prints[`.git/${name}`] = createHash('sha256').update(text).digest('hex');
  }
  const folders = { config: common, 'config.worktree': gitDir };
  for (const [name, above] of Object.entries(folders)) {
    const settings = readFileIfAny(join(above, name)) ?? '';
    for (const [line] of settings.matchAll(GOVERNING_SETTING)) prints[`.git/${name}: ${line.trim()}`] = '';
  }
  return prints;
}

/** The section header may be on the same line. */
const GOVERNING_SETTING =
  /^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(?:hooksPath|fsmonitor|sshCommand|editor|pager|worktree|attributesFile|excludesFile|textconv|external|command|clean|smudge|process|driver|helper|program|askPass|gitProxy|path|insteadOf|pushInsteadOf|fileMode|symlinks|ignoreCase|checkStat|trustCtime|worktreeConfig|sparseCheckout)[ \t]*(?:=.*)?$/gim;

const UNREADABLE = [...ABSENT, ...REFUSED];

function entriesOf(folder: string) {
  return tolerate(UNREADABLE, [], () => readdirSync(folder, { withFileTypes: true }));
}

/** When content or mode changed. Nobody can set this time back. */
function changedAt(path: string): number {
  return tolerate(UNREADABLE, 0, () => lstatSync(path).ctimeMs);
}

function readFileIfAny(path: string): string | null {
  // Reading a pipe would never end.
  return tolerate(UNREADABLE, null, () => (statSync(path).isFile() ? readFileSync(path, 'utf8') : null));
}
