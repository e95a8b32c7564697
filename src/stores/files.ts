// Runs as folders of files:
//
//   FOLDER/ID/journal.jsonl    the journal (journal-lines.ts, file-journal.ts, journal-tail.ts)
//   FOLDER/ID/program.json     the Program and its hash
//   FOLDER/ID/steps/, agents/  files of steps and agents (local-run-files.ts)
//   FOLDER/ID/sock, inbox/     socket and inbox (ipc/run-endpoint.ts)
//   FOLDER/ID.yaml             the state file (sys/files.ts)
//   FOLDER/ID.yaml.lock        the lock (lock.ts)
//
//   files/1  The lock is acquired before anything of a new run is visible, and released last.
//   files/2  A new run and its name are durable before `create` returns. If `create` fails, or the run is released before it
//            has a record, nothing is left.
//   files/3  `open` cuts off an unfinished write, and makes the rest durable, before anything is appended.
//   files/4  A damaged run is refused and not changed.
//   files/5  Folders are 0700 and files 0600, whatever the umask.
//   files/6  An unreadable run (files/5: another user's) is refused when it is asked for, and does not hide the others.
//   files/7  A run that begins with files is not a run before they are durable. If the engine is killed while writing them,
//            it leaves a folder that no list shows and that the next run with this id replaces.
//   files/8  A run of a fleet is read and not opened: the database decides who writes.
//
// The folder may also contain workflows, which are searched there by name: only a folder with a journal or a program is a run.

