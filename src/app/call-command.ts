// Runs a command of `meow` in a process of its own, for servers that act as their user would. It has its own process group, so
// that a Ctrl-C at the terminal of the server does not stop it.

import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { isSystemError } from '../sys/errors.ts';

export interface CommandCall {
  readonly args: readonly string[];
  /** The folder of its project. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Its standard input; absent: none. */
  readonly input?: string;
}

export interface CommandResult {
  /** Null if it was killed, or could not be started. */
  readonly code: number | null;
  readonly stdout: string;
  /** Its last characters. */
  readonly stderr: string;
}

const OUTPUT_MAX = 20_000;

/** Resolves when the command has ended. */
export async function callCommand({ args, cwd, environment, input }: CommandCall): Promise<CommandResult> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'meow.cjs'), ...args], {
    cwd,
    env: { ...environment },
    detached: true,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout = (stdout + text).slice(-OUTPUT_MAX);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-OUTPUT_MAX);
  });
  // It may refuse to do anything without reading.
  child.stdin?.on('error', () => {});
  child.stdin?.end(input ?? '');
  return new Promise((resolve, reject) => {
    child.once('error', (error) => {
      if (isSystemError(error)) resolve({ code: null, stdout, stderr: `meow could not be started (${error.code})` });
      else reject(error);
    });
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
