// Runs git, shielded from the user's environment and configuration.
//
// There are three ways to run it:
//
//   - As the user, to find a repository and to create a worktree: the user's configuration applies, with its filters.
//   - `inTree`: refs and worktrees of a run's repository. Configuration of the user and the system does not apply.
//   - `plumbing`: objects and private indexes. No configuration, attributes or files of the repository apply except its
//     objects: a git folder of our own, and an empty working tree.
//
// In all of them:
//
//   - Git's environment variables are dropped: they would select another repository or another index. Messages are in
//     English. Replaced objects (`git replace`) are not followed.
//   - No hooks, file system monitor, signing, automatic garbage collection, pager or prompts.
//   - Git writes only what a command is for: it does not refresh an index in passing.
//   - Output is bytes.
//   - Runs that start at the same time do not make each other fail.
//   - Git is killed if it waits for something that never comes, such as a pipe in the place of a file (`blocked`).
//   - Git carries a marker of runs, so a program that an agent makes it start cannot decide gates.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { err, ok, type Result } from '../../base/errors.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED, tolerate, tolerateAsync } from '../../sys/errors.ts';
import { makeFolderBelow, readUntrustedFile, replacePrivate } from '../../sys/files.ts';
import { HAS_PROC, MARKER, startHelper } from '../../sys/process.ts';
import { findProgram } from '../recording-shell.ts';

export interface GitCall {
  /** Instead of the folder that this Git works in. */
  readonly cwd?: string;
  readonly input?: readonly (Uint8Array | string)[];
  /** Index file instead of the working tree's own. */
  readonly index?: string;
  /** Open file for the output. */
  readonly output?: number;
  /** Reads the output as a stream, as much of it as it needs. */
  readonly read?: (output: Readable) => Promise<void>;
  /** It may wait for programs of the user, such as filters, for any time. */
  readonly mayWait?: boolean;
}

/** Modes of entries in a tree. */
export const LINK = '120000';
export const REPOSITORY = '160000';

export interface GitAnswer {
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export class Git {
  readonly #program: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #folder: string;

  /** As the user. Throws a GitError if git is not installed. `fixed`: variables for git. */
  constructor(
    environment: Readonly<Record<string, string>>,
    folder: string,
    fixed: Readonly<Record<string, string>> = {},
  ) {
    const program = findProgram('git', environment['PATH'] ?? '');
    if (program === null) throw new GitError('git-missing', 'git is not on PATH', 'install git 2.31 or newer');
    this.#program = program;
    this.#environment = { ...gitEnvironment(environment), ...fixed };
    this.#folder = folder;
  }

  /** For a working tree with these git folders, whatever the tree's own `.git` and the file `commondir` say. */
  inTree(path: string, gitDir: string, commonDir: string): Git {
    const common: Readonly<Record<string, string>> = gitDir === commonDir ? {} : { GIT_COMMON_DIR: commonDir };
    return new Git(this.#environment, path, {
      ...NO_CONFIGURATION,
      ...common,
      GIT_DIR: gitDir,
      GIT_WORK_TREE: path,
    });
  }

