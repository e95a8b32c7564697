// The folder of one attempt of a step: `steps/ID/ATTEMPT/` in the run's folder.
//
//   stdout, stderr   as bytes, written by the command itself
//   status           two lines by the command's own shell: which process it is, written first and only if the file does not
//                    exist; and its exit status, written last
//   script           the script, if it is too long for an argument
//   outputs/NAME     outputs that are too large for the journal
//
// A line counts once it has its line end. Folders and files are private to their user (sys/private-file.ts).

import type { RunFiles } from '../engine/ports.ts';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ABSENT, isErrno } from '../sys/errno.ts';
import { makeFolder } from '../sys/private-file.ts';

export interface StepFolder {
  readonly path: string;
  /** Relative to the run's folder. */
  readonly inRun: string;
}

export type ProcessRecord =
  | { readonly kind: 'absent' }
  /** Being written; or its writer died, the disk was full, or the machine crashed. */
  | { readonly kind: 'incomplete' }
  | {
      readonly kind: 'written';
      readonly pid: number;
      /** Uptime of the machine in seconds when this was written; null if unknown. */
      readonly uptime: number | null;
      readonly bootId: string;
    };

export function stepFolder(files: RunFiles, step: string, attempt: number): StepFolder {
  const inRun = stepPath(step, attempt);
  return { path: files.localPath(inRun), inRun };
}

/** Relative to the run's folder. */
export function stepPath(step: string, attempt: number): string {
  return `steps/${fileName(step)}/${attempt}`;
}

/** Unique for each id: an id that cannot be a file name, or would share one, gets a hash. */
export function fileName(id: string): string {
  const plain = /^[A-Za-z0-9_.#-]+$/.test(id) && id !== '.' && id !== '..' && id.length <= NAME_MAX;
  if (plain && !(IGNORES_CASE && /[A-Z]/.test(id))) return id;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, 16);
  return `${id.slice(0, NAME_MAX).replaceAll(/[^A-Za-z0-9_.#-]/g, '_')}~${hash}`;
}

const NAME_MAX = 200;
const IGNORES_CASE = process.platform === 'darwin' || process.platform === 'win32';

/** Creates the folder of the step with its first attempt: trying the inner one first would throw, which is slow. */
export function makeStepFolder(path: string): void {
  if (basename(path) === '1') makeFolder(dirname(path));
  makeFolder(path);
}

/** Whether a process of this attempt has begun. */
export function hasBegun(path: string): boolean {
  return existsSync(join(path, 'status'));
}

export function readProcess(folder: StepFolder): ProcessRecord {
  return processIn(readStatus(folder));
}

/** `status`: the text of the file; null if it is absent. */
export function processIn(status: string | null): ProcessRecord {
  if (status === null) return { kind: 'absent' };
  const fields = /^(\d+) (\d+(?:\.\d+)?|-) (\S+)\n/.exec(status);
  if (fields === null) return { kind: 'incomplete' };
  const [, pid = '', uptime = '', bootId = ''] = fields;
  return { kind: 'written', pid: Number(pid), uptime: uptime === '-' ? null : Number(uptime), bootId };
}

export function readExit(folder: StepFolder): number | null {
  return exitIn(readStatus(folder));
}

/** `status`: the text of the file; null if it is absent. */
export function exitIn(status: string | null): number | null {
  const fields = /(?:^|\n)exit (\d+)\n/.exec(status ?? '');
  // A parent process sees only the last eight bits.
  return fields === null ? null : Number(fields[1]) & 0xff;
}

function readStatus(folder: StepFolder): string | null {
  try {
    // It is ASCII, but Node reads UTF-8 in a single call.
    return readFileSync(join(folder.path, 'status'), 'utf8');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
