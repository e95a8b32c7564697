// What the git and inspection drivers know about their run: folders, history, and the outcomes of steps of the same
// block.

import { createHash } from 'node:crypto';
import { closeSync, fsyncSync } from 'node:fs';
import { dirname } from 'node:path';

import { assert, Bug, err, ok, present, type Result } from '../../base/errors.ts';
import { isJsonMap, type Json, type JsonMap, own } from '../../base/json.ts';
import { nearest } from '../../base/names.ts';
import { type Effect, type Outcome, success } from '../../ir/effect.ts';
import type { Failure, FailureKind } from '../../ir/failure.ts';
import { type Outputs, storedFileOf, storedOutputValue, type Usage } from '../../ir/output.ts';
import { isErrno, UNUSABLE } from '../../sys/errors.ts';
import { makeFolder, openForReading, writePrivate } from '../../sys/files.ts';
import type { DriverContext } from '../environment.ts';
import type { Snapshot } from '../git/snapshot.ts';
import type { Worktree } from '../git/worktree.ts';
import { storedText } from '../outputs.ts';
import { stepFile, stepFolder, type StepFolder } from '../step-folder.ts';

export interface ConductorContext {
  readonly run: DriverContext;
  /** For people and planners: artifacts, reports, diffs. Absolute; exists before the first effect. */
  readonly runDir: string;
  /** As workflows write it in paths, including the run id: `.meow/run/ID`. */
  readonly runDirName: string;
  readonly workspace: Workspace;
  /** All visits so far, in order. */
  readonly history: () => readonly Visit[];
  /** The journal's record of a step; null if the run has no such step. */
  readonly step: (id: string) => StepRecord | null;
  readonly settings: ConductorSettings;
}

export interface Workspace {
  /** Returns the same at every call, also after an engine restart. The error is a sentence with advice. */
  open(): Promise<Result<OpenWorkspace, string>>;
}

/** `folder`: absolute. `git`: null if the run changes nothing and works without git. `start`: the state before the run. */
export type OpenWorkspace =
  | { readonly folder: string; readonly git: Worktree; readonly start: Snapshot }
  | { readonly folder: string; readonly git: null; readonly start: null };

export interface ConductorSettings {
  /** In addition to those in the run directory: paths or globs, relative to the worktree. */
  readonly allowedEntrypoints: readonly string[];
  readonly protectedBranches: readonly string[];
}

export type VisitKind = 'work' | 'validate' | 'evaluate' | 'rollback' | 'halt' | 'gate';