import { fstatSync, type Stats } from 'node:fs';
import { chmod, constants, type FileHandle, mkdir, open, readdir, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

import { err, UsageError } from '../base/errors.ts';
import type { Journal, RunEntry, RunFiles, Store, StoredRun } from '../engine/ports.ts';
import type { Program } from '../ir/program.ts';
import { shellWord } from '../ir/quote.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { ABSENT, asUsageError, isErrno, REFUSED, tolerateAsync } from '../sys/errors.ts';
import { openRegular, readFrom } from '../sys/files.ts';
import {
  checkRunId,
  FLEET_MARK,
  fleetRunError,
  isRunId,
  lostJournalError,
  missingRunError,
  neverBeganError,
  runExistsError,
  runLockedError,
} from './errors.ts';
import { type AppendFile, fileJournal } from './file-journal.ts';
import {
  decodeLastRecord,
  decodeProgram,
  decodeRecords,
  encodeProgram,
  hashProgram,
  type JournalDamage,
  type JournalText,
  sourceOf,
  startOf,
} from './journal-lines.ts';
import { type JournalLossDetail, tailJournal } from './journal-tail.ts';
import { localRunFiles } from './local-run-files.ts';
import { flockFile, liveHolder, type Lock, takeLock } from './lock.ts';

export interface FileStoreOptions {
  /** `…/.meow/workflows`. Created with the first run. */
  readonly folder: string;
  readonly wrapFile?: WrapFile;
}

/** A file in the folder of an imported run: it can be read, but not opened for writing. */
export const IMPORTED = 'imported';

/** Wraps the file of a journal. Tests use it to make the disk fail. */
type WrapFile = (file: AppendFile) => AppendFile;

export function fileStore({ folder, wrapFile = (file) => file }: FileStoreOptions): Store {
  const paths = (runId: string): RunPaths => {
    checkRunId(runId);
    return pathsOf(folder, runId);
  };

  const latestFirst = async (prefix = ''): Promise<readonly Activity[]> => {
    const names = (await readFolder(folder)).filter((name) => isRunId(name) && name.startsWith(prefix));
    const found = await Promise.all(names.map((id) => activityOf(pathsOf(folder, id))));
    return found
      .filter((run) => run !== null)
      .toSorted((a, b) => (b.changedAt ?? -1) - (a.changedAt ?? -1) || (a.id < b.id ? -1 : 1));
  };

  const requireRun = async (at: RunPaths): Promise<void> => {
    if ((await statIfPresent(at.journal)) !== null || (await statIfPresent(at.program)) !== null) return;
    const known = (await latestFirst()).map(({ id }) => id);
    throw missingRunError(at.runId, known);
  };

  /** If it fails, its actions are undone, and the error says what the operator can do. */
  const perform = async <T>(verb: string, runId: string, act: (at: RunPaths, undo: Undo) => Promise<T>): Promise<T> => {
    const at = paths(runId);
    const undo: Undo = [];
    try {
      return await act(at, undo);
    } catch (error) {
      await undoAll(undo);
      throw asUsageError(error, `${verb} the run ${runId}`, at.folder, verb === 'create' ? null : deniedHint(at));
    }
  };

  return {
    async list({ prefix, limit } = {}) {
      const runs = (await latestFirst(prefix)).slice(0, limit);
      const entries: RunEntry[] = [];
      for (let at = 0; at < runs.length; at += ENTRIES_AT_ONCE) {
        const some = runs.slice(at, at + ENTRIES_AT_ONCE);
        entries.push(...(await Promise.all(some.map((run) => entryOf(pathsOf(folder, run.id), run)))));
      }
      return entries;
    },

    create: (runId, program, fill) =>
      perform('create', runId, (at, undo) => createJournal(at, { program, fill, wrapFile }, undo)),

    open: (runId) =>
      perform('open', runId, async (at, undo) => {
        await requireRun(at);
        if ((await statIfPresent(join(at.folder, FLEET_MARK))) !== null) throw fleetRunError(runId);
        return openJournal(at, wrapFile, undo);
      }),

    read: (runId) =>
      perform('read', runId, async (at) => {
        await requireRun(at);
        const records = await readRecords(at);
        return { ...(await readProgram(at, records.length)), records };
      }),

    follow(runId, fromSeq, signal = new AbortController().signal) {
      const at = paths(runId);
      return tailJournal({ path: at.journal, fromSeq, signal, refusal: (loss) => lossError(at, loss) });
    },

    programText: (runId) => perform('read', runId, async (at) => (await readIfPresent(at.program)).toString('utf8')),

    holder: (runId) =>
      perform('read', runId, async (at) => {
        const holder = await liveHolder(at.lock);
        if (holder === null) return null;
        return { pid: holder.pid, host: hostname(), since: holder.takenAt, take: holder.nonce };
      }),

    files: (runId) => localRunFiles(paths(runId).folder),
  };
}

const ENTRIES_AT_ONCE = 64;

type RunPaths = Readonly<ReturnType<typeof pathsOf>>;

function pathsOf(parent: string, runId: string) {
  const folder = join(parent, runId);
  const journal = join(folder, 'journal.jsonl');
  const program = join(folder, 'program.json');
  const filled = join(folder, 'filled');
  return { runId, parent, folder, journal, program, filled, state: `${folder}.yaml`, lock: `${folder}.yaml.lock` };
}

function deniedHint({ parent, folder }: RunPaths): string {
  return `see who owns it: ls -la ${shellWord(parent)} ${shellWord(folder)} · ask them, or change the owner or mode (chown, chmod)`;
}

/** Undoes each action so far; in the order of the actions. */
type Undo = (() => Promise<void>)[];

/** An action that cannot be undone does not stop the others: the error that led here is the one to report. */
async function undoAll(undo: Undo): Promise<void> {
  for (const step of undo.toReversed()) await tolerateAsync('any', undefined, step());
}

interface NewRun {
  readonly program: Program;
  readonly fill: Parameters<Store['create']>[2];
  readonly wrapFile: WrapFile;
}

async function createJournal(at: RunPaths, { program, fill, wrapFile }: NewRun, undo: Undo): Promise<Journal> {
  await makeFolder(at.parent, 0o700, undo);
  const locking = lockRun(at, undo);
  // While the lock is being acquired.
  const programHash = hashProgram(program);
  const lock = await locking;
  await freeId(at);

  await makeFolder(at.folder, 0o700, undo);
  if (fill !== undefined) await fillFolder(at, fill, undo);
  await writeProgram(at, encodeProgram(program, programHash), undo);
  const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
  const file = await open(at.journal, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | DURABLE, 0o600);
  undo.push(() => unlink(at.journal));
  undo.push(() => file.close());
  await file.chmod(0o600);
  await Promise.all([lockJournal(at, lock, file), syncFolder(at.folder), syncFolder(at.parent)]);

  const run: StoredRun = { program, programHash, records: [] };
  return fileJournal({ at, run, file: wrapFile(appendFile(file)), size: 0, lock, discard: () => undoAll(undo) });
}

/** The marker stays: without records it says that nothing has run (files/7). */
async function fillFolder(at: RunPaths, fill: (files: RunFiles) => Promise<void>, undo: Undo): Promise<void> {
  undo.push(() => rm(at.folder, { recursive: true, force: true }));
  const marker = await open(at.filled, 'wx', 0o600);
  await marker.close();
  await syncFolder(at.folder);
  await fill(localRunFiles(at.folder));
}

async function openJournal(at: RunPaths, wrapFile: WrapFile, undo: Undo): Promise<Journal> {
  if ((await statIfPresent(join(at.folder, IMPORTED))) !== null)
    throw new UsageError(
      `run ${at.runId} was imported, and cannot go on here`,
      `start a new run with its results: meow fork ${at.runId}`,
    );
  const lock = await lockRun(at, undo);
  const file = await openIfPresent(at.journal, constants.O_RDWR | constants.O_APPEND | DURABLE);
  if (file === null) throw await noRecordsError(at);
  undo.push(() => file.close());
  await lockJournal(at, lock, file);

  const bytes = await readFrom(file, 0, (await file.stat()).size);
  const { records, wholeBytes } = decode(at, bytes);
  if (records.length === 0) throw await noRecordsError(at);
  const program = await readProgram(at, records.length);
  if (wholeBytes < bytes.length) await file.truncate(wholeBytes);
  // A killed engine may have written records that it did not make durable.
  await file.sync();
  const run: StoredRun = { ...program, records };
  return fileJournal({ at, run, file: wrapFile(appendFile(file)), size: wholeBytes, lock, discard: null });
}

/** A run that left a state file or files of steps had begun, so its records are lost. */
async function noRecordsError(at: RunPaths): Promise<UsageError> {
  const hasSteps = (await statIfPresent(join(at.folder, 'steps'))) !== null && !(await isOnlyFilled(at));
  const began = hasSteps || (await statIfPresent(at.state)) !== null;
  return began ? lostJournalError(at.runId, at.journal) : neverBeganError(at.runId);
}

/** With O_DSYNC one call does what a write and a datasync do. Not on macOS, where only the datasync reaches the disk. */
const DURABLE = process.platform === 'linux' ? constants.O_DSYNC : 0;

function appendFile(file: FileHandle): AppendFile {
  return {
    write: async (bytes) => {
      const { bytesWritten } = await file.write(bytes);
      // Somebody deleted the file: its content is lost when we close it.
      if (fstatSync(file.fd).nlink === 0) {
        throw Object.assign(new Error('ENOENT: the journal has been deleted'), { code: 'ENOENT', syscall: 'write' });
      }
      return bytesWritten;
    },
    datasync: () => (DURABLE === 0 ? file.datasync() : Promise.resolve()),
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  };
}

async function lockRun(at: RunPaths, undo: Undo): Promise<Lock> {
  const answer = await takeLock(at.lock);
  if (answer.kind === 'held') throw runLockedError(at.runId, answer.by);
  undo.push(() => answer.lock.release());
  return answer.lock;
}

/** Also locks the journal: if somebody deleted the lock file, the journal could otherwise get two writers. */
async function lockJournal(at: RunPaths, lock: Lock, file: FileHandle): Promise<void> {
  if (lock.kind === 'flock' && !(await flockFile(file.fd))) throw runLockedError(at.runId, null);
}

/** Removes what is left of a run that never began. Throws if the id is in use. */
async function freeId(at: RunPaths): Promise<void> {
  const stats = await statIfPresent(at.folder);
  if (stats === null) return;
  const names = stats.isDirectory() ? await readFolder(at.folder) : null;
  const isEmpty = names?.every((name) => name === 'journal.jsonl' || name === 'program.json') ?? false;
  if (names === null || !(isEmpty || (await isOnlyFilled(at)))) throw runExistsError(at.runId);
  const decoded = decodeRecords(await readIfPresent(at.journal));
  if (!decoded.ok || decoded.value.records.length > 0) throw runExistsError(at.runId);
  await rm(at.folder, { recursive: true });
}

/** Whether all files of a run without records are those that it was to begin with. An engine writes the state file first. */
async function isOnlyFilled(at: RunPaths): Promise<boolean> {
  return (await statIfPresent(at.filled)) !== null && (await statIfPresent(at.state)) === null;
}

/** Creates the folder and its missing parents, durably. */
async function makeFolder(path: string, mode: number, undo: Undo, parentMade = false): Promise<void> {
  try {
    await mkdir(path, mode);
  } catch (error) {
    if (isErrno(error, 'EEXIST') && (await stat(path)).isDirectory()) return;
    // Some file systems report a missing parent although it exists, if nothing can be created in it.
    if (!isErrno(error, 'ENOENT') || parentMade || dirname(path) === path) throw error;
    await makeFolder(dirname(path), 0o755, undo);
    // From the start: another engine may be creating the same folder.
    return makeFolder(path, mode, undo, true);
  }
  // Unless another engine uses it already.
  undo.push(() => tolerateAsync(['ENOTEMPTY', 'EEXIST', 'ENOENT'], undefined, rmdir(path)));
  if (mode === 0o700) await chmod(path, mode);
  await syncFolder(dirname(path));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    // Some network file systems make names durable by themselves, and do not support this call.
    await tolerateAsync(['EINVAL', 'ENOTSUP'], undefined, folder.sync());
  } finally {
    await folder.close();
  }
}