  /** `folder`: for its git folder, which gets exactly the files it should have. `tree`: instead of an empty working tree. */
  plumbing(folder: string, commonDir: string, oidBytes: number, tree = join(folder, EMPTY)): Git {
    makeGitFolder(folder, oidBytes);
    const shallow = join(commonDir, 'shallow');
    const fixed: Readonly<Record<string, string>> = {
      GIT_DIR: folder,
      GIT_WORK_TREE: tree,
      GIT_OBJECT_DIRECTORY: join(commonDir, 'objects'),
      ...(isFile(shallow) ? { GIT_SHALLOW_FILE: shallow } : {}),
    };
    return new Git(this.#environment, tree, { ...NO_CONFIGURATION, ...fixed });
  }

  /** Throws a GitError with git's message if the command fails. */
  async run(args: readonly string[], call: GitCall = {}): Promise<Buffer> {
    const answer = await this.ask(args, call);
    if (answer.status !== 0) throw failed(args, answer);
    return answer.stdout;
  }

  /** Output without the last line end, with one character for each byte. */
  async line(args: readonly string[], call: GitCall = {}): Promise<string> {
    return withoutEnd(await this.run(args, call));
  }

  /** Output as text without the last line end; null if the command fails. */
  async find(args: readonly string[], call: GitCall = {}): Promise<string | null> {
    const { status, stdout } = await this.ask(args, call);
    return status === 0 ? withoutEnd(stdout, 'utf8') : null;
  }

  /** Commit of a branch; null if there is no such branch. */
  tipOf(branch: string): Promise<string | null> {
    return this.find(['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`]);
  }

  async ask(args: readonly string[], call: GitCall = {}): Promise<GitAnswer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#try(args, call);
      const isTransient = answer.status !== 0 && HALF_WRITTEN.test(answer.stderr);
      if (!isTransient || call.input !== undefined || tries === TRIES_MAX) return answer;
      await new Promise((resolve) => setTimeout(resolve, tries * PAUSE_MS));
    }
  }

  async #try(args: readonly string[], call: GitCall): Promise<GitAnswer> {
    const { cwd = this.#folder, input, index, output, read, mayWait = false } = call;
    const env = index === undefined ? this.#environment : { ...this.#environment, GIT_INDEX_FILE: index };
    const child = await this.#start(cwd, () =>
      spawn(this.#program, [...SETTINGS, ...args], {
        cwd,
        env,
        stdio: [input === undefined ? 'ignore' : 'pipe', output ?? 'pipe', 'pipe'],
      }),
    );
    const ended = new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? 128));
    });
    const fed = child.stdin === null ? null : pipeline(Readable.from(input ?? []), child.stdin);
    const watch = mayWait ? null : killIfBlocked(child);
    try {
      const [stdout, stderr, status] = await Promise.all([
        read === undefined || child.stdout === null ? collect(child.stdout) : read(child.stdout).then(() => NOTHING),
        collect(child.stderr),
        ended,
        fed === null ? null : tolerateAsync(ENDED_EARLY, undefined, fed),
      ]);
      if (watch?.isBlocked() === true) throw blocked(args);
      return { status, stdout, stderr: stderr.toString('utf8') };
    } catch (error) {
      // Without a reader it would wait forever.
      child.kill('SIGKILL');
      throw watch?.isBlocked() === true ? blocked(args) : error;
    } finally {
      watch?.end();
    }
  }

  async #start(cwd: string, start: () => ChildProcess): Promise<ChildProcess> {
    try {
      return await startHelper(start);
    } catch (error) {
      if (!isErrno(error, ...ABSENT, ...REFUSED)) throw error;
      throw new GitError('gone', `git cannot be run in ${cwd} (${error.code})`, 'check that the folder still exists');
    }
  }
}

/** Empty folders of a private git folder. The first is its working tree. */
const EMPTY = 'empty';
const EMPTY_FOLDERS = [EMPTY, 'refs', 'objects'];

/** Anybody can write there: attributes, grafts or a configuration would change what git says. */
function makeGitFolder(folder: string, oidBytes: number): void {
  const format = oidBytes === 32 ? '[extensions]\n\tobjectFormat = sha256\n' : '';
  const files: Readonly<Record<string, string>> = {
    HEAD: 'ref: refs/heads/none\n',
    config: `[core]\n\trepositoryFormatVersion = 1\n${format}`,
  };
  makeFolderBelow(dirname(folder), folder);
  const isEmptied = tolerate([...REFUSED, 'ENOTEMPTY'], false, () => {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (EMPTY_FOLDERS.includes(name)) makeFolderBelow(folder, path);
      else if (!(name in files)) rmSync(path, { recursive: true, force: true });
    }
    for (const name of EMPTY_FOLDERS) {
      const path = join(folder, name);
      makeFolderBelow(folder, path);
      for (const each of readdirSync(path)) rmSync(join(path, each), { recursive: true, force: true });
    }
    return true;
  });
  if (!isEmptied) {
    renameSync(folder, `${folder}.aside-${randomBytes(6).toString('hex')}`);
    return makeGitFolder(folder, oidBytes);
  }
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    if (readUntrustedFile(path, text.length)?.text !== text) replacePrivate(path, text);
  }
}

function isFile(path: string): boolean {
  return tolerate([...ABSENT, ...REFUSED], false, () => statSync(path).isFile());
}

/** Git waits for us while nobody has read its output. */
function killIfBlocked(child: ChildProcess): { readonly isBlocked: () => boolean; readonly end: () => void } {
  const began = Date.now();
  let last: string | null = null;
  let seconds = 0;
  let isBlocked = false;
  const timer = setInterval(() => {
    const { stdout } = child;
    const now = (stdout?.readableLength ?? 0) > 0 ? null : activityOf(child.pid ?? 0);
    seconds = now !== null && now === last ? seconds + 1 : 0;
    last = now;
    const isLate = !HAS_PROC && Date.now() - began > LATE_MS;
    if (seconds < BLOCKED_SECONDS && !isLate) return;
    isBlocked = true;
    child.kill('SIGKILL');
    // A program that it has started may still have them open.
    stdout?.destroy();
    child.stderr?.destroy();
  }, 1_000);
  return { isBlocked: () => isBlocked, end: () => clearInterval(timer) };
}

