// The world of a simulated agent that is a program: this machine. Programs it starts (shell commands of its script, and
// `meow` from PATH, as a real agent finds it) know their step, so that a late report cannot complete another step.

import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, resolve as resolvePath } from 'node:path';

import { within } from '../sys/clock.ts';
import { tolerate } from '../sys/errors.ts';
import { meowArguments, type ProgramEnd, type SimWorld } from './turn.ts';

export const machine: SimWorld = {
  now: () => Date.now(),
  async wait(ms, signal) {
    for (let left = ms ?? Infinity; left > 0 && !signal.aborted; left -= WAIT_MAX_MS) {
      await within(new Promise(() => undefined), { timeoutMs: Math.min(left, WAIT_MAX_MS), signal });
    }
  },
  write(path, text) {
    const target = resolvePath(path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  },
  meow: (call, step, signal) => run('meow', meowArguments(call), step, signal),
  shell: (command, step, signal) => run('sh', ['-c', command], step, signal),
  async crash(how) {
    if (typeof how === 'number') process.exit(how);
    // A signal handler would keep the process alive.
    process.removeAllListeners(how);
    process.kill(process.pid, how);
    return new Promise<never>(() => undefined);
  },
};

/** Longest timer of the system. */
const WAIT_MAX_MS = 2 ** 31 - 1;

/** `signal` kills the program. Folder and environment: by default those of this process. */
export function run(
  program: string,
  args: readonly string[],
  step: string,
  signal: AbortSignal,
  { cwd, env: given = process.env }: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    const env = { ...given, MEOW_STEP: step };
    // Own process group: an interrupt kills all of it.
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        if (output[name].length < OUTPUT_MAX) output[name] += text;
      });
    }
    const abort = (): void => {
      endGroup(child.pid, 'SIGTERM');
      setTimeout(() => endGroup(child.pid, 'SIGKILL'), GRACE_MS).unref();
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const end = (status: number): void => {
      signal.removeEventListener('abort', abort);
      resolve({ status, ...output });
    };
    child.once('error', (error) => {
      output.stderr += `${error.message}\n`;
      end(127);
    });
    child.once('exit', (code, killedBy) => {
      const status = killedBy === null ? (code ?? 0) : 128 + constants.signals[killedBy];
      // Processes left running by the child keep the pipes open.
      const late = setTimeout(() => end(status), LAST_WORDS_MS);
      child.once('close', () => {
        clearTimeout(late);
        end(status);
      });
    });
  });
}

function endGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  tolerate(['ESRCH'], undefined, () => process.kill(-pid, signal));
}

const GRACE_MS = 1_000;
const LAST_WORDS_MS = 200;
/** Limit for each stream. */
const OUTPUT_MAX = 1_000_000;