async function writeProgram(at: RunPaths, text: string, undo: Undo): Promise<void> {
  const file = await open(at.program, 'wx', 0o600);
  undo.push(() => unlink(at.program));
  try {
    await file.chmod(0o600);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function readProgram(at: RunPaths, recordCount: number): Promise<Omit<StoredRun, 'records'>> {
  const text = await withFile(at.program, (file) => file.readFile('utf8'));
  const decoded = text === null ? err('is missing') : decodeProgram(text);
  if (decoded.ok) return decoded.value;
  if (recordCount === 0) throw await noRecordsError(at);
  throw new UsageError(
    `the program of run ${at.runId} cannot be trusted: ${at.program} ${decoded.error}`,
    `nothing was changed; its records are intact: jq . ${shellWord(at.journal)}`,
  );
}

/** Empty only while the creating engine is alive; otherwise throws. */
async function readRecords(at: RunPaths): Promise<readonly JournalRecord[]> {
  const read = async (): Promise<readonly JournalRecord[]> => decode(at, await readIfPresent(at.journal)).records;
  const records = await read();
  if (records.length > 0 || (await liveHolder(at.lock)) !== null) return records;
  // Since the first read an engine may have written records and ended.
  const now = await read();
  if (now.length === 0) throw await noRecordsError(at);
  return now;
}

function decode(at: RunPaths, bytes: Buffer): JournalText {
  const decoded = decodeRecords(bytes);
  if (decoded.ok) return decoded.value;
  throw damagedJournalError(at, decoded.error);
}

function damagedJournalError(at: RunPaths, damage: JournalDamage): UsageError {
  if (damage.kind === 'other-format') {
    const [age, hint] = damage.isLater
      ? ['a later', 'update meow, then try again']
      : ['an earlier', 'use the version that recorded it, or start the workflow again'];
    return new UsageError(
      `run ${at.runId} was recorded by ${age} version of meow (journal format ${damage.format})`,
      hint,
    );
  }
  const path = shellWord(at.journal);
  const intact = damage.line - 1;
  return new UsageError(
    `the journal of run ${at.runId} is damaged: record ${damage.line} cannot be trusted (${damage.why}), ` +
      `${intact === 0 ? 'none is' : intact === 1 ? 'the 1 before it is' : `the ${intact} before it are`} intact (${at.journal})`,
    `nothing was changed or started. ${intact === 0 ? '' : `What is intact: head -n ${intact} ${path} | jq . · `}` +
      `The damaged line: sed -n ${damage.line}p ${path}`,
  );
}

function lossError(at: RunPaths, loss: JournalLossDetail): UsageError {
  switch (loss.kind) {
    case 'deleted':
      return new UsageError(`the journal of run ${at.runId} no longer exists`, 'all runs: meow list');
    case 'replaced':
      return new UsageError(
        `the journal of run ${at.runId} was replaced by another one`,
        `look at the new one: meow status ${at.runId}`,
      );
    case 'denied': {
      const refusal = asUsageError(loss.error, `read the run ${at.runId}`, at.folder, deniedHint(at));
      return refusal instanceof UsageError ? refusal : new UsageError(loss.error.message);
    }
    case 'damaged':
    case 'other-format':
      return damagedJournalError(at, loss);
  }
}

function readLastRecord(at: RunPaths): Promise<JournalRecord | null> {
  return withFile(at.journal, async (file, size) => {
    for (let length = LAST_RECORD_BYTES; ; length *= 16) {
      const start = Math.max(0, size - length);
      const bytes = await readFrom(file, start, size - start);
      const record = decodeLastRecord(bytes, start === 0 ? 'whole-file' : 'tail');
      if (record !== 'cut') return record;
    }
  });
}

/** Much more than most records need. */
const LAST_RECORD_BYTES = 65_536;

async function readIfPresent(path: string, bytesMax = Infinity): Promise<Buffer> {
  return (await withFile(path, (file, size) => readFrom(file, 0, Math.min(size, bytesMax)))) ?? NO_BYTES;
}

const NO_BYTES = Buffer.alloc(0);

async function withFile<T>(path: string, read: (file: FileHandle, size: number) => Promise<T>): Promise<T | null> {
  const file = await openIfPresent(path, constants.O_RDONLY);
  if (file === null) return null;
  try {
    return await read(file, (await file.stat()).size);
  } finally {
    await file.close();
  }
}

async function openIfPresent(path: string, flags: number): Promise<FileHandle | null> {
  return tolerateAsync(['ENOENT'], null, openRegular(path, flags));
}

async function statIfPresent(path: string): Promise<Stats | null> {
  return tolerateAsync(ABSENT, null, stat(path));
}

async function readFolder(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw asUsageError(error, 'list the runs', path);
  }
}

type Activity = Pick<RunEntry, 'id' | 'changedAt'>;

async function activityOf(at: RunPaths): Promise<Activity | null> {
  const stats = await tolerateAsync(REFUSED, { mtimeMs: null }, statIfPresent(at.journal));
  return stats === null ? null : { id: at.runId, changedAt: stats.mtimeMs };
}

/** Reads the beginnings of program and journal, and the end of the journal. */
async function entryOf(at: RunPaths, activity: Activity): Promise<RunEntry> {
  const reading = Promise.all([
    readIfPresent(at.program, BEGINNING_BYTES),
    readIfPresent(at.journal, BEGINNING_BYTES),
    readLastRecord(at),
  ]);
  const [program, journal, last] = await tolerateAsync(REFUSED, [NO_BYTES, NO_BYTES, null] as const, reading);
  const source = sourceOf(program.toString('utf8'));
  return { ...activity, source, startedAt: startOf(journal.toString('latin1')), last };
}

/** Enough for the source of a Program with the longest possible path. */
const BEGINNING_BYTES = 8_192;