const BLOCKED_SECONDS = 10;
/** Limit for every command on a system without /proc, where it is unknown what git does. */
const LATE_MS = 600_000;

/** Computing time and transferred bytes of a sleeping process; null if it is not asleep, or unknown. */
function activityOf(pid: number): string | null {
  return tolerate('any', null, () => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'S' ? [...fields.slice(6, 14), readFileSync(`/proc/${pid}/io`, 'latin1')].join(' ') : null;
  });
}

function blocked(args: readonly string[]): GitError {
  return new GitError(
    'blocked',
    `git ${args[0]} was killed: for ${BLOCKED_SECONDS} seconds it waited for something that did not come`,
    'a pipe may be in the place of a file of the repository: find it with find .git -type p, and remove it',
  );
}

const NOTHING = Buffer.alloc(0);
/** Git ended before it read all its input: its exit code tells why. */
const ENDED_EARLY = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED'];

/** Git reads all worktrees, and fails at one that another git is just adding. */
const HALF_WRITTEN = /worktrees\/[^\n]+\/(?:commondir|gitdir|HEAD)\b/;
const TRIES_MAX = 10;
const PAUSE_MS = 5;

/** Uses the most telling line of git's error output. */
export function failed(args: readonly string[], { status, stderr }: GitAnswer): GitError {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  const text = lines.find((line) => /^(?:fatal|error): /.test(line)) ?? lines.at(-1) ?? `exit code ${status}`;
  const isLocked = /\.lock': File exists/.test(stderr);
  const cure = isLocked
    ? 'another git is running there, or was killed: wait for it, or delete the lock file'
    : 'fix the cause in the repository, then try again';
  return new GitError(isLocked ? 'locked' : 'git-failed', `git ${args[0]}: ${text}`, cure);
}

export function withoutEnd(output: Buffer, encoding: 'latin1' | 'utf8' = 'latin1'): string {
  return output.toString(encoding).replace(/\n$/, '');
}

export async function collect(stream: AsyncIterable<Buffer> | null): Promise<Buffer> {
  const chunks: Buffer[] = [];
  if (stream !== null) for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** `NOSYSTEM` is for git before 2.32. No protocol: git would fetch objects that somebody has removed, with any program. */
const NO_CONFIGURATION = {
  GIT_ALLOW_PROTOCOL: '',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_CONFIG_COUNT: '0',
};

const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  // A file that anybody can write, about which commits are ancestors of others.
  'core.commitGraph=false',
  'core.quotePath=true',
  'core.safecrlf=false',
  // `git~1` is a file name like any other here.
  'core.protectNTFS=false',
  'core.protectHFS=false',
  'commit.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'advice.detachedHead=false',
  'submodule.recurse=false',
].flatMap((setting) => ['-c', setting]);

/** Variables that locate configuration and git's own programs. */
const KEPT = /^GIT_(?:CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+)|EXEC_PATH|CEILING_DIRECTORIES)$/;

function gitEnvironment(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const kept = Object.entries(environment).filter(([name]) => !name.startsWith('GIT_') || KEPT.test(name));
  return {
    ...Object.fromEntries(kept),
    LC_ALL: 'C',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    // Shown in reflogs.
    GIT_COMMITTER_NAME: 'meow',
    GIT_COMMITTER_EMAIL: 'meow@localhost',
    GIT_AUTHOR_NAME: 'meow',
    GIT_AUTHOR_EMAIL: 'meow@localhost',
    [MARKER]: environment[MARKER] ?? 'meow.git:git#1',
  };
}

// Failures around git: a kind for programs, a sentence for people, and what they can do about it.
//
// Inside this folder a failure is a thrown GitError; the public functions return it as a Result.

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
  /** Git was killed because it waited for something that never came. */
  | 'blocked'
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
export async function asResult<T>(act: () => Promise<T>): Promise<Result<T, GitProblem>> {
  try {
    return ok(await act());
  } catch (error) {
    if (error instanceof GitError) return err(error.problem);
    if (!isErrno(error, ...REFUSED, ...EXHAUSTED)) throw error;
    const cure = isErrno(error, ...EXHAUSTED)
      ? 'end some processes, or raise the limits of open files and processes (ulimit -n, ulimit -u)'
      : 'check its permissions and the free space on the disk';
    return err({ kind: 'refused', message: error.message, cure });
  }
}
