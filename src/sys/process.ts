// Starts processes that outlive this one: each leads its own session and process group, reads nothing, and writes straight
// into files.

import { spawn, spawnSync } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { isErrno } from './errno.ts';
import type { ErrnoError } from './errno.ts';
import { makeFolder, openPrivate } from './private-file.ts';

/** Two layers: what is common to many processes, and what is laid over it. Copying the first for each would be slow. */
export interface Environment {
  readonly base: Readonly<Record<string, string>>;
  readonly own: Readonly<Record<string, string>>;
}

export function wholeEnvironment({ base, own }: Environment): Readonly<Record<string, string>> {
  return { ...base, ...own };
}

export interface ProcessRequest {
  readonly path: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly environment: Environment;
  /** Created if it is missing, with `stdout` and `stderr` in it. */
  readonly folder: string;
  /** Does not keep this process alive. */
  readonly background?: boolean;
}

export interface ProcessEvents {
  begun(pid: number): void;
  /** It could not be started: the system's reason. */
  refused(error: ErrnoError): void;
  /** 128 + N for death by signal N, as in shells. */
  ended(status: number): void;
}

/** `begun` may come during this call; the others come later. */
export function startProcess(request: ProcessRequest, events: ProcessEvents): void {
  const { path, args, cwd, environment, folder } = request;
  const files: number[] = [];
  try {
    makeFolder(folder);
    for (const name of ['stdout', 'stderr']) files.push(openPrivate(join(folder, name)));
    const child = spawn(path, args, {
      cwd,
      env: wholeEnvironment(environment),
      detached: true,
      stdio: ['ignore', ...files],
    });
    child.once('error', (error) => events.refused(errnoOf(error)));
    child.once('exit', (code, signal) => events.ended(signal === null ? (code ?? 0) : 128 + constants.signals[signal]));
    if (request.background === true) child.unref();
    if (child.pid !== undefined) events.begun(child.pid);
  } catch (error) {
    // Some refusals are exceptions, others are events. A wrong argument is a bug, not a refusal.
    const refusal = errnoOf(error);
    setImmediate(() => events.refused(refusal));
  } finally {
    for (const file of files) closeSync(file);
  }
}

/** Standard output of a system program; null if it is missing or fails. */
export function outputOf(program: string, args: readonly string[]): string | null {
  const { status, stdout, error } = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
    maxBuffer: 256 * 1024 * 1024,
  });
  if (error !== undefined && !isErrno(error, 'ENOENT')) throw error;
  return status === 0 ? stdout : null;
}

export const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  // Some signals have two names; the first one wins.
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

function errnoOf(error: unknown): ErrnoError {
  if (error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string') {
    return error as ErrnoError;
  }
  throw error;
}
