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
// next step. Nothing is forced: whatever differs from run.json belongs to somebody else. run.json is durable before anything
// else is created, and the files are before the lease: after a power loss, a worktree without a lease is moved away and added
// again.
//
// Once the journal knows the state before the run, run.json and the lease only repeat it: whatever an agent has done to them,
// to the registration of the worktree or to the lease, they are written again.

import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, realpath, rename, rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';

import type { Result } from '../../base/errors.ts';
import { isJsonMap, type Json } from '../../base/json.ts';
import { ABSENT, isErrno, tolerateAsync } from '../../sys/errors.ts';
import { makeFolderBelow, readJsonFile, writeJsonFile } from '../../sys/files.ts';
import { syncDisk } from '../sync-disk.ts';
import { asResult, failed, Git, type GitAnswer, GitError, type GitProblem, withoutEnd } from './git.ts';
import { changedPaths, isClean, type Listing, LISTING_ARGS, readListing } from './listing.ts';
import { repairGitFiles } from './repair.ts';
import {
  gitDirIn,
  isFolder,
  readSmallFile,
  type RepositoryInfo,
  runFolder,
  type RunFacts,
  type RunRecord,
} from './worktree-paths.ts';
import { createJsonFile, leaseHolder, takeLease, Worktree } from './worktree.ts';

const OLDEST = [2, 31] as const;

export class Repository {
  /** About the user's tree. */
  readonly info: RepositoryInfo;
  /** Commit of HEAD. */
  readonly head: string;