export interface Visit {
  /** `fix#2`. */
  readonly id: string;
  /** `fix`. */
  readonly step: string;
  readonly visit: number;
  readonly kind: VisitKind;
  /** Null while the visit is in progress. */
  readonly outcome: string | null;
  readonly failure: { readonly kind: FailureKind; readonly message: string } | null;
  readonly outputs: JsonMap;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export interface StepRecord {
  readonly id: string;
  readonly attempt: number;
  readonly failure: Failure | null;
  readonly outputs: Outputs;
  readonly kept: readonly string[];
  readonly usage: Usage | null;
  /** The session of the turns of its block. */
  readonly session: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** A request to a driver for one step of a visit. */
export interface Task {
  readonly context: ConductorContext;
  readonly effect: Effect;
  /** `fix#2`. */
  readonly visit: string;
  /** `fix`. */
  readonly step: string;
  /** Folder of the requesting step. */
  readonly folder: StepFolder;
}

export function taskOf(context: ConductorContext, effect: Effect): Task {
  // Steps of a block have ids below the visit: `fix#2.turn`.
  const pattern = /^((.*)#\d+)(?:\..*)?$/;
  const [, visit = '', step = ''] = present(pattern.exec(effect.step), `${effect.step} belongs to no visit`);
  return { context, effect, visit, step, folder: stepFolder(context.run.files, effect.step, effect.attempt) };
}

/** A step of the same block, or of the block around it. */
export function stepOf({ context, effect, visit }: Task, name: string): StepRecord {
  for (let at = effect.step.lastIndexOf('.'); at >= visit.length; at = effect.step.lastIndexOf('.', at - 1)) {
    const found = context.step(`${effect.step.slice(0, at)}.${name}`);
    if (found !== null) return found;
  }
  throw new Bug(`${effect.step} has no step ${name} before it`);
}

/** Without the current visit. */
export function earlierVisits({ context, visit }: Task): readonly Visit[] {
  return context.history().filter(({ id }) => id !== visit);
}

export function folderOf({ run }: ConductorContext, { id, attempt }: StepRecord): StepFolder {
  return stepFolder(run.files, id, attempt);
}

/** An output of one of these drivers: read from its file if it is large. */
export function valueOf({ run }: Pick<ConductorContext, 'run'>, { outputs, kept }: StepRecord, name: string): Json {
  const value = own(outputs, name) ?? null;
  if (!kept.includes(name)) return value;
  const file = storedFileOf(value);
  assert(file !== null, `the output ${name} is kept, and nobody says where`);
  const text = storedText(file, run.files);
  if (!text.ok) throw new UnusableOutput(text.error);
  return JSON.parse(text.value) as Json;
}

/** An output of a step of the same block. */
export function outputOf(task: Task, step: string, name: string): Json {
  return valueOf(task.context, stepOf(task, step), name);
}

/** The objects in a list of an output. */
export function mapsIn(value: Json | undefined): readonly JsonMap[] {
  return Array.isArray(value) ? (value as readonly Json[]).filter(isJsonMap) : [];
}

/** An output of an earlier step cannot be read, or is no longer what that step left. */
class UnusableOutput extends Error {}

/** Why files of a visit could not be read or written: a clause. Rethrows errors that are not about files. */
export function unrecorded(error: unknown): string {
  if (error instanceof UnusableOutput) return error.message;
  if (!isErrno(error, ...UNUSABLE)) throw error;
  return `what it does cannot be recorded: ${error.message}`;
}

/** A success. Values too large for the journal are stored in files: texts as they are, everything else as JSON. */
export function done({ folder }: Task, outputs: Outputs): Outcome {
  const kept: string[] = [];
  const shown = Object.entries(outputs).map(([name, value]): [string, Json] => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (text.length <= JOURNAL_MAX) return [name, value];
    const path = stepFile(folder, `outputs/${name}`);
    makeFolder(dirname(path));
    writePrivate(path, text);
    // On disk before the record that names it.
    const file = openForReading(path);
    fsyncSync(file);
    closeSync(file);
    kept.push(name);
    const stored = { file: `${folder.inRun}outputs/${name}`, sha256: createHash('sha256').update(text).digest('hex') };
    return [name, storedOutputValue(stored, Buffer.byteLength(text))];
  });
  return success(Object.fromEntries(shown), { kept });
}

const JOURNAL_MAX = 1_000_000;

/** Outputs of a step, whatever its outcome. */
export function withOutputs(outcome: Outcome, more: Outputs): Outcome {
  if (outcome.kind === 'success') return { ...outcome, outputs: { ...outcome.outputs, ...more } };
  const { failure: problem } = outcome;
  return { kind: 'failure', failure: { ...problem, outputs: { ...problem.outputs, ...more } } };
}

/** `${run_id}` and others in the texts of validators. */
export type Places = Readonly<Record<'run_id' | 'run_dir' | 'worktree' | 'step_id', string>>;

/** One pass: values are not expanded again. `written`: how a value is written. */
export function interpolate(
  text: string,
  places: Places,
  written: (value: string) => string = (value) => value,
): Result<string, string> {
  const names = Object.keys(places);
  for (const [, name = '', end] of text.matchAll(PLACEHOLDER)) {
    if (end === '') return err(`\${ is not closed in ${JSON.stringify(text)}`);
    if (names.includes(name)) continue;
    const meant = nearest(name, names);
    const cure = meant === null ? `there are ${names.join(', ')}` : `did you mean \${${meant}}?`;
    return err(`\${${name}} is not a known placeholder; ${cure}`);
  }
  return ok(text.replaceAll(PLACEHOLDER, (_whole, name: keyof Places) => written(places[name])));
}

const PLACEHOLDER = /\$\{([^}]*)(\}?)/g;
