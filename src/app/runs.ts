// The runs of a project, as commands name and read them. A run that cannot be read (damaged, or another user's) is reported
// by the command that asks for it, and does not hide the others.

import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { didYouMean } from '../base/names.ts';
import { requireSameProgram } from '../engine/client.ts';
import { fold } from '../kernel/apply.ts';
import type { Journal, Store, StoredRun } from '../engine/ports.ts';
import type { EngineAddress } from '../ipc/client.ts';
import { refusedMessages } from '../ipc/inbox.ts';
import { type Address, addressOf } from '../ipc/run-endpoint.ts';
import type { RunState } from '../kernel/state.ts';
import type { Config } from '../languages/config.ts';
import { checkRunId, isRunId } from '../stores/errors.ts';
import { fileStore } from '../stores/files.ts';
import { endsRun, isOver } from '../stores/peek.ts';
import type { Project } from './project.ts';

export type { RunEntry, RunHolder, Store } from '../engine/ports.ts';
export { CLEANUP_STEP, effectId } from '../kernel/state.ts';
export { FLEET_MARK, isRunId } from '../stores/errors.ts';

/** Where the runs of a project are stored: the only place that chooses a store. */
export function storeOf(project: Pick<Project, 'runs'>): Store {
  return fileStore({ folder: project.runs });
}

export async function hasRun(store: Store, text: string): Promise<boolean> {
  return isRunId(text) && (await store.list({ prefix: text })).some(({ id }) => id === text);
}

/** The run with this id, or the only one whose id begins so. */
export async function resolveRun(store: Store, wanted: string): Promise<string> {
  checkRunId(wanted);
  const found = (await store.list({ prefix: wanted })).map(({ id }) => id);
  const [only] = found;
  // If there is none, the store says so when it is asked for the run, with the id that was meant.
  if (only === undefined || found.includes(wanted)) return wanted;
  if (found.length === 1) return only;
  const some = `${found.slice(0, 8).join(', ')}${found.length > 8 ? ' …' : ''}`;
  throw new UsageError(`${found.length} runs begin with ${wanted}`, `name one of them: ${some}`);
}

/** The most recently active run. An unreadable one only if there is no other. */
export async function latestRun(store: Store): Promise<string> {
  const [latest] = await store.list({ limit: 1 });
  if (latest !== undefined) return latest.id;
  throw new UsageError('there are no runs here yet', 'start with: meow run FILE (an example: meow init)');
}

export interface ReadRun extends StoredRun {
  readonly id: string;
  readonly state: RunState;
}

export async function readRun(store: Store, id: string): Promise<ReadRun> {
  const stored = await store.read(id);
  requireSameProgram(id, stored);
  return { ...stored, id, state: fold(stored.program, stored.records) };
}

/** Where messages for the run are sent. Local only. */
export function engineAddress(store: Store, { id, state }: Pick<ReadRun, 'id' | 'state'>): Address & EngineAddress {
  const runFolder = store.files(id).localPath('');
  return { ...addressOf(runFolder, state.request?.mark ?? ''), isOver: () => isOver(runFolder) };
}

/** The file of people who may sign decisions of a run. Absolute. `runFolder`: in `.meow/workflows` of its project. */
export function signersFile(runFolder: string, { gates }: Pick<Config, 'gates'>): string {
  const meow = dirname(dirname(runFolder));
  const { allowedSigners } = gates;
  if (allowedSigners === null) return join(meow, 'allowed_signers');
  return resolve(dirname(meow), allowedSigners.replace(/^~(?=\/)/, homedir()));
}

/** The folder of messages that the run has refused, and how many there are. Local only. */
export function refusedMessagesOf(store: Store, id: string): { readonly folder: string; readonly count: number } {
  const { inbox } = addressOf(store.files(id).localPath(''), '');
  return { folder: join(inbox, 'refused'), count: refusedMessages(inbox).length };
}

/** Opens the run for writing, after checking its Program. */
export async function openRun(store: Store, id: string): Promise<Journal> {
  const journal = await store.open(id);
  try {
    requireSameProgram(id, journal);
    return journal;
  } catch (error) {
    await journal.close();
    throw error;
  }
}

export function requireStep({ id, state: { steps } }: ReadRun, wanted: string): void {
  if (steps.has(wanted)) return;
  const meant = didYouMean(wanted, steps.keys());
  throw new UsageError(`run ${id} has no step ${wanted}`, `${meant}its steps: meow show ${id} --steps`);
}

/** Ids of runs that may still continue: neither done nor failed, or unreadable. */
export async function runsGoingOn(store: Store): Promise<readonly string[]> {
  return (await store.list()).filter(({ last }) => !endsRun(last)).map(({ id }) => id);
}

/** Those, and runs that are over but may have left a question that no step waited for. */
export async function runsWithQuestions(store: Store): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await store.list()) {
    // Searching the text is much faster than reading every run that ever was.
    const mayAsk = async (): Promise<boolean> => (await store.programText(entry.id)).includes('"blocks":false');
    if (!endsRun(entry.last) || (await unlessRefused(mayAsk(), true))) found.push(entry.id);
  }
  return found;
}

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

/** `otherwise` if the store refuses the run. */
export async function unlessRefused<T, U>(asked: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof UsageError) return otherwise;
    throw error;
  }
}
