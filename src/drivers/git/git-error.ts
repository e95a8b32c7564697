// Why something about git cannot be done: a kind for programs, a sentence for people, and what they can do about it.
//
// Within this folder a problem travels as a Refusal, which is thrown; whoever stands outside is answered with a Result.

import { EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';

export type GitProblemKind =
  | 'git-missing'
  | 'git-too-old'
  | 'no-repository'
  | 'bare'
  | 'no-commits'
  /** A working tree, or what is to be in it, is not there any more. */
  | 'gone'
  | 'dirty'
  | 'not-ignored'
  /** One folder would be inside of the other. */
  | 'nested'
  | 'path-taken'
  | 'branch-taken'
  /** Another run works there. */
  | 'leased'
  | 'protected'
  /** Somebody else has moved the branch, or has it checked out. */
  | 'moved'
  /** A repository within the tree would have to be put back, whose contents no snapshot has. */
  | 'opaque'
  | 'no-snapshot'
  /** Somebody's git is at work there, or has died at it. */
  | 'locked'
  /** The machine will not let us. */
  | 'refused'
  | 'git-failed';

export interface GitProblem {
  readonly kind: GitProblemKind;
  readonly message: string;
  readonly cure: string;
}

export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly problem: GitProblem;

  constructor(kind: GitProblemKind, message: string, cure: string) {
    super(message);
    this.problem = { kind, message, cure };
  }
}

/** What `act` refuses, and what the machine does, becomes a value; anything else is thrown on. */
export async function answering<T>(act: () => Promise<T>): Promise<Result<T, GitProblem>> {
  try {
    return ok(await act());
  } catch (error) {
    if (error instanceof Refusal) return err(error.problem);
    if (isErrno(error, ...REFUSED, ...EXHAUSTED)) {
      return err({
        kind: 'refused',
        message: error.message,
        cure: 'make it readable and writable, with room on the disk',
      });
    }
    throw error;
  }
}
