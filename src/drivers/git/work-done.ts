// What a run has changed in its repository, compared with the commit it started from. Reads only.

import type { Result } from '../../base/errors.ts';
import { asResult, type GitProblem } from './git.ts';
import { changedPaths, LISTING_ARGS, readListing } from './listing.ts';
import { readRunRecord, type Repository } from './repository.ts';
import { exists, type RunRecord } from './worktree-paths.ts';

export interface WorkDone extends RunRecord {
  /** Commits that the run added. */
  readonly commits: number;
  /** Changed and new files that are not committed. */
  readonly uncommitted: number;
  /** In git's words; untracked files do not count. Null if nothing has changed. */
  readonly diffstat: string | null;
}

/** Null if the run has no tree, or no longer. */
export function workDone({ info }: Repository, run: string): Promise<Result<WorkDone | null, GitProblem>> {
  return asResult(async () => {
    const record = readRunRecord(info.commonDir, run);
    if (record === null || !exists(record.path)) return null;
    const { git } = info;
    const cwd = record.path;
    const [listing, commits, diffstat] = await Promise.all([
      git.run(LISTING_ARGS, { cwd }),
      git.line(['rev-list', '--count', `${record.base}..HEAD`], { cwd }),
      git.line(['diff', '--shortstat', '--no-ext-diff', '--no-textconv', record.base], { cwd }),
    ]);
    const uncommitted = changedPaths(readListing(listing)).length;
    return { ...record, commits: Number(commits), uncommitted, diffstat: diffstat.trim() || null };
  });
}
