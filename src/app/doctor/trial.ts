// Runs a short command and returns how it ended. It has little time and no input.

import { spawn } from 'node:child_process';

import { isErrno } from '../../sys/errno.ts';

export type Trial =
  | { readonly kind: 'ended'; readonly status: number; readonly output: string }
  | { readonly kind: 'late' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Limit of its output. */
const OUTPUT_MAX = 10_000;

export function tryCommand(
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
  timeoutMs: number,
): Promise<Trial> {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn('sh', ['-c', command], { env: environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const timer = setTimeout(() => {
      endGroup(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ kind: 'late' });
    }, timeoutMs);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        if (output.length < OUTPUT_MAX) output += text;
      });
    }
    child.once('error', (error) => {
      clearTimeout(timer);
      resolve({ kind: 'refused', reason: error.message });
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ kind: 'ended', status: code ?? 1, output });
    });
  });
}

/** Kills the processes that it started. */
function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has ended by itself.
    if (!isErrno(error, 'ESRCH')) throw error;
  }
}
