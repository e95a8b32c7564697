// What the drivers of git and of inspections know of their run: its folders, what was done in it before, and the outcomes of
// the steps that stand in the same block.

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
  /** What people and planners look at: artifacts, reports, diffs. Absolute; it exists before the first effect is asked for. */
  readonly runDir: string;
  /** As workflows write it in paths, with the run's id: `.meow/run/ID`. */
  readonly runDirName: string;
  readonly workspace: Workspace;
  /** Every visit of a step so far, in their order. */
  readonly history: () => readonly Visit[];
  /** What the journal holds of a step; null where the run has no such step. */
  readonly step: (id: string) => StepRecord | null;
  readonly settings: ConductorSettings;
}

/** Where the work is done. */
export interface Workspace {
  /** The same however often it is asked for, in all lives of the engine. An error is a sentence, with its cure. */
  open(): Promise<Result<OpenWorkspace, string>>;
}

export interface OpenWorkspace {
  /** Absolute. */
  readonly folder: string;
  /** Null where the run changes nothing and works without git. */
  readonly git: Worktree | null;
}

export interface ConductorSettings {
  /** Beside those in the run's directory: paths or globs, seen from the worktree. */
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
  /** Null while it is under way. */
  readonly outcome: string | null;
  readonly failure: { readonly kind: FailureKind; readonly message: string } | null;
  readonly outputs: JsonMap;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** A step, as far as it has come. */
export interface StepRecord {
  readonly id: string;
  /** Of the latest start. */
  readonly attempt: number;
  /** Null unless it has failed. */
  readonly failure: Failure | null;
  readonly outputs: Outputs;
  readonly kept: readonly string[];
  readonly usage: Usage | null;
  /** The session that turns of its block are in. */
  readonly session: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** What a driver is asked to do for a step of a visit. */
export interface Task {
  readonly context: ConductorContext;
  readonly effect: Effect;
  /** `fix#2`. */
  readonly visit: string;
}

export function taskOf(context: ConductorContext, effect: Effect): Task {
  // Steps of blocks stand below the visit: `fix#2.turn`.
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

/** Without the visit that is under way. */
export function earlierVisits({ context, visit }: Task): readonly Visit[] {
  return context.history().filter(({ id }) => id !== visit);
}

export function folderOf(
  { run }: Pick<ConductorContext, 'run'>,
  { id, attempt }: Pick<StepRecord, 'id' | 'attempt'>,
): StepFolder {
  return stepFolder(run.files, id, attempt);
}

/** Of the step that asks. */
export function ownFolder({ context, effect }: Task): StepFolder {
  return stepFolder(context.run.files, effect.step, effect.attempt);
}

/** An output that one of these drivers has made (`kept`): from its file, where it is large. */
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

/** A success. What is too large for the journal is kept in files of the step: texts as they are, all else as JSON. */
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

/** On the disk before the record that names it. */
function writeDurable(path: string, text: string): void {
  writePrivate(path, text);
  const file = openSync(path, 'r');
  fsyncSync(file);
  closeSync(file);
}

/** What a step hands on, however it ended. */
export function withOutputs(outcome: Outcome, more: Outputs): Outcome {
  if (outcome.kind === 'success') return { ...outcome, outputs: { ...outcome.outputs, ...more } };
  const { failure: problem } = outcome;
  return { kind: 'failure', failure: { ...problem, outputs: { ...problem.outputs, ...more } } };
}
