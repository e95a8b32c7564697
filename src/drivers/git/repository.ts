// The user's repository: what a run needs of it, and the working trees that runs get of it.
//
// What works: HEAD detached, a shallow or partial clone, submodules (a new working tree has their folders, empty, as git
// makes it; snapshot.ts says what is known of them), a folder within a linked worktree, a sparse checkout, SHA-256, any
// bytes in paths. What does not is refused before anything is done: no repository, a bare one, one without a commit.
//
// The user's own tree is never touched: not its files, nor its index, HEAD, stash or the logs of its branch. What is added
// to the repository: a branch, a worktree, refs/meow, and a folder `meow` (worktree-paths.ts).
//
// A worktree is added in acts, each of which a crash may follow: run.json says what is meant to be (only if branch and path are
// free), git makes the branch, registers the worktree without files, checks them out; the lease says that it is complete.
// Asked for again, the next act follows. No act is forced: what is not as run.json says is somebody else's.

import { lstat, mkdir, readdir, readFile, realpath, rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Result } from '../../base/result.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { readJsonFile } from '../../sys/json-file.ts';
import { failed, Git, withoutEnd } from './git.ts';
import { createWhole, leaseHolder, takeLease } from './lease.ts';
import { isClean, LISTING_ARGS, readListing } from './listing.ts';
import type { Listing } from './listing.ts';
import { textOf } from './names.ts';
import { runFolder } from './worktree-paths.ts';
import type { Place } from './worktree-paths.ts';
import { answering, Refusal } from './git-error.ts';
import type { GitProblem } from './git-error.ts';
import { Worktree } from './worktree.ts';

export interface RunRecord {
  readonly kind: Place['kind'];
  readonly path: string;
  readonly branch: string | null;
  readonly base: string;
}

const OLDEST = [2, 31] as const;

export class Repository {
  readonly git: Git;
  /** Top of the working tree that the folder is in. */
  readonly path: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** Commit that HEAD is at. */
  readonly head: string;
  readonly #oidBytes: number;
  readonly #refsAreFiles: boolean;

