// Programs started by a simulated agent: shell commands of its script, and `meow` from PATH, as a real agent finds it.
// Each knows its step, so that a late report cannot complete another step.

import { spawn } from 'node:child_process';
import { constants } from 'node:os';

import { tolerate } from '../sys/errors.ts';

export interface ChildEnd {
  /** 128 + N after signal N; 127 if it could not start. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `signal` kills the program. */
export function run(program: string, args: readonly string[], step: string, signal: AbortSignal): Promise<ChildEnd> {
  return new Promise((resolve) => {
    const env = { ...process.env, MEOW_STEP: step };
    // Own process group: an interrupt kills all of it.
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
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
