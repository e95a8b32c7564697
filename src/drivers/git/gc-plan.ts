// What of the runs' worktrees, branches and refs may go. Pure.
//
// G1  What belongs to a run that lives is kept, whatever is asked for.
// G2  A worktree with changes, or with commits that no other branch or tag has, is kept, and so is what belongs to a run that
//     nobody knows; unless that run's removal is forced.
// G3  What is kept has its reasons told, all of them.
//
// Snapshots, and what restores have undone, are the run's own, and go with it.

export interface RunRemains {
  readonly run: string;
  readonly worktree: {
    readonly path: string;
    /** Not all of it may be there. */
    readonly isThere: boolean;
    /** Somebody has locked it: `git worktree lock`. */
    readonly isLocked: boolean;
    /** Paths with changes. */
    readonly changed: readonly string[];
  } | null;
  readonly branch: string | null;
  /** Commits of its branch and of its worktree that no other branch or tag has. */
  readonly ownCommits: number;
  /** Refs, save the branch. */
  readonly refs: readonly string[];
}

export interface GcQuestion {
  readonly standing: (run: string) => 'live' | 'ended' | 'unknown';
  readonly isForced: (run: string) => boolean;
}

export interface GcVerdict {
  readonly run: string;
  readonly isRemoved: boolean;
  /** Why it is kept, or is not although it would be; sentences. */
  readonly reasons: readonly string[];
}

export function planGc(remains: readonly RunRemains[], question: GcQuestion): readonly GcVerdict[] {
  return remains.map((one) => judge(one, question));
}

function judge({ run, worktree, branch, ownCommits }: RunRemains, question: GcQuestion): GcVerdict {
  const standing = question.standing(run);
  if (standing === 'live') return { run, isRemoved: false, reasons: [`the run ${run} has not ended`] };
  const reasons: string[] = [];
  if (standing === 'unknown') reasons.push(`nothing is known of a run ${run} here`);
  if (worktree !== null && worktree.changed.length > 0) {
    const [first = ''] = worktree.changed;
    const others = worktree.changed.length - 1;
    const more = others > 0 ? ` and ${others} more` : '';
    reasons.push(`${worktree.path} has changes that are not committed: ${first}${more}`);
  }
  if (worktree?.isLocked === true) reasons.push(`${worktree.path} is locked (git worktree unlock)`);
  if (ownCommits > 0) {
    const commits = ownCommits === 1 ? '1 commit' : `${ownCommits} commits`;
    reasons.push(`${branch ?? worktree?.path ?? run} has ${commits} that no other branch or tag has`);
  }
  return { run, isRemoved: reasons.length === 0 || question.isForced(run), reasons };
}