  /** `environment`: of the user. */
  static open(folder: string, environment: Readonly<Record<string, string>>): Promise<Result<Repository, GitProblem>> {
    return asResult(async () => {
      const git = new Git(environment, folder);
      checkVersion(await git.line(['version'], { cwd: '/' }));
      const ask = async (...args: readonly string[]): Promise<string> => {
        const answer = await git.ask(['rev-parse', '--path-format=absolute', ...args]);
        if (answer.status !== 0) throw notARepository(folder, args, answer);
        return withoutEnd(answer.stdout, 'utf8');
      };
      if ((await ask('--is-bare-repository')) === 'true') {
        const message = `${folder} is a bare repository, without files to work on`;
        throw new GitError('bare', message, 'clone it, and run in the clone');
      }
      const [path, gitDir, commonDir, format, refStorage, excludesFile] = await Promise.all([
        ask('--show-toplevel'),
        ask('--git-dir'),
        ask('--git-common-dir'),
        ask('--show-object-format'),
        git.find(['config', '--get', 'extensions.refStorage']),
        git.find(['config', '--type=path', '--get', 'core.excludesFile']),
      ]);
      const head = await git.find(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
      if (head === null) {
        const message = `the repository ${path} has no commit yet, so there is nothing to start from`;
        throw new GitError('no-commits', message, 'make one: git add -A && git commit');
      }
      const oidBytes = format === 'sha256' ? 32 : 20;
      const refsAreFiles = refStorage === null || /^files(?:$|:)/.test(refStorage);
      const paths = { path, gitDir, commonDir, excludesFile: excludesFile ?? defaultExcludes(environment) };
      const info = { git: new Git(environment, path), ...paths, oidBytes, refsAreFiles };
      return new Repository(info, head);
    });
  }

  private constructor(info: RepositoryInfo, head: string) {
    this.info = info;
    this.head = head;
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
    return asResult(async () => {
      const { run, base } = request;
      const path = await resolveLinks(request.path);
      const branch = branchOf(run);
      const record: RunRecord = { kind: 'worktree', path, branch, base };
      const known = readRunRecord(this.info.commonDir, run);
      if (known === null) {
        checkApart(path, await resolveLinks(request.runFolder));
        await this.#checkIgnored(path, 'the worktree');
        if ((await this.info.git.tipOf(branch)) !== null) throw branchTaken(branch);
        if (((await folderNames(path)) ?? []).length > 0) throw pathTaken(path, 'or choose another --id');
        await this.#writeRunRecord(run, record);
      } else {
        checkSame(run, known, record);
      }
      let gitDir = await this.#gitDirAt(path);
      if (gitDir === null || leaseHolder(gitDir) === null) {
        gitDir = await this.#finishAdding(path, branch, base, known !== null);
        await syncDisk([path, this.info.commonDir]);
      }
      return this.#lease(run, record, gitDir, false);
    });
  }

  /** The tree of a run that has worked in it, by its journal. */
  reopen({ run, pointer, ...record }: RunFacts): Promise<Result<Worktree, GitProblem>> {
    return asResult(async () => {
      const { commonDir, path: own, gitDir: ownGitDir } = this.info;
      const { kind, path } = record;
      if (kind === 'in-place' ? path !== own : !isFolder(path)) throw lost(run, path);
      const named = pointer === null ? join(commonDir, 'worktrees', run) : gitDirIn(pointer, path, commonDir);
      const gitDir = kind === 'in-place' ? ownGitDir : named;
      if (gitDir === null) throw lost(run, path);
      const known = readRunRecord(commonDir, run);
      if (known === null || JSON.stringify(known) !== JSON.stringify(record)) {
        makeFolderBelow(commonDir, runFolder(commonDir, run));
        writeJsonFile(join(runFolder(commonDir, run), RUN_FILE), record);
      }
      repairGitFiles(this.#infoOf(run, record, gitDir), () => undefined);
      return this.#lease(run, record, gitDir, true);
    });
  }

  /** The user's own tree, for a run that works in place. */
  inPlace(request: { readonly run: string; readonly runFolder: string }): Promise<Result<Worktree, GitProblem>> {
    return asResult(async () => {
      const { run } = request;
      const { path, gitDir, commonDir } = this.info;
      const known = readRunRecord(commonDir, run);
      if (known !== null) {
        checkSame(run, known, { ...known, kind: 'in-place', path });
        return this.#lease(run, known, gitDir, false);
      }
      await this.#checkIgnored(await resolveLinks(request.runFolder), "the run's folder");
      const { branch } = await this.#cleanListing();
      const record: RunRecord = { kind: 'in-place', path, branch, base: this.head };
      const worktree = await this.#lease(run, record, gitDir, false);
      await this.#writeRunRecord(run, record);
      return worktree;
    });
  }

  /** Whether the tree is clean enough for a run in place. */
  checkClean(): Promise<Result<void, GitProblem>> {
    return asResult(async () => void (await this.#cleanListing()));
  }

  async #cleanListing(): Promise<Listing> {
    const { git, path } = this.info;
    const listing = readListing(await git.run(LISTING_ARGS, { mayWait: true }));
    if (isClean(listing)) return listing;
    throw new GitError(
      'dirty',
      `${path} has uncommitted changes (${changedPaths(listing)[0]}), which a run in place could not tell from its own`,
      'commit or stash them, untracked files too; or run without --in-place',
    );
  }

  /** `isKnown`: the journal knows that the run has worked there. */
  async #lease(run: string, record: RunRecord, gitDir: string, isKnown: boolean): Promise<Worktree> {
    const info = this.#infoOf(run, record, gitDir);
    await takeLease(info, isKnown);
    return new Worktree(info);
  }

  #infoOf(run: string, record: RunRecord, gitDir: string) {
    const git = this.info.git.inTree(record.path, gitDir, this.info.commonDir);
    return { ...this.info, ...record, git, run, gitDir };
  }

  async #writeRunRecord(run: string, record: RunRecord): Promise<void> {
    const folder = runFolder(this.info.commonDir, run);
    makeFolderBelow(this.info.commonDir, folder);
    if (await createJsonFile(join(folder, RUN_FILE), record)) return syncDisk([folder]);
    const known = readRunRecord(this.info.commonDir, run);
    if (known !== null) return checkSame(run, known, record);
    // It was emptied, or is not a file.
    writeJsonFile(join(folder, RUN_FILE), record);
    await syncDisk([folder]);
  }

  /** A path inside the user's tree must be ignored by git, or it would show in `git status`. */
  async #checkIgnored(path: string, what: string): Promise<void> {
    const { git, path: own, commonDir } = this.info;
    const main = basename(commonDir) === '.git' ? [dirname(commonDir)] : [];
    for (const top of new Set([own, ...main])) {
      if (!isInside(path, await realpath(top))) continue;
      const inTree = relative(await realpath(top), path);
      const args = ['check-ignore', '--quiet', '--', join(inTree, 'x')];
      const answer = await git.ask(args, { cwd: top });
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
    const ask = (what: string): Promise<string | null> =>
      this.info.git.find(['rev-parse', '--path-format=absolute', what], { cwd: path });
    const top = await ask('--show-toplevel');
    const gitDir = await ask('--git-dir');
    const commonDir = await ask('--git-common-dir');
    return top === path && commonDir === this.info.commonDir ? gitDir : null;
  }

