// Finds what runs have left in a repository, and removes it by the rules of gc-plan.ts. Each removal checks again before it acts,
// and can be repeated.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Result } from '../../base/result.ts';
import { planGc } from './gc-plan.ts';
import type { GcQuestion, GcVerdict, RunRemains } from './gc-plan.ts';
import { withoutEnd } from './git.ts';
import { LEASE_FILE, leaseHolder } from './lease.ts';
import { LISTING_ARGS, readListing } from './listing.ts';
import { textOf } from './names.ts';
import { exists, isRunName, namesIn, runFolder } from './worktree-paths.ts';
import { answering, GitError } from './git-error.ts';
import type { GitProblem } from './git-error.ts';
import { branchOf, readRunRecord } from './repository.ts';
import type { Repository } from './repository.ts';

/** Remains of all runs, sorted by id. */
export function findRemains(repository: Repository): Promise<Result<readonly RunRemains[], GitProblem>> {
  return answering(async () => {
    const refs = await refsOf(repository);
    const trees = await worktreesOf(repository);
    const prefix = `refs/heads/${branchOf('')}`;
    const runs = new Set([
      ...namesIn(join(repository.commonDir, 'meow')),
      // A run that was killed before it wrote anything else.
      ...[leaseHolder(repository.gitDir)].filter((run) => run !== null),
      ...refs.flatMap((ref) => /^refs\/meow\/([^/]+)\//.exec(ref)?.[1] ?? []),
      ...refs.filter((ref) => ref.startsWith(prefix)).map((ref) => ref.slice(prefix.length)),
    ]);
    return Promise.all(
      [...runs]
        .filter(isRunName)
        .sort()
        .map((run) => remainsOf(repository, run, refs, trees)),
    );
  });
}

/** The verdict says what was done. */
export function removeRemains(
  repository: Repository,
  run: string,
  question: GcQuestion,
): Promise<Result<GcVerdict, GitProblem>> {
  return answering(async () => {
    const { git, commonDir: cwd, gitDir } = repository;
    const remains = await remainsOf(repository, run, await refsOf(repository), await worktreesOf(repository));
    const [verdict] = planGc([remains], question);
    if (verdict?.isRemoved !== true) return verdict ?? { run, isRemoved: false, reasons: [] };
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
    await rm(runFolder(repository.commonDir, run), { recursive: true, force: true });
    return verdict;
  });
}

interface ListedTree {
  readonly path: string;
  readonly isLocked: boolean;
}

async function worktreesOf({ git, commonDir: cwd }: Repository): Promise<readonly ListedTree[]> {
  const output = (await git.run(['worktree', 'list', '--porcelain'], { cwd })).toString('utf8');
  return output.split('\n\n').map((text) => ({
    path: /^worktree ([\s\S]*?)(?:\nHEAD |\nbare$|$)/.exec(text)?.[1] ?? '',
    isLocked: /\nlocked(?: |$)/.test(text),
  }));
}

async function refsOf({ git, commonDir: cwd }: Repository): Promise<readonly string[]> {
  const args = ['for-each-ref', '--format=%(refname)', 'refs/meow/', `refs/heads/${branchOf('*')}`];
  return withoutEnd(await git.run(args, { cwd }))
    .split('\n')
    .filter((ref) => ref !== '');
}

async function remainsOf(
  repository: Repository,
  run: string,
  allRefs: readonly string[],
  trees: readonly ListedTree[],
): Promise<RunRemains> {
  const { git, commonDir } = repository;
  const record = readRunRecord(commonDir, run);
  const branch = allRefs.includes(`refs/heads/${branchOf(run)}`) ? branchOf(run) : null;
  const tree = record?.kind === 'worktree' ? trees.find(({ path }) => path === record.path) : undefined;
  const tips: string[] = branch === null ? [] : [`refs/heads/${branch}`];
  let worktree: RunRemains['worktree'] = null;
  if (tree !== undefined) {
    const isThere = exists(join(tree.path, '.git'));
    const listing = isThere ? readListing(await git.run(LISTING_ARGS, { cwd: tree.path })) : null;
    if (listing?.head !== undefined && listing.head !== null) tips.push(listing.head);
    const names =
      listing === null ? [] : [...listing.changed.map(({ name }) => name), ...listing.untracked, ...listing.nested];
    worktree = { path: tree.path, isLocked: tree.isLocked, isThere, changed: [...new Set(names)].map(textOf) };
  }
  // The base commit is not the run's own, even if no branch has it any more.
  const others = [
    ...(record === null ? [] : [record.base]),
    `--exclude=${branchOf(run)}`,
    '--branches',
    '--tags',
    '--remotes',
  ];
  const ownCommits =
    tips.length === 0 ? '0' : await git.line(['rev-list', '--count', ...tips, '--not', ...others], { cwd: commonDir });
  const refs = allRefs.filter((ref) => ref.startsWith(`refs/meow/${run}/`));
  return { run, worktree, branch, ownCommits: Number(ownCommits), refs };
}
