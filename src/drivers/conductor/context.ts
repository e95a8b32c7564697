// What the git and inspection drivers know about their run: folders, history, and the outcomes of steps of the same
// block.

import { closeSync, fsyncSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJsonMap, own } from '../../base/json.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { assert, Bug, present } from '../../base/assert.ts';
import type { Result } from '../../base/result.ts';
import { success } from '../../ir/effect.ts';
import type { Effect, Outcome, Success } from '../../ir/effect.ts';
import { failure } from '../../ir/failure.ts';
import type { Failure, FailureKind } from '../../ir/failure.ts';
import { storedOutputValue } from '../../ir/output.ts';
import type { Outputs } from '../../ir/output.ts';
import type { Usage } from '../../ir/usage.ts';
import { makeFolder, writePrivate } from '../../sys/private-file.ts';
import type { DriverContext } from '../environment.ts';
import type { Worktree } from '../git/worktree.ts';
import { stepFolder } from '../step-folder.ts';
import type { StepFolder } from '../step-folder.ts';

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

/** Where the work is done. */
export interface Workspace {
  /** Returns the same at every call, also after an engine restart. The error is a sentence with advice. */
  open(): Promise<Result<OpenWorkspace, string>>;
}

export interface OpenWorkspace {
  /** Absolute. */
  readonly folder: string;
  /** Null if the run changes nothing and works without git. */
  readonly git: Worktree | null;
}

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

/** The current record of a step. */
export interface StepRecord {
  readonly id: string;
  /** Number of the latest attempt. */
  readonly attempt: number;
  /** Null unless it failed. */
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
}

export function taskOf(context: ConductorContext, effect: Effect): Task {
  // Steps of a block have ids below the visit: `fix#2.turn`.
  const [, visit = ''] = present(/^(.*#\d+)(?:\..*)?$/.exec(effect.step), `${effect.step} is of no visit`);
  return { context, effect, visit };
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

export function folderOf(
  { run }: Pick<ConductorContext, 'run'>,
  { id, attempt }: Pick<StepRecord, 'id' | 'attempt'>,
): StepFolder {
  return stepFolder(run.files, id, attempt);
}

/** Folder of the requesting step. */
export function ownFolder({ context, effect }: Task): StepFolder {
  return stepFolder(context.run.files, effect.step, effect.attempt);
}

/** An output of one of these drivers (`kept`): read from its file if it is large. */
export function valueOf({ context }: Pick<Task, 'context'>, { outputs, kept }: StepRecord, name: string): Json {
  const value = own(outputs, name) ?? null;
  if (!kept.includes(name)) return value;
  const file = isJsonMap(value) ? value['$file'] : null;
  assert(typeof file === 'string', `the output ${name} is kept, and nobody says where`);
  return JSON.parse(readFileSync(context.run.files.localPath(file), 'utf8')) as Json;
}

export function failed(kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(kind, message, more) };
}

/**
 * A success. Values too large for the journal are stored in files of the step: texts as they are, everything else as
 * JSON.
 */
export function done(task: Task, outputs: Outputs, more: Partial<Success> = {}): Outcome {
  const folder = ownFolder(task);
  const kept = [...(more.kept ?? [])];
  const shown = Object.entries(outputs).map(([name, value]): [string, Json] => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (kept.includes(name) || text.length <= JOURNAL_MAX) return [name, value];
    makeFolder(join(folder.path, 'outputs'));
    writeDurable(join(folder.path, 'outputs', name), text);
    kept.push(name);
    return [name, storedOutputValue(`${folder.inRun}/outputs/${name}`, Buffer.byteLength(text))];
  });
  return success(Object.fromEntries(shown), { ...more, kept });
}

const JOURNAL_MAX = 1_000_000;

/** On disk before the record that names it. */
function writeDurable(path: string, text: string): void {
  writePrivate(path, text);
  const file = openSync(path, 'r');
  fsyncSync(file);
  closeSync(file);
}

/** Outputs of a step, whatever its outcome. */
export function withOutputs(outcome: Outcome, more: Outputs): Outcome {
  if (outcome.kind === 'success') return { ...outcome, outputs: { ...outcome.outputs, ...more } };
  const { failure: problem } = outcome;
  return { kind: 'failure', failure: { ...problem, outputs: { ...problem.outputs, ...more } } };
}
