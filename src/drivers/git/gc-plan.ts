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
    /** False if the folder is gone or incomplete. */
    readonly isThere: boolean;
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
  if (worktree !== null && worktree.changed.length > 0) {
    const [first = ''] = worktree.changed;
    const others = worktree.changed.length - 1;
    const more = others > 0 ? ` and ${others} more` : '';
    reasons.push(`${worktree.path} has uncommitted changes: ${first}${more}`);
  }
  if (worktree?.isLocked === true) reasons.push(`${worktree.path} is locked (git worktree unlock)`);
  if (ownCommits > 0) {
    const commits = ownCommits === 1 ? '1 commit' : `${ownCommits} commits`;
    reasons.push(`${branch ?? worktree?.path ?? run} has ${commits} that no other branch or tag has`);
  }
  return { run, isRemoved: reasons.length === 0 || question.isForced(run), reasons };
}
