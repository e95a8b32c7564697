// Runs git, shielded from the user's environment and configuration.
//
//   - Git's environment variables are dropped, except those that locate configuration: others would select another repository
//     or another index. Messages are in English. Replaced objects (`git replace`) are not followed.
//   - No hooks, file system monitor, signing, automatic garbage collection, pager or prompts. Settings that decide about the
//     contents of files (line ends, filters) stay.
//   - Git writes only what a command is for: it does not refresh an index in passing.
//   - Output is bytes.
//   - Runs that start at the same time do not make each other fail.

import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isErrno, REFUSED } from '../../sys/errno.ts';
import { findProgram } from '../recording-shell.ts';
import { GitError } from './git-error.ts';

export interface GitCall {
  readonly cwd: string;
  readonly input?: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array | string>;
  /** Index file instead of the working tree's own. */
  readonly index?: string;
  /** Open file for the output. */
  readonly output?: number;
  /** Reads the output as a stream, as much of it as it needs. */
  readonly read?: (output: Readable) => Promise<void>;
}

export interface GitAnswer {
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly pid: number;
}

export class Git {
  readonly #program: string;
  readonly #environment: Readonly<Record<string, string>>;

  /** Throws a GitError if git is not installed. */
  constructor(environment: Readonly<Record<string, string>>) {
    const program = findProgram('git', environment['PATH'] ?? '');
    if (program === null) throw new GitError('git-missing', 'git is not on PATH', 'install git 2.31 or newer');
    this.#program = program;
    this.#environment = gitEnvironment(environment);
  }

  /** Does not look for a repository in this folder or above: a tree that has lost its own must not use another. */
  notAbove(folder: string): Git {
    return new Git({ ...this.#environment, GIT_CEILING_DIRECTORIES: folder });
  }

  /** Throws a GitError with git's message if the command fails. */
  async run(args: readonly string[], call: GitCall): Promise<Buffer> {
    const answer = await this.ask(args, call);
    if (answer.status !== 0) throw failed(args, answer);
    return answer.stdout;
  }

  /** Output without the last line end, with one character for each byte. */
  async line(args: readonly string[], call: GitCall): Promise<string> {
    return withoutEnd(await this.run(args, call));
  }

  async ask(args: readonly string[], call: GitCall): Promise<GitAnswer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#try(args, call);
      const isTransient = answer.status !== 0 && HALF_WRITTEN.test(answer.stderr);
      if (!isTransient || call.input !== undefined || tries === TRIES_MAX) return answer;
      await new Promise((resolve) => setTimeout(resolve, tries * PAUSE_MS));
    }
  }

  async #try(args: readonly string[], call: GitCall): Promise<GitAnswer> {
    const { cwd, input, index, output, read } = call;
    const env = index === undefined ? this.#environment : { ...this.#environment, GIT_INDEX_FILE: index };
    const child = spawn(this.#program, [...SETTINGS, ...args], {
      cwd,
      env,
      stdio: [input === undefined ? 'ignore' : 'pipe', output ?? 'pipe', 'pipe'],
    });
    const ended = new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? 128));
    });
    const fed =
      input === undefined || child.stdin === null
        ? null
        : pipeline(Readable.from(input), child.stdin).catch(inputFailure);
    try {
      const [stdout, stderr, status, fault] = await Promise.all([
        read === undefined || child.stdout === null ? collect(child.stdout) : read(child.stdout).then(() => NOTHING),
        collect(child.stderr),
        ended,
        fed,
      ]);
      // The failure to read the input is the cause of any complaint by git.
      if (fault instanceof Error) throw fault;
      return { status, stdout, stderr: stderr.toString('utf8'), pid: child.pid ?? 0 };
    } catch (error) {
      // Without a reader it would wait for ever.
      child.kill('SIGKILL');
      if (!isErrno(error, 'ENOENT', 'ENOTDIR', ...REFUSED) || !('syscall' in error)) throw error;
      if (!String(error.syscall).startsWith('spawn')) throw error;
      throw new GitError('gone', `git cannot be run in ${cwd} (${error.code})`, 'check that the folder still exists');
    }
  }
}

const NOTHING = Buffer.alloc(0);

/** Git reads all worktrees, and fails at one that another git is just adding. */
const HALF_WRITTEN = /worktrees\/[^\n]+\/(?:commondir|gitdir|HEAD)\b/;
const TRIES_MAX = 10;
const PAUSE_MS = 5;

/** Uses the most telling line of git's error output. */
export function failed(args: readonly string[], { status, stderr }: GitAnswer): GitError {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  const text = lines.find((line) => /^(?:fatal|error): /.test(line)) ?? lines.at(-1) ?? `exit code ${status}`;
  if (/\.lock': File exists/.test(stderr)) {
    return new GitError(
      'locked',
      `git ${args[0]}: ${text}`,
      'another git is running there, or was killed: wait for it, or delete the lock file',
    );
  }
  return new GitError('git-failed', `git ${args[0]}: ${text}`, 'fix the cause in the repository, then try again');
}

export function withoutEnd(output: Buffer): string {
  return output.toString('latin1').replace(/\n$/, '');
}

/** Null if git ended early, which its exit code tells; otherwise the source of the input failed. */
function inputFailure(error: unknown): Error | null {
  if (isErrno(error, 'EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED')) return null;
  return error instanceof Error ? error : new Error(String(error));
}

async function collect(stream: Readable | null): Promise<Buffer> {
  const chunks: Buffer[] = [];
  if (stream !== null) for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.quotePath=true',
  'core.safecrlf=false',
  // `git~1` is a file name like any other here.
  'core.protectNTFS=false',
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
  };
}
