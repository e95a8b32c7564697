// Finds what runs have left in a repository, and removes it by the rules below. Each removal checks again before it acts, and can be
// repeated.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Result } from '../../base/errors.ts';
import { asResult, GitError, type GitProblem } from './git.ts';
import { changedPaths, LISTING_ARGS, readListing } from './listing.ts';
import { branchOf, readRunRecord, type Repository } from './repository.ts';
import { exists, isRunName, namesIn, runFolder } from './worktree-paths.ts';
import { LEASE_FILE, leaseHolder } from './worktree.ts';

/** Remains of all runs, sorted by id. */
export function findRemains(repository: Repository): Promise<Result<readonly RunRemains[], GitProblem>> {
  return asResult(async () => {
    const { commonDir, gitDir } = repository.info;
    const found = await findAll(repository);
    const prefix = `refs/heads/${branchOf('')}`;
    const runs = new Set([
      ...namesIn(join(commonDir, 'meow')),
      // A run that was killed before it wrote anything else.
      ...[leaseHolder(gitDir)].filter((run) => run !== null),
      ...found.refs.flatMap((ref) => /^refs\/meow\/([^/]+)\//.exec(ref)?.[1] ?? []),
      ...found.refs.filter((ref) => ref.startsWith(prefix)).map((ref) => ref.slice(prefix.length)),
    ]);
    const names = [...runs].filter(isRunName).sort();
    return Promise.all(names.map((run) => remainsOf(repository, run, found)));
  });
}

/** The verdict says what was done. */
export function removeRemains(
  repository: Repository,
  run: string,
  question: GcQuestion,
): Promise<Result<GcVerdict, GitProblem>> {
  return asResult(async () => {
    const { git, commonDir: cwd, gitDir } = repository.info;
    const remains = await remainsOf(repository, run, await findAll(repository));
    const verdict = judge(remains, question);
    if (!verdict.isRemoved) return verdict;
    const { worktree, branch, refs } = remains;
    if (worktree !== null) {
      if (worktree.isLocked) {
        throw new GitError('locked', `${worktree.path} is locked`, `git worktree unlock ${worktree.path}`);
      }
      // The plan has allowed whatever git would refuse for: submodules, and changes if forced.
      await git.run(['worktree', 'remove', '--force', worktree.path], { cwd });
    }
    if (branch !== null) await git.run(['branch', '-D', '--quiet', branch], { cwd });
    if (refs.length > 0) {
      await git.run(['update-ref', '--stdin'], { cwd, input: refs.map((ref) => `delete ${ref}\n`) });
    }
    if (leaseHolder(gitDir) === run) await rm(join(gitDir, LEASE_FILE), { force: true });
    await rm(runFolder(cwd, run), { recursive: true, force: true });
    return verdict;
  });
}

/** Refs and worktrees of all runs. */
interface Found {
  readonly refs: readonly string[];
  readonly trees: readonly { readonly path: string; readonly isLocked: boolean }[];
}

async function findAll({ info: { git, commonDir: cwd } }: Repository): Promise<Found> {
  const args = ['for-each-ref', '--format=%(refname)', 'refs/meow/', `refs/heads/${branchOf('*')}`];
  const refs = (await git.line(args, { cwd })).split('\n').filter((ref) => ref !== '');
  const output = (await git.run(['worktree', 'list', '--porcelain'], { cwd })).toString('utf8');
  const trees = output.split('\n\n').map((text) => ({
    path: /^worktree ([\s\S]*?)(?:\nHEAD |\nbare$|$)/.exec(text)?.[1] ?? '',
    isLocked: /\nlocked(?: |$)/.test(text),
  }));
  return { refs, trees };
}

async function remainsOf({ info }: Repository, run: string, found: Found): Promise<RunRemains> {
  const { git, commonDir: cwd } = info;
  const record = readRunRecord(cwd, run);
  const branch = found.refs.includes(`refs/heads/${branchOf(run)}`) ? branchOf(run) : null;
  const tree = record?.kind === 'worktree' ? found.trees.find(({ path }) => path === record.path) : undefined;
  const tips: string[] = branch === null ? [] : [`refs/heads/${branch}`];
  let worktree: RunRemains['worktree'] = null;
  if (tree !== undefined) {
    const isThere = exists(join(tree.path, '.git'));
    const listing = isThere ? readListing(await git.run(LISTING_ARGS, { cwd: tree.path })) : null;
    if (listing?.head) tips.push(listing.head);
    worktree = { ...tree, changed: listing === null ? [] : changedPaths(listing) };
  }
  // The base commit is not the run's own, even if no branch has it any more.
  const base = record === null ? [] : [record.base];
  const others = ['--not', ...base, `--exclude=${branchOf(run)}`, '--branches', '--tags', '--remotes'];
  const ownCommits = tips.length === 0 ? '0' : await git.line(['rev-list', '--count', ...tips, ...others], { cwd });
  const refs = found.refs.filter((ref) => ref.startsWith(`refs/meow/${run}/`));
  return { run, worktree, branch, ownCommits: Number(ownCommits), refs };
}

// Decides which worktrees, branches and refs of runs may be removed. Pure.
//
// gc/1  Nothing of a live run is removed, even if forced.
// gc/2  A worktree with uncommitted changes, or with commits that no other branch or tag has, is kept, and so is everything of
//       an unknown run, unless the removal of that run is forced.
// gc/3  Every reason for keeping something is reported.
//
// Snapshots and undone changes belong to the run, and are removed with it.

export interface RunRemains {
  readonly run: string;
  readonly worktree: {
    readonly path: string;
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

export function planGc(remains: readonly RunRemains[], question: GcQuestion): readonly GcVerdict[] {
  return remains.map((one) => judge(one, question));
}

function judge({ run, worktree, branch, ownCommits }: RunRemains, question: GcQuestion): GcVerdict {
  const standing = question.standing(run);
  if (standing === 'live') return { run, isRemoved: false, reasons: [`the run ${run} has not ended`] };
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
