// Finds what runs have left in a repository, and removes it by the rules below. Each removal checks again before it acts, and can be
// repeated.
//
// gc/4  Agents can write everything in the repository, so it only says that a run has left something. What that is follows
//       from the journal: the run's id, its worktree `.meow/worktrees/ID` and its branch `meow/run-ID`.
// gc/5  A folder is removed only if it is exactly that path, is not a link, and is registered as that worktree.

import { lstatSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Result } from '../../base/errors.ts';
import { asResult, type Git, GitError, type GitProblem } from './git.ts';
import { branchOf, type Repository } from './repository.ts';
import { type StartedRun, uncommittedIn } from './work-done.ts';
import { exists, isFolder, isRunName, namesIn, readSmallFile, registeredGitDir, runFolder } from './worktree-paths.ts';
import { LEASE_FILE, leaseHolder } from './worktree.ts';

/** Ids of all runs that seem to have left something, sorted. */
export function findRuns(repository: Repository): Promise<Result<readonly string[], GitProblem>> {
  return asResult(async () => {
    const { commonDir, gitDir } = repository.info;
    const prefix = `refs/heads/${branchOf('')}`;
    const refs = await refsOf(repository);
    const runs = new Set([
      ...namesIn(join(commonDir, 'meow')),
      // A run that was killed before it wrote anything else.
      ...[leaseHolder(gitDir)].filter((run) => run !== null),
      ...refs.flatMap((ref) => /^refs\/meow\/([^/]+)\//.exec(ref)?.[1] ?? []),
      ...refs.filter((ref) => ref.startsWith(prefix)).map((ref) => ref.slice(prefix.length)),
    ]);
    return [...runs].filter(isRunName).sort();
  });
}

export function findRemains(repository: Repository, known: KnownRun): Promise<Result<RunRemains, GitProblem>> {
  return asResult(async () => remainsOf(repository, known, await refsOf(repository)));
}

/** From the journal. Without one, a run can only have worked in the worktree that its id names, from an unknown commit. */
export type KnownRun = Omit<StartedRun, 'base'> & { readonly base: string | null };

/** The verdict says what was done. */
export function removeRemains(
  repository: Repository,
  known: KnownRun,
  question: GcQuestion,
): Promise<Result<GcVerdict, GitProblem>> {
  return asResult(async () => {
    const { commonDir: cwd, gitDir } = repository.info;
    const git = gitOf(repository);
    const { run } = known;
    const remains = await remainsOf(repository, known, await refsOf(repository));
    const verdict = judge(remains, question);
    if (!verdict.isRemoved) return verdict;
    const { worktree, branch, refs } = remains;
    const folder = runFolder(cwd, run);
    for (const above of [join(cwd, 'meow'), join(cwd, 'refs', 'meow'), join(cwd, 'worktrees')]) refuseLink(above);
    if (worktree !== null) {
      if (worktree.isLocked) {
        throw new GitError('locked', `${worktree.path} is locked`, `git worktree unlock ${worktree.path}`);
      }
      const registered = registeredGitDir(cwd, worktree.path);
      if (registered === null) throw new GitError('refused', unregistered(worktree.path), 'remove it by hand');
      await rm(worktree.path, { recursive: true, force: true });
      await rm(registered, { recursive: true, force: true });
    }
    for (const stale of registrationsOf(cwd, known.path)) await rm(stale, { recursive: true, force: true });
    if (branch !== null) await git.run(['branch', '-D', '--quiet', branch]);
    if (refs.length > 0) {
      await git.run(['update-ref', '--stdin'], { input: refs.map((ref) => `delete ${ref}\n`) });
    }
    if (leaseHolder(gitDir) === run) await rm(join(gitDir, LEASE_FILE), { force: true });
    await rm(folder, { recursive: true, force: true });
    return verdict;
  });
}

/** Files behind a link are not the run's. */
function refuseLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw new GitError(
    'refused',
    `${path} is a link, and nothing behind it is removed`,
    `see where it leads: ls -l ${path}`,
  );
}

function unregistered(path: string): string {
  return `${path} is not registered as a worktree of this repository, so it may be something else`;
}

/** Git folders of a worktree that somebody has deleted. */
function registrationsOf(commonDir: string, path: string): readonly string[] {
  const worktrees = join(commonDir, 'worktrees');
  if (exists(path)) return [];
  const folders = namesIn(worktrees).map((name) => join(worktrees, name));
  return folders.filter((folder) => readSmallFile(join(folder, 'gitdir'))?.trimEnd() === join(path, '.git'));
}

