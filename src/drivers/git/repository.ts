// The user's repository, and the working trees that runs get from it.
//
// Supported: a detached HEAD, a shallow or partial clone, submodules (empty folders in a new worktree, as git makes them; see
// snapshot.ts), a folder within a linked worktree, a sparse checkout, SHA-256, any bytes in paths. Refused before anything
// is done: no repository, a bare one, one without a commit.
//
// The user's own tree is never touched: not its files, index, HEAD, stash or reflogs. A run adds to the repository: a branch,
// a worktree, refs/meow, and a folder `meow` (worktree-paths.ts).
//
// A worktree is added in steps, and a crash may follow any of them: write run.json (only if branch and path are free), create
// the branch, register the worktree without files, check out the files, take the lease. A repeated call continues with the
// next step. Nothing is forced: whatever differs from run.json belongs to somebody else.

import { lstat, mkdir, readdir, readFile, realpath, rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Result } from '../../base/result.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { readJsonFile } from '../../sys/json-file.ts';
import { failed, Git, withoutEnd } from './git.ts';
import { createJsonFile, leaseHolder, takeLease } from './lease.ts';
import { isClean, LISTING_ARGS, readListing } from './listing.ts';
import type { Listing } from './listing.ts';
import { textOf } from './names.ts';
import { runFolder } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';
import { answering, GitError } from './git-error.ts';
import type { GitProblem } from './git-error.ts';
import { Worktree } from './worktree.ts';

export interface RunRecord {
  readonly kind: WorktreeInfo['kind'];
  readonly path: string;
  readonly branch: string | null;
  readonly base: string;
}

const OLDEST = [2, 31] as const;

export class Repository {
  readonly git: Git;
  /** Top folder of the working tree. */
  readonly path: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** Commit of HEAD. */
  readonly head: string;
  readonly #oidBytes: number;
  readonly #refsAreFiles: boolean;