  /** `environment`: the user's. */
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
        throw new Refusal(
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
        throw new Refusal(
          'no-commits',
          `the repository ${path} has no commit yet, so there is nothing to begin from`,
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

  /**
   * A worktree of the run's own, on a branch of its own. The same again for the same run, also after a crash, or where it
   * was resumed.
   */
  addWorktree(request: {
    readonly run: string;
    readonly path: string;
    /** A commit; the name of a branch will move. */
    readonly base: string;
    /** The run's folder: neither is to be inside of the other. */
    readonly runFolder: string;
  }): Promise<Result<Worktree, GitProblem>> {
    return answering(async () => {
      const { run, base } = request;
      const path = await realFuture(request.path);
      const branch = branchOf(run);
      const record: RunRecord = { kind: 'worktree', path, branch, base };
      const known = readRunRecord(this.commonDir, run);
      if (known === null) {
        await checkApart(path, await realFuture(request.runFolder));
        await this.#checkIgnored(path, 'the worktree');
        await this.#checkFree(path, branch);
        await this.#writeRunRecord(run, record);
      } else {
        checkSame(run, known, record);
      }
      let gitDir = await this.#gitDirAt(path);
      if (gitDir === null || leaseHolder(gitDir) === null) gitDir = await this.#finishAdding(path, branch, base);
      await takeLease({ gitDir, path, run });
      return new Worktree(this.#place(run, record, gitDir));
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
        return new Worktree(this.#place(run, known, this.gitDir));
      }
      await this.#checkIgnored(await realFuture(request.runFolder), "the run's folder");
      const { branch } = await this.#cleanListing();
      const record: RunRecord = { kind: 'in-place', path: this.path, branch, base: this.head };
      await takeLease({ gitDir: this.gitDir, path: this.path, run });
      await this.#writeRunRecord(run, record);
      return new Worktree(this.#place(run, record, this.gitDir));
    });
  }

  /** Whether a run in place could begin, as far as the tree is concerned. */
  checkClean(): Promise<Result<void, GitProblem>> {
    return answering(async () => void (await this.#cleanListing()));
  }

  async #cleanListing(): Promise<Listing> {
    const listing = readListing(await this.git.run(LISTING_ARGS, { cwd: this.path }));
    if (isClean(listing)) return listing;
    const [first = ''] = [...listing.changed.map(({ name }) => name), ...listing.untracked, ...listing.nested];
    throw new Refusal(
      'dirty',
      `${this.path} has changes that are not committed (${textOf(first)}), and a run in place could not tell them from its own`,
      'commit or stash them, untracked files too; or run without --in-place',
    );
  }

  #place(run: string, record: RunRecord, gitDir: string): Place {
    const { commonDir } = this;
    const git = this.git.notAbove(dirname(record.path));
    return { ...record, git, run, gitDir, commonDir, oidBytes: this.#oidBytes, refsAreFiles: this.#refsAreFiles };
  }

  async #writeRunRecord(run: string, record: RunRecord): Promise<void> {
    makeFolder(runFolder(this.commonDir, run));
    if (await createWhole(join(runFolder(this.commonDir, run), 'run.json'), record)) return;
    const known = readRunRecord(this.commonDir, run);
    if (known !== null) checkSame(run, known, record);
  }

  async #checkFree(path: string, branch: string): Promise<void> {
    if ((await this.#tipOf(branch)) !== null) throw branchTaken(branch);
    const names = await folderNames(path);
    if (names !== null && names.length > 0) {
      throw new Refusal(
        'path-taken',
        `${path} is there already, and is not this run's`,
        'move it away, or run with another --id',
      );
    }
  }

  async #tipOf(branch: string): Promise<string | null> {
    const args = ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`];
    const answer = await this.git.ask(args, { cwd: this.path });
    return answer.status === 0 ? withoutEnd(answer.stdout) : null;
  }

  /** In the user's tree only where git ignores it: else `git status` there would be another. */
  async #checkIgnored(path: string, what: string): Promise<void> {
    const main = basename(this.commonDir) === '.git' ? [dirname(this.commonDir)] : [];
    for (const top of new Set([this.path, ...main])) {
      if (!isInside(path, await realpath(top))) continue;
      const inTree = relative(await realpath(top), path);
      const args = ['check-ignore', '--quiet', '--', join(inTree, 'x')];
      const answer = await this.git.ask(args, { cwd: top });
      if (answer.status === 0) continue;
      if (answer.status !== 1) throw failed(args, answer);
      throw new Refusal(
        'not-ignored',
        `${what} would be ${path}, inside of the repository, and git does not ignore it`,
        `add a line "${inTree.split(sep)[0]}/" to .gitignore or .git/info/exclude`,
      );
    }
  }

  /** Of the worktree at the path, if it is one of this repository and complete enough to be one. */
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
        throw new Refusal('gone', `the worktree ${path} is not there after it was added`, 'try again');
    }
    // Where git was stopped before it had written all of it.
    await this.git.run(['symbolic-ref', 'HEAD', `refs/heads/${branch}`], { cwd: path });
    await rm(join(gitDir, 'index.lock'), { force: true });
    await this.git.run(['reset', '--hard', '--quiet', base], { cwd: path });
    await rm(join(gitDir, 'locked'), { force: true });
    return gitDir;
  }

  /** What an addition without files can have left: a file `.git`, and its end in the repository. */
  async #clearHalfAdded(path: string): Promise<void> {
    const names = await folderNames(path);
    if (names !== null && names.some((name) => name !== '.git')) {
      throw new Refusal(
        'path-taken',
        `${path} is there already, and is not this run's`,
        'move it away, then resume the run',
      );
    }
    const registered = join(this.commonDir, 'worktrees');
    for (const name of (await folderNames(registered)) ?? []) {
      if ((await readText(join(registered, name, 'gitdir')))?.trimEnd() !== join(path, '.git')) continue;
      if (leaseHolder(join(registered, name)) !== null) {
        throw new Refusal('gone', `the worktree ${path} was deleted`, 'start another run; its branch is still there');
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
  throw new Refusal(
    'path-taken',
    `the run ${run} has worked in ${known.path} from ${known.base.slice(0, 12)}, not in ${wanted.path} from ${wanted.base.slice(0, 12)}`,
    'resume it as it was started, or run with another --id',
  );
}

function branchTaken(branch: string): Refusal {
  return new Refusal(
    'branch-taken',
    `there is a branch ${branch} already, which is not this run's`,
    `run with another --id, or delete it: git branch -D ${branch}`,
  );
}

function checkVersion(said: string): void {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(said) ?? [];
  if (Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1])) return;
  throw new Refusal('git-too-old', `${said} is too old`, `there must be git ${OLDEST.join('.')} or newer`);
}

function notARepository(
  folder: string,
  args: readonly string[],
  answer: { readonly status: number; readonly stderr: string; readonly stdout: Buffer; readonly pid: number },
): Refusal {
  if (/must be run in a work tree/.test(answer.stderr)) {
    return new Refusal('bare', `${folder} has no working tree around it`, 'run in a working tree of the repository');
  }
  if (!/not a git repository/i.test(answer.stderr)) return failed(['rev-parse', ...args], answer);
  return new Refusal(
    'no-repository',
    `${folder} is in no git repository`,
    'run in one, or make one: git init && git add -A && git commit',
  );
}

async function checkApart(path: string, folder: string): Promise<void> {
  if (!isInside(path, folder) && !isInside(folder, path)) return;
  throw new Refusal(
    'nested',
    `the worktree ${path} and the run's folder ${folder} are inside of one another`,
    'give them different folders: artifacts_dir in the workflow',
  );
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

/** Of a path that may not exist yet: links in what does are followed. */
async function realFuture(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch (error) {
    if (!isErrno(error, ...ABSENT)) throw error;
    return join(await realFuture(dirname(absolute)), basename(absolute));
  }
}

/** Null where there is no such folder. */
async function folderNames(path: string): Promise<readonly string[] | null> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    if (!isErrno(error, 'ENOTDIR')) throw error;
    // A file is as much in the way as a folder that is full.
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