/** Without any configuration of the user. */
function gitOf({ info: { git, path, gitDir, commonDir } }: Repository): Git {
  return git.inTree(path, gitDir, commonDir);
}

async function refsOf(repository: Repository): Promise<readonly string[]> {
  const args = ['for-each-ref', '--format=%(refname)', 'refs/meow/', `refs/heads/${branchOf('*')}`];
  return (await gitOf(repository).line(args)).split('\n').filter((ref) => ref !== '');
}

async function remainsOf(repository: Repository, known: KnownRun, allRefs: readonly string[]): Promise<RunRemains> {
  const { commonDir } = repository.info;
  const { run, kind, path, base } = known;
  const branch = allRefs.includes(`refs/heads/${branchOf(run)}`) ? branchOf(run) : null;
  const tips: string[] = branch === null ? [] : [`refs/heads/${branch}`];
  let worktree: RunRemains['worktree'] = null;
  if (kind === 'worktree' && exists(path)) {
    const gitDir = isFolder(path) ? registeredGitDir(commonDir, path) : null;
    worktree = { path, isRegistered: gitDir !== null, isLocked: false, changed: [] };
    if (gitDir !== null) {
      const started = { ...known, base: base ?? repository.head };
      const { head, paths } = await uncommittedIn(repository, started, gitDir);
      if (head !== null) tips.push(head);
      worktree = { ...worktree, isLocked: exists(join(gitDir, 'locked')), changed: paths };
    }
  }
  // The base commit is not the run's own, even if no branch has it any more.
  const others = [
    '--not',
    ...(base === null ? [] : [base]),
    `--exclude=${branchOf(run)}`,
    '--branches',
    '--tags',
    '--remotes',
  ];
  const args = ['rev-list', '--count', ...tips, ...others];
  const ownCommits = tips.length === 0 ? '0' : await gitOf(repository).line(args);
  const refs = allRefs.filter((ref) => ref.startsWith(`refs/meow/${run}/`));
  return { run, worktree, branch, ownCommits: Number(ownCommits), refs };
}

// Decides which worktrees, branches and refs of runs may be removed. Pure.
//
// gc/1  Nothing of a live run is removed, even if forced, nor of a run whose folder was replaced (gc/5).
// gc/2  A worktree with uncommitted changes, or with commits that no other branch or tag has, is kept, and so is everything of
//       an unknown run, unless the removal of that run is forced.
// gc/3  Every reason for keeping something is reported.
//
// Snapshots and undone changes belong to the run, and are removed with it.

export interface RunRemains {
  readonly run: string;
  readonly worktree: {
    readonly path: string;
    /** The repository and the folder agree that it is a worktree. */
    readonly isRegistered: boolean;
    /** Locked by `git worktree lock`. */
    readonly isLocked: boolean;
    /** Paths with uncommitted changes. */
    readonly changed: readonly string[];
  } | null;
  readonly branch: string | null;
  /** Commits of its branch and of its worktree that no other branch or tag has. */
  readonly ownCommits: number;
  /** Refs other than the branch. */
  readonly refs: readonly string[];
}

export interface GcQuestion {
  readonly standing: (run: string) => 'live' | 'ended' | 'unknown';
  readonly isForced: (run: string) => boolean;
}

export interface GcVerdict {
  readonly run: string;
  readonly isRemoved: boolean;
  /** Sentences: why it is kept, or would be if it were not forced. */
  readonly reasons: readonly string[];
}

export function judge({ run, worktree, branch, ownCommits }: RunRemains, question: GcQuestion): GcVerdict {
  const standing = question.standing(run);
  if (standing === 'live') return { run, isRemoved: false, reasons: [`the run ${run} has not ended`] };
  if (worktree?.isRegistered === false) {
    const cure = 'see what it is, and remove it by hand';
    return { run, isRemoved: false, reasons: [`${unregistered(worktree.path)}: ${cure}`] };
  }
  const reasons: string[] = [];
  if (standing === 'unknown') reasons.push(`the run ${run} is unknown here`);
  const [first, ...others] = worktree?.changed ?? [];
  if (first !== undefined) {
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    reasons.push(`${worktree?.path} has uncommitted changes: ${first}${more}`);
  }
  if (worktree?.isLocked === true) reasons.push(`${worktree.path} is locked (git worktree unlock)`);
  if (ownCommits > 0) {
    const commits = ownCommits === 1 ? '1 commit' : `${ownCommits} commits`;
    reasons.push(`${branch ?? worktree?.path ?? run} has ${commits} that no other branch or tag has`);
  }
  return { run, isRemoved: reasons.length === 0 || question.isForced(run), reasons };
}
