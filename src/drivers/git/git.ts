// Runs git, so that nothing of the user's own ways is in between.
//
//   - Of the environment no variable of git's gets in, save where configuration is; those would make it see another
//     repository, or another index. Messages are in English.
//   - No hooks, no file system monitor, no signing, no automatic collection of garbage, no pager, no question. What decides
//     about the contents of files (line ends, filters) is left as it is.
//   - Nothing is written that was not asked for: an index is not refreshed in passing.
//   - Output is bytes.
//   - Runs that begin at the same time do not make each other fail.

import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isErrno, REFUSED } from '../../sys/errno.ts';
import { findProgram } from '../recording-shell.ts';
import { Refusal } from './git-error.ts';

export interface GitCall {
  readonly cwd: string;
  readonly input?: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array | string>;
  /** Instead of the working tree's own. */
  readonly index?: string;
  /** An open file that takes the output. */
  readonly output?: number;
  /** Takes the output as it comes, all that it needs of it. */
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

  /** Throws a Refusal where there is none. */
  constructor(environment: Readonly<Record<string, string>>) {
    const program = findProgram('git', environment['PATH'] ?? '');
    if (program === null) throw new Refusal('git-missing', 'there is no git on PATH', 'install git, 2.31 or newer');
    this.#program = program;
    this.#environment = gitEnvironment(environment);
  }

  /** The same, that looks for no repository above a folder: where a tree has lost its own, none around it is meant. */
  notAbove(folder: string): Git {
    return new Git({ ...this.#environment, GIT_CEILING_DIRECTORIES: folder });
  }

  /** It must succeed: else a Refusal in git's words. */
  async run(args: readonly string[], call: GitCall): Promise<Buffer> {
    const answer = await this.ask(args, call);
    if (answer.status !== 0) throw failed(args, answer);
    return answer.stdout;
  }

  /** What it prints without the end of its last line, one character a byte. */
  async line(args: readonly string[], call: GitCall): Promise<string> {
    return withoutEnd(await this.run(args, call));
  }

  async ask(args: readonly string[], call: GitCall): Promise<GitAnswer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#try(args, call);
      const isBetween = answer.status !== 0 && HALF_WRITTEN.test(answer.stderr);
      if (!isBetween || call.input !== undefined || tries === TRIES_MAX) return answer;
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
    const given =
      input === undefined || child.stdin === null
        ? null
        : pipeline(Readable.from(input), child.stdin).catch(sayWhyLater);
    try {
      const [stdout, stderr, status, fault] = await Promise.all([
        read === undefined || child.stdout === null ? collect(child.stdout) : read(child.stdout).then(() => NOTHING),
        collect(child.stderr),
        ended,
        given,
      ]);
      // What could not be read is the cause of whatever git says about it.
      if (fault instanceof Error) throw fault;
      return { status, stdout, stderr: stderr.toString('utf8'), pid: child.pid ?? 0 };
    } catch (error) {
      // Whoever reads no more would have it wait for ever.
      child.kill('SIGKILL');
      if (!isErrno(error, 'ENOENT', 'ENOTDIR', ...REFUSED) || !('syscall' in error)) throw error;
      if (!String(error.syscall).startsWith('spawn')) throw error;
      throw new Refusal('gone', `git cannot be run in ${cwd} (${error.code})`, 'see whether the folder is still there');
    }
  }
}

const NOTHING = Buffer.alloc(0);

/** Git looks at all worktrees, and fails at one that another git is just adding. */
const HALF_WRITTEN = /worktrees\/[^\n]+\/(?:commondir|gitdir|HEAD)\b/;
const TRIES_MAX = 10;
const PAUSE_MS = 5;

/** Of git's complaint the line that tells. */
export function failed(args: readonly string[], { status, stderr }: GitAnswer): Refusal {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  const said = lines.find((line) => /^(?:fatal|error): /.test(line)) ?? lines.at(-1) ?? `it ended with ${status}`;
  if (/\.lock': File exists/.test(stderr)) {
    return new Refusal(
      'locked',
      `git ${args[0]}: ${said}`,
      'another git is at work there, or has died at it: wait for it, or delete the lock file',
    );
  }
  return new Refusal('git-failed', `git ${args[0]}: ${said}`, 'see what git says, and mend it in the repository');
}

export function withoutEnd(output: Buffer): string {
  return output.toString('latin1').replace(/\n$/, '');
}

/** Whoever ends early is heard by its status; a source that failed is not. */
function sayWhyLater(error: unknown): Error | null {
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

/** Where its configuration is, and what it is made of. */
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
    // For the reflogs.
    GIT_COMMITTER_NAME: 'meow',
    GIT_COMMITTER_EMAIL: 'meow@localhost',
    GIT_AUTHOR_NAME: 'meow',
    GIT_AUTHOR_EMAIL: 'meow@localhost',
  };
}
