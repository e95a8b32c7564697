// The files of one attempt of a step: `steps/ID.ATTEMPT.NAME` in the run's folder. One folder for all steps, because
// creating two folders for each would cost more than everything else that a short step does. Runs of version 0.1.0-alpha have
// `steps/ID/ATTEMPT/NAME`; an attempt that has such a folder keeps its files there.
//
//   stdout, stderr   as bytes, written by the command itself
//   status           two lines by the command's own shell: which process it is, written first and only if the file does not
//                    exist; and its exit status, written last. A turn has a line with its plan between them
//   script           the script, if it is too long for an argument
//   outputs/NAME     outputs that are too large for the journal
//
// A line counts once it has its line end. Folders and files are private to their user (sys/files.ts). No name begins with a
// digit, so the files of the steps `a` and `a.1` differ.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';

import { err, type Result } from '../base/errors.ts';
import type { RunFiles } from '../engine/ports.ts';
import { isErrno, UNUSABLE } from '../sys/errors.ts';
import { clearObstacle, clearPlaceOf, lookAt, makeFolder, readUntrustedFile, writePrivate } from '../sys/files.ts';

/** Where an attempt has its files: a folder for itself, or a prefix of their names in a folder for all. */
export interface StepFolder {
  /** The path of a file without its name: ends with a slash or a dot. */
  readonly prefix: string;
  /** The same, relative to the run's folder. */
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

/** `how`: an attempt that starts only now has no folder of an earlier version, whatever is there. */
export function stepFolder(files: RunFiles, step: string, attempt: number, how: 'start' | 'find' = 'find'): StepFolder {
  const [flat, folder] = stepPrefixes(step, attempt);
  const inRun = how === 'find' && existsSync(files.localPath(folder)) ? folder : flat;
  return { prefix: `${files.localPath('')}/${inRun}`, inRun };
}

/** The path of a file of an attempt. */
export function stepFile({ prefix }: Pick<StepFolder, 'prefix'>, name: string): string {
  return `${prefix}${name}`;
}

/** Creates its folder if necessary. Throws system errors. */
export function writeStepFile(folder: Pick<StepFolder, 'prefix'>, name: string, text: string): void {
  const path = stepFile(folder, name);
  makeFolder(dirname(path));
  writePrivate(path, text);
}

/**
 * Makes the folder ready for a process of the attempt. Somebody may have put something else in the place of `status`: a shell
 * would wait for a pipe, or write through a link. Throws system errors.
 */
export function prepareStepFolder({ prefix }: Pick<StepFolder, 'prefix'>): void {
  makeFolder(dirname(`${prefix}status`));
  clearPlaceOf(`${prefix}status`);
}

/**
 * For an attempt that no engine has started before: whatever says how it went was put there by somebody else, and is moved
 * aside. Throws system errors.
 */
export function discardForgedRecords(files: RunFiles, step: string, attempt: number): void {
  const [, folder] = stepPrefixes(step, attempt);
  clearObstacle(files.localPath(folder.slice(0, -1)));
  const now = stepFolder(files, step, attempt, 'start');
  for (const name of RECORDS) clearObstacle(stepFile(now, name));
}

const RECORDS = ['status', 'stdout', 'stderr', 'silent', 'turn-end.json'];

/** A part of an attempt that has the same files. */
export function partOf({ prefix, inRun }: StepFolder, name: string): StepFolder {
  const end = `${name}${prefix.slice(-1)}`;
  return { prefix: `${prefix}${end}`, inRun: `${inRun}${end}` };
}

/** The path of a file that all attempts of a step share. */
export function sharedFile(files: RunFiles, step: string, name: string): string {
  const path = files.localPath(`steps/${fileName(step)}`);
  return existsSync(path) ? `${path}/${name}` : `${path}.${name}`;
}

/** The same for the id of an effect. */
export function folderOfEffect(files: RunFiles, effect: { readonly id: string; readonly step: string }): StepFolder {
  return stepFolder(files, effect.step, Number(effect.id.slice(effect.id.lastIndexOf('#') + 1)));
}

/** Relative to the run's folder: the one that is written, and the one of version 0.1.0-alpha. */
export function stepPrefixes(step: string, attempt: number): readonly [flat: string, folder: string] {
  const path = `steps/${fileName(step)}`;
  return [`${path}.${attempt}.`, `${path}/${attempt}/`];
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

/** Whether a process of this attempt has begun. */
export function hasBegun(folder: StepFolder): boolean {
  return existsSync(stepFile(folder, 'status'));
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

/** The time of the last write to `status`, in milliseconds since 1970; now if it is absent. */
export function readExitTime(folder: StepFolder): number {
  return Math.round(lookAt(stepFile(folder, 'status'))?.mtimeMs ?? Date.now());
}

/** `status`: the text of the file; null if it is absent. Of two exits one is forged, so neither counts. */
export function exitIn(status: string | null): number | null {
  const [exit, another] = [...(status ?? '').matchAll(/^exit (\d+)\n/gm)];
  // A parent process sees only the last eight bits.
  return exit === undefined || another !== undefined ? null : Number(exit[1]) & 0xff;
}

/** Whether a process with this exit had no time to stop its own processes: a signal ended it, or nobody recorded the exit. */
export function wasCutOff(exit: number | null): boolean {
  return exit === null || exit > 128;
}

/** Null if the file is absent, or something else is in its place. */
export function readStatus(folder: StepFolder): string | null {
  return readUntrustedFile(stepFile(folder, 'status'), STATUS_BYTES_MAX)?.text ?? null;
}

/** The plan of a turn has less than a thousand. */
const STATUS_BYTES_MAX = 1_000_000;

/** A refusal of the system is an error, like those of `act` itself. Every other exception is thrown. */
export function unlessRefused<T>(act: () => Result<T, string>): Result<T, string> {
  try {
    return act();
  } catch (error) {
    if (isErrno(error, ...UNUSABLE)) return err(error.message);
    throw error;
  }
}