  /** `isOurs`: an earlier call has begun. */
  async #finishAdding(path: string, branch: string, base: string, isOurs: boolean): Promise<string> {
    const { git } = this.info;
    let gitDir = await this.#gitDirAt(path);
    if (gitDir === null) await this.#clearHalfAdded(path, isOurs);
    const tip = await git.tipOf(branch);
    if (tip !== null && tip !== base) throw branchTaken(branch);
    if (gitDir === null) {
      await mkdir(dirname(path), { recursive: true });
      if (tip === null) await git.run(['branch', '--no-track', branch, base]);
      await git.run(['worktree', 'add', '--no-checkout', path, branch], { mayWait: true });
      gitDir = await this.#gitDirAt(path);
      if (gitDir === null)
        throw new GitError('gone', `the worktree ${path} does not exist after it was added`, 'try again');
    }
    // Completes what a killed git has left undone.
    await git.run(['symbolic-ref', 'HEAD', `refs/heads/${branch}`], { cwd: path });
    await rm(join(gitDir, 'index.lock'), { force: true });
    await git.run(['reset', '--hard', '--quiet', base], { cwd: path, mayWait: true });
    await rm(join(gitDir, 'locked'), { force: true });
    return gitDir;
  }

  /** Removes what an interrupted addition leaves: a file `.git`, and its registration in the repository. */
  async #clearHalfAdded(path: string, isOurs: boolean): Promise<void> {
    const names = await folderNames(path);
    const hasFiles = names?.some((name) => name !== '.git') === true;
    if (hasFiles && !isOurs) throw pathTaken(path, 'then resume the run');
    const registered = join(this.info.commonDir, 'worktrees');
    for (const name of (await folderNames(registered)) ?? []) {
      const entry = join(registered, name);
      const tree = readSmallFile(join(entry, 'gitdir')) ?? '';
      const isLost = isOurs && tree === '' && name === basename(path);
      if (!isLost && tree.trimEnd() !== join(path, '.git')) continue;
      if (leaseHolder(entry) !== null) {
        throw gone(path);
      }
      await rm(entry, { recursive: true });
    }
    if (names === null) return;
    if (hasFiles) return rename(path, `${path}.lost-${randomBytes(4).toString('hex')}`);
    if (names.length > 0) await unlink(join(path, '.git'));
    await rmdir(path);
  }
}

export function branchOf(run: string): string {
  return `meow/run-${run}`;
}

/** In the run's folder. */
const RUN_FILE = 'run.json';

/** Null if there is none, or it is not a record. Agents can change it: the journal knows better. */
export function readRunRecord(commonDir: string, run: string): RunRecord | null {
  const found = readJsonFile(join(runFolder(commonDir, run), RUN_FILE)) as Json;
  if (!isJsonMap(found)) return null;
  const { kind, path, branch, base } = found;
  const isWhole =
    (kind === 'worktree' || kind === 'in-place') &&
    typeof path === 'string' &&
    (branch === null || typeof branch === 'string') &&
    typeof base === 'string' &&
    /^[0-9a-f]{40,64}$/.test(base);
  return isWhole ? { kind, path, branch, base } : null;
}

function lost(run: string, path: string): GitError {
  const message = `the worktree of run ${run} is gone, with what was done in it (${path})`;
  return new GitError('gone', message, 'it was removed, perhaps by meow gc: start another run');
}

function gone(path: string): GitError {
  return new GitError('gone', `the worktree ${path} was deleted`, 'start another run; its branch still exists');
}

/** Null if the user has no home. */
function defaultExcludes({ XDG_CONFIG_HOME: xdg, HOME: home }: Readonly<Record<string, string>>): string | null {
  if (xdg !== undefined && xdg !== '') return join(xdg, 'git', 'ignore');
  return home === undefined || home === '' ? null : join(home, '.config', 'git', 'ignore');
}

function checkSame(run: string, known: RunRecord, wanted: RunRecord): void {
  if (known.kind === wanted.kind && known.path === wanted.path && known.base === wanted.base) return;
  throw new GitError(
    'path-taken',
    `the run ${run} uses ${known.path} from ${known.base.slice(0, 12)}, not in ${wanted.path} from ${wanted.base.slice(0, 12)}`,
    'resume it as it was started, or choose another --id',
  );
}

function pathTaken(path: string, cure: string): GitError {
  return new GitError('path-taken', `${path} exists and does not belong to this run`, `move it away, ${cure}`);
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

function notARepository(folder: string, args: readonly string[], answer: GitAnswer): GitError {
  if (/must be run in a work tree/.test(answer.stderr)) {
    return new GitError('bare', `${folder} is not in a working tree`, 'run in a working tree of the repository');
  }
  if (!/not a git repository/i.test(answer.stderr)) return failed(['rev-parse', ...args], answer);
  const cure = 'change to one, or create one: git init && git add -A && git commit';
  return new GitError('no-repository', `${folder} is not in a git repository`, cure);
}

function checkApart(path: string, folder: string): void {
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
  const real = await tolerateAsync(ABSENT, null, realpath(absolute));
  return real ?? join(await resolveLinks(dirname(absolute)), basename(absolute));
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
