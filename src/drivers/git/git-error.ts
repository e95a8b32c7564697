// Failures around git: a kind for programs, a sentence for people, and what they can do about it.
//
// Inside this folder a failure is a thrown GitError; the public functions return it as a Result.

import { EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';

export type GitProblemKind =
  | 'git-missing'
  | 'git-too-old'
  | 'no-repository'
  | 'bare'
  | 'no-commits'
  /** A working tree, or something in it, no longer exists. */
  | 'gone'
  | 'dirty'
  | 'not-ignored'
  /** One folder would be inside the other. */
  | 'nested'
  | 'path-taken'
  | 'branch-taken'
  /** Another run uses the working tree. */
  | 'leased'
  | 'protected'
  /** Somebody else has moved the branch, or has it checked out. */
  | 'moved'
  /** A repository within the tree has changed, and no snapshot has its contents. */
  | 'opaque'
  | 'no-snapshot'
  /** Another git is running there, or was killed and left its lock. */
  | 'locked'
  /** The operating system refuses. */
  | 'refused'
  | 'git-failed';

export interface GitProblem {
  readonly kind: GitProblemKind;
  readonly message: string;
  readonly cure: string;
}

export class GitError extends Error {
  override readonly name = 'GitError';
  readonly problem: GitProblem;

  constructor(kind: GitProblemKind, message: string, cure: string) {
    super(message);
    this.problem = { kind, message, cure };
  }
}

/** Returns a GitError or an error of the operating system as a value; any other exception is thrown. */
export async function answering<T>(act: () => Promise<T>): Promise<Result<T, GitProblem>> {
  try {
    return ok(await act());
  } catch (error) {
    if (error instanceof GitError) return err(error.problem);
    if (isErrno(error, ...REFUSED, ...EXHAUSTED)) {
      return err({
        kind: 'refused',
        message: error.message,
        cure: 'check its permissions and the free space on the disk',
      });
    }
    throw error;
  }
}
