// The runs of a project, as commands name and read them. One that cannot be read (damaged, or another user's) is told of by
// whoever asks for it, and keeps nobody from the others.

import { existsSync } from 'node:fs';

import { UsageError } from '../base/usage-error.ts';
import { refuseOtherProgram } from '../engine/client.ts';
import type { Journal, StoredRun } from '../engine/ports.ts';
import { fold } from '../engine/loop.ts';
import type { RunState } from '../kernel/state.ts';
import type { FileStore } from '../stores/files.ts';
import { fileStore } from '../stores/files.ts';
import { checkRunId, isRunId, missingRun } from '../stores/usage-errors.ts';
import type { Project } from './project.ts';

export function storeOf(project: Project): FileStore {
  return fileStore({ folder: project.runs });
}

/** Whether there is something with that very id. */
export function hasRun(project: Project, text: string): boolean {
  return isRunId(text) && existsSync(storeOf(project).runFolder(text));
}

/** The run that is meant: an id, or the beginning of just one. */
export async function resolveRun(store: FileStore, wanted: string): Promise<string> {
  checkRunId(wanted);
  if (existsSync(store.runFolder(wanted))) return wanted;
  const known = (await store.list()).map(({ id }) => id);
  const meant = known.filter((id) => id.startsWith(wanted));
  const [only] = meant;
  if (only === undefined) throw missingRun(wanted, known);
  if (meant.length === 1) return only;
  throw new UsageError(`${meant.length} runs begin with ${wanted}`, `name one of them: ${someOf(meant)}`);
}

/** The run that something was last recorded of. One that we may not look at is it only where there is no other. */
export async function latestRun(store: FileStore): Promise<string> {
  const [latest] = await store.list();
  if (latest !== undefined) return latest.id;
  throw new UsageError('nothing was run here yet', 'start with: meow run FILE (an example: meow init)');
}

export interface ReadRun extends StoredRun {
  readonly id: string;
  readonly state: RunState;
}

export async function readRun(store: FileStore, id: string): Promise<ReadRun> {
  const stored = await store.read(id);
  refuseOtherProgram(id, stored);
  return { ...stored, id, state: fold(stored.program, stored.records) };
}

/** Takes the run for writing, where it can be trusted. */
export async function openRun(store: FileStore, id: string): Promise<Journal> {
  const journal = await store.open(id);
  try {
    refuseOtherProgram(id, journal);
    return journal;
  } catch (error) {
    await journal.close();
    throw error;
  }
}

/** The step that is meant, with a guess where there is none. */
export function requireStep(run: ReadRun, wanted: string, guess: string | null): void {
  if (run.state.steps.has(wanted)) return;
  const meant = guess === null ? '' : `did you mean ${guess}? `;
  throw new UsageError(`run ${run.id} has no step ${wanted}`, `${meant}its steps: meow show ${run.id} --steps`);
}

function someOf(names: readonly string[]): string {
  const shown = names.slice(0, 8).join(', ');
  return names.length > 8 ? `${shown} …` : shown;
}

/**
 * Runs that are not over for good: told by the ends of their journals, which need not be read whole for it. Those that cannot
 * be read are among them, for nobody knows.
 */
export async function runsGoingOn(store: FileStore): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { id } of await store.list()) {
    const last = await unlessRefused(store.lastRecord(id), null);
    const isOver = last?.decisions.some((made) => made.kind === 'run-ended' && OVER.includes(made.end)) ?? false;
    if (!isOver) found.push(id);
  }
  return found;
}

/** Those, and runs that are over but may have asked what nobody waited for: such a question stays. */
export async function runsWithQuestions(store: FileStore): Promise<readonly string[]> {
  const goingOn = new Set(await runsGoingOn(store));
  const found: string[] = [];
  for (const { id } of await store.list()) {
    // By the text of its Program: to read all that ever ran would take long.
    const mayAsk = async (): Promise<boolean> => (await store.programText(id)).includes('"blocks":false');
    if (goingOn.has(id) || (await unlessRefused(mayAsk(), true))) found.push(id);
  }
  return found;
}

const OVER: readonly string[] = ['done', 'failed'];

/** What `find` returns for each of these runs, one after the other. `unreadable` is called for one that cannot be read. */
export async function inEach<T>(
  ids: readonly string[],
  find: (id: string) => Promise<readonly T[]>,
  unreadable: (id: string) => void,
): Promise<readonly T[]> {
  const found: T[] = [];
  for (const id of ids) {
    const ofRun = await unlessRefused(find(id), null);
    if (ofRun === null) unreadable(id);
    else found.push(...ofRun);
  }
  return found;
}

/** What was asked of a store; `otherwise` where it refuses the run. */
export async function unlessRefused<T, U>(asked: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof UsageError) return otherwise;
    throw error;
  }
}