  /** `environment`: of the user. */
  static open(folder: string, environment: Readonly<Record<string, string>>): Promise<Result<Repository, GitProblem>> {
    return answering(async () => {
      const git = new Git(environment);
      checkVersion(await git.line(['version'], { cwd: '/' }));
      const ask = async (...args: readonly string[]): Promise<string> => {
        const answer = await git.ask(['rev-parse', '--path-format=absolute', ...args], { cwd: folder });
        if (answer.status !== 0) throw notARepository(folder, args, answer);
        return answer.stdout.toString('utf8').replace(/\n$/, '');
      };
      if ((await ask('--is-bare-repository')) === 'true') {
        throw new GitError(
          'bare',
          `${folder} is a bare repository, without files to work on`,
          'clone it, and run in the clone',
        );
      }
      const [path, gitDir, commonDir, format, ref] = await Promise.all([
        ask('--show-toplevel'),
        ask('--git-dir'),
        ask('--git-common-dir'),
        ask('--show-object-format'),
        git.ask(['config', '--get', 'extensions.refStorage'], { cwd: folder }),
      ]);
      const head = await git.ask(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], { cwd: folder });
      if (head.status !== 0) {
        throw new GitError(
          'no-commits',
          `the repository ${path} has no commit yet, so there is nothing to start from`,
          'make one: git add -A && git commit',
        );
      }
      return new Repository({
        git,
        path,
        gitDir,
        commonDir,
        head: withoutEnd(head.stdout),
        oidBytes: format === 'sha256' ? 32 : 20,
        refsAreFiles: ref.status !== 0 || /^files(?:$|:)/.test(withoutEnd(ref.stdout)),
      });
    });
  }

  private constructor(found: {
    readonly git: Git;
    readonly path: string;
    readonly gitDir: string;
    readonly commonDir: string;
    readonly head: string;
    readonly oidBytes: number;
    readonly refsAreFiles: boolean;
  }) {
    this.git = found.git;
    this.path = found.path;
    this.gitDir = found.gitDir;
    this.commonDir = found.commonDir;
    this.head = found.head;
    this.#oidBytes = found.oidBytes;
    this.#refsAreFiles = found.refsAreFiles;
  }

  /** A worktree of the run's own, on a branch of its own. Idempotent for a run, also after a crash or a resume. */
  addWorktree(request: {
    readonly run: string;
    readonly path: string;
    /** A commit id, since a branch may move. */
    readonly base: string;
    /** The run's folder: neither may be inside the other. */
    readonly runFolder: string;
  }): Promise<Result<Worktree, GitProblem>> {
    return answering(async () => {
      const { run, base } = request;
      const path = await resolveLinks(request.path);
      const branch = branchOf(run);
      const record: RunRecord = { kind: 'worktree', path, branch, base };
      const known = readRunRecord(this.commonDir, run);
      if (known === null) {
        await checkApart(path, await resolveLinks(request.runFolder));
        await this.#checkIgnored(path, 'the worktree');
        await this.#checkFree(path, branch);
        await this.#writeRunRecord(run, record);
      } else {
        checkSame(run, known, record);
      }
      let gitDir = await this.#gitDirAt(path);
      if (gitDir === null || leaseHolder(gitDir) === null) gitDir = await this.#finishAdding(path, branch, base);
      await takeLease({ gitDir, path, run });
      return new Worktree(this.#infoOf(run, record, gitDir));
    });
  }

  /** The user's own tree, for a run that works in place. */
  inPlace(request: { readonly run: string; readonly runFolder: string }): Promise<Result<Worktree, GitProblem>> {
    return answering(async () => {
      const { run } = request;
      const known = readRunRecord(this.commonDir, run);
      if (known !== null) {
        checkSame(run, known, { ...known, kind: 'in-place', path: this.path });
        await takeLease({ gitDir: this.gitDir, path: this.path, run });
        return new Worktree(this.#infoOf(run, known, this.gitDir));
      }
      await this.#checkIgnored(await resolveLinks(request.runFolder), "the run's folder");
      const { branch } = await this.#cleanListing();
      const record: RunRecord = { kind: 'in-place', path: this.path, branch, base: this.head };
      await takeLease({ gitDir: this.gitDir, path: this.path, run });
      await this.#writeRunRecord(run, record);
      return new Worktree(this.#infoOf(run, record, this.gitDir));
    });
  }

  /** Whether the tree is clean enough for a run in place. */
  checkClean(): Promise<Result<void, GitProblem>> {
    return answering(async () => void (await this.#cleanListing()));
  }

  async #cleanListing(): Promise<Listing> {
    const listing = readListing(await this.git.run(LISTING_ARGS, { cwd: this.path }));
    if (isClean(listing)) return listing;
    const [first = ''] = [...listing.changed.map(({ name }) => name), ...listing.untracked, ...listing.nested];
    throw new GitError(
      'dirty',
      `${this.path} has uncommitted changes (${textOf(first)}), which a run in place could not tell from its own`,
      'commit or stash them, untracked files too; or run without --in-place',
    );
  }

  #infoOf(run: string, record: RunRecord, gitDir: string): WorktreeInfo {
    const { commonDir } = this;
    const git = this.git.notAbove(dirname(record.path));
    return { ...record, git, run, gitDir, commonDir, oidBytes: this.#oidBytes, refsAreFiles: this.#refsAreFiles };
  }

  async #writeRunRecord(run: string, record: RunRecord): Promise<void> {
    makeFolder(runFolder(this.commonDir, run));
    if (await createJsonFile(join(runFolder(this.commonDir, run), 'run.json'), record)) return;
    const known = readRunRecord(this.commonDir, run);
    if (known !== null) checkSame(run, known, record);
  }

  async #checkFree(path: string, branch: string): Promise<void> {
    if ((await this.#tipOf(branch)) !== null) throw branchTaken(branch);
    const names = await folderNames(path);
    if (names !== null && names.length > 0) {
      throw new GitError(
        'path-taken',
        `${path} exists and does not belong to this run`,
        'move it away, or choose another --id',
      );
    }
  }

  async #tipOf(branch: string): Promise<string | null> {
    const args = ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`];
    const answer = await this.git.ask(args, { cwd: this.path });
    return answer.status === 0 ? withoutEnd(answer.stdout) : null;
  }

  /** A path inside the user's tree must be ignored by git, or it would show in `git status`. */
  async #checkIgnored(path: string, what: string): Promise<void> {
    const main = basename(this.commonDir) === '.git' ? [dirname(this.commonDir)] : [];
    for (const top of new Set([this.path, ...main])) {
      if (!isInside(path, await realpath(top))) continue;
      const inTree = relative(await realpath(top), path);
      const args = ['check-ignore', '--quiet', '--', join(inTree, 'x')];
      const answer = await this.git.ask(args, { cwd: top });
      if (answer.status === 0) continue;
      if (answer.status !== 1) throw failed(args, answer);
      throw new GitError(
        'not-ignored',
        `${what} would be ${path}, inside the repository, and git does not ignore it`,
        `add a line "${inTree.split(sep)[0]}/" to .gitignore or .git/info/exclude`,
      );
    }
  }

  /** Null if there is no worktree of this repository at the path, or it is incomplete. */
  async #gitDirAt(path: string): Promise<string | null> {
    if ((await folderNames(path)) === null) return null;
    const ask = async (what: string): Promise<string | null> => {
      const answer = await this.git.ask(['rev-parse', '--path-format=absolute', what], { cwd: path });
      return answer.status === 0 ? answer.stdout.toString('utf8').replace(/\n$/, '') : null;
    };
    const [top, gitDir, commonDir] = [
      await ask('--show-toplevel'),
      await ask('--git-dir'),
      await ask('--git-common-dir'),
    ];
    return top === path && commonDir === this.commonDir ? gitDir : null;
  }

  async #finishAdding(path: string, branch: string, base: string): Promise<string> {
    let gitDir = await this.#gitDirAt(path);
    if (gitDir === null) await this.#clearHalfAdded(path);
    const tip = await this.#tipOf(branch);
    if (tip !== null && tip !== base) throw branchTaken(branch);
    if (gitDir === null) {
      await mkdir(dirname(path), { recursive: true });
      if (tip === null) await this.git.run(['branch', '--no-track', branch, base], { cwd: this.path });
      await this.git.run(['worktree', 'add', '--no-checkout', path, branch], { cwd: this.path });
      gitDir = await this.#gitDirAt(path);
      if (gitDir === null)
        throw new GitError('gone', `the worktree ${path} does not exist after it was added`, 'try again');
    }
    // Completes what a killed git has left undone.
    await this.git.run(['symbolic-ref', 'HEAD', `refs/heads/${branch}`], { cwd: path });
    await rm(join(gitDir, 'index.lock'), { force: true });
    await this.git.run(['reset', '--hard', '--quiet', base], { cwd: path });
    await rm(join(gitDir, 'locked'), { force: true });
    return gitDir;
  }

  /** Removes what an interrupted addition leaves: a file `.git`, and its registration in the repository. */
  async #clearHalfAdded(path: string): Promise<void> {
    const names = await folderNames(path);
    if (names !== null && names.some((name) => name !== '.git')) {
      throw new GitError(
        'path-taken',
        `${path} exists and does not belong to this run`,
        'move it away, then resume the run',
      );
    }
    const registered = join(this.commonDir, 'worktrees');
    for (const name of (await folderNames(registered)) ?? []) {
      if ((await readText(join(registered, name, 'gitdir')))?.trimEnd() !== join(path, '.git')) continue;
      if (leaseHolder(join(registered, name)) !== null) {
        throw new GitError('gone', `the worktree ${path} was deleted`, 'start another run; its branch still exists');
      }
      await rm(join(registered, name), { recursive: true });
    }
    if (names === null) return;
    if (names.length > 0) await unlink(join(path, '.git'));
    await rmdir(path);
  }
}

export function branchOf(run: string): string {
  return `meow/run-${run}`;
}

export function readRunRecord(commonDir: string, run: string): RunRecord | null {
  return readJsonFile(join(runFolder(commonDir, run), 'run.json')) as RunRecord | null;
}

function checkSame(run: string, known: RunRecord, wanted: RunRecord): void {
  if (known.kind === wanted.kind && known.path === wanted.path && known.base === wanted.base) return;
  throw new GitError(
    'path-taken',
    `the run ${run} uses ${known.path} from ${known.base.slice(0, 12)}, not in ${wanted.path} from ${wanted.base.slice(0, 12)}`,
    'resume it as it was started, or choose another --id',
  );
}

function branchTaken(branch: string): GitError {
  return new GitError(
    'branch-taken',
    `the branch ${branch} exists and does not belong to this run`,
    `choose another --id, or delete it: git branch -D ${branch}`,
  );
}

function checkVersion(version: string): void {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(version) ?? [];
  if (Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1])) return;
  throw new GitError('git-too-old', `${version} is too old`, `install git ${OLDEST.join('.')} or newer`);
}

function notARepository(
  folder: string,
  args: readonly string[],
  answer: { readonly status: number; readonly stderr: string; readonly stdout: Buffer; readonly pid: number },
): GitError {
  if (/must be run in a work tree/.test(answer.stderr)) {
    return new GitError('bare', `${folder} is not in a working tree`, 'run in a working tree of the repository');
  }
  if (!/not a git repository/i.test(answer.stderr)) return failed(['rev-parse', ...args], answer);
  return new GitError(
    'no-repository',
    `${folder} is not in a git repository`,
    'change to one, or create one: git init && git add -A && git commit',
  );
}

async function checkApart(path: string, folder: string): Promise<void> {
  if (!isInside(path, folder) && !isInside(folder, path)) return;
  throw new GitError(
    'nested',
    `the worktree ${path} and the run's folder ${folder} are inside one another`,
    'choose another folder: artifacts_dir in the workflow',
  );
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

/** Resolves links in the existing part of a path that may not exist yet. */
async function resolveLinks(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch (error) {
    if (!isErrno(error, ...ABSENT)) throw error;
    return join(await resolveLinks(dirname(absolute)), basename(absolute));
  }
}

/** Null if there is no such folder. */
async function folderNames(path: string): Promise<readonly string[] | null> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    if (!isErrno(error, 'ENOTDIR')) throw error;
    // A file is in the way like a folder with contents.
    await lstat(path);
    return [path];
  }
}

async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
