// Runs as folders of files:
//
//   FOLDER/ID/journal.jsonl    the journal (journal-lines.ts, file-journal.ts, journal-tail.ts)
//   FOLDER/ID/program.json     the Program and its hash
//   FOLDER/ID/steps/, agents/  files of steps and agents (local-run-files.ts)
//   FOLDER/ID/sock, inbox/     socket and inbox (ipc/address.ts)
//   FOLDER/ID.yaml             the state file (state-file.ts)
//   FOLDER/ID.yaml.lock        the lock (lock.ts)
//
//   files/1  The lock is acquired before anything of a new run is visible, and released last.
//   files/2  A new run and its name are durable before `create` returns. If `create` fails, or the run is released before it
//            has a record, nothing is left.
//   files/3  `open` cuts off an unfinished write, and makes the rest durable, before anything is appended.
//   files/4  A damaged run is refused and not changed.
//   files/5  Folders are 0700 and files 0600, whatever the umask.
//   files/6  An unreadable run (files/5: another user's) is refused when it is asked for, and does not hide the others.
//
// The folder may also contain workflows, which are searched there by name: only a folder with a journal or a program is a run.

import type { Stats } from 'node:fs';
import { fstatSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { chmod, constants, mkdir, open, readdir, readFile, rmdir, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

import { isErrno, isSystemError, REFUSED } from '../sys/errno.ts';
import { UsageError } from '../base/usage-error.ts';
import type { Journal, RunEntry, Store, StoredRun } from '../engine/ports.ts';
import type { Program } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { AppendFile } from './file-journal.ts';
import { FileJournal } from './file-journal.ts';
import type { JournalDamage, JournalText } from './journal-lines.ts';
import { decodeLastRecord, decodeRecords, startOf } from './journal-lines.ts';
import type { JournalLossDetail } from './journal-tail.ts';
import { tailJournal } from './journal-tail.ts';
import { localRunFiles } from './local-run-files.ts';
import type { Lock, LockHolder } from './lock.ts';
import { flockFile, isHolderAlive, readLockHolder, takeLock } from './lock.ts';
import {
  checkRunId,
  runLockedError,
  isRunId,
  missingRunError,
  lostJournalError,
  neverBeganError,
  asUsageError,
  shellPath,
  runExistsError,
} from './usage-errors.ts';
import { readFrom } from './read-bytes.ts';
import { decodeProgram, encodeProgram, hashProgram, sourceOf } from './stored-program.ts';

export interface FileStoreOptions {
  /** `…/.meow/workflows`. Created with the first run. */
  readonly folder: string;
  /** Wraps the file of a journal. Tests use it to make the disk fail. */
  readonly wrapFile?: (file: AppendFile) => AppendFile;
}

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
    throw missingRunError(
      at.runId,
      (await latestFirst()).map(({ id }) => id),
    );
  };

  const reading = async <T>(runId: string, read: (at: RunPaths) => Promise<T>): Promise<T> => {
    const at = paths(runId);
    try {
      return await read(at);
    } catch (error) {
      throw asUsageError(error, `read the run ${runId}`, at.folder, deniedHint(at));
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

    async create(runId, program) {
      const at = paths(runId);
      const undo: Undo = [];
      try {
        return await createJournal(at, program, wrapFile, undo);
      } catch (error) {
        await undoAll(undo);
        throw asUsageError(error, `create the run ${runId}`, at.folder);
      }
    },

    async open(runId) {
      const at = paths(runId);
      const undo: Undo = [];
      try {
        await requireRun(at);
        return await openJournal(at, wrapFile, undo);
      } catch (error) {
        await undoAll(undo);
        throw asUsageError(error, `open the run ${runId}`, at.folder, deniedHint(at));
      }
    },

    read: (runId) =>
      reading(runId, async (at) => {
        await requireRun(at);
        const records = await readRecords(at);
        return { ...(await readProgram(at, records.length)), records };
      }),

    follow(runId, fromSeq, signal = new AbortController().signal) {
      const at = paths(runId);
      return tailJournal({ path: at.journal, fromSeq, signal, refusal: (loss) => lossError(at, loss) });
    },

    programText: (runId) => reading(runId, async (at) => (await readIfPresent(at.program)).toString('utf8')),

    holder: (runId) =>
      reading(runId, async (at) => {
        const holder = await liveHolder(at);
        if (holder === null) return null;
        return { pid: holder.pid, host: hostname(), since: holder.takenAt, take: holder.nonce };
      }),

    files: (runId) => localRunFiles(paths(runId).folder),
  };
}

/** Files open at the same time. */
const ENTRIES_AT_ONCE = 64;

interface RunPaths {
  readonly runId: string;
  readonly parent: string;
  readonly folder: string;
  readonly journal: string;
  readonly program: string;
  readonly state: string;
  readonly lock: string;
}

function pathsOf(parent: string, runId: string): RunPaths {
  const folder = join(parent, runId);
  const state = `${folder}.yaml`;
  return {
    runId,
    parent,
    folder,
    journal: join(folder, 'journal.jsonl'),
    program: join(folder, 'program.json'),
    state,
    lock: `${state}.lock`,
  };
}

/** The hint if permission is denied. */
function deniedHint({ parent, folder }: RunPaths): string {
  return `see who owns it: ls -la ${shellPath(parent)} ${shellPath(folder)} · ask them, or change the owner or mode (chown, chmod)`;
}

async function liveHolder({ lock }: RunPaths): Promise<LockHolder | null> {
  const holder = await readLockHolder(lock);
  return holder !== null && isHolderAlive(holder) ? holder : null;
}

/** Undoes each action so far; in the order of the actions. */
type Undo = (() => Promise<void>)[];

/** An action that cannot be undone does not stop the others: the error that led here is the one to report. */
async function undoAll(undo: Undo): Promise<void> {
  for (const step of undo.toReversed()) {
    try {
      await step();
    } catch (error) {
      if (!isSystemError(error)) throw error;
    }
  }
}

async function createJournal(at: RunPaths, program: Program, wrapFile: WrapFile, undo: Undo): Promise<Journal> {
  await makeFolder(at.parent, 0o700, undo);
  const locking = lockRun(at, undo);
  // While the lock is being acquired.
  const programHash = hashProgram(program);
  const lock = await locking;
  if (!(await isFree(at))) throw runExistsError(at.runId);
  await removeRemains(at);

  await makeFolder(at.folder, 0o700, undo);
  await writeProgram(at, encodeProgram(program, programHash), undo);
  const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
  const file = await open(at.journal, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | DURABLE, 0o600);
  undo.push(
    () => unlink(at.journal),
    () => file.close(),
  );
  await file.chmod(0o600);
  await Promise.all([lockJournal(at, lock, file), syncFolder(at.folder), syncFolder(at.parent)]);

  const run: StoredRun = { program, programHash, records: [] };
  return journalOf(at, run, wrapFile(appendFile(file)), 0, lock, () => undoAll(undo));
}

async function openJournal(at: RunPaths, wrapFile: WrapFile, undo: Undo): Promise<Journal> {
  const lock = await lockRun(at, undo);
  const file = await openIfPresent(at.journal, constants.O_RDWR | constants.O_APPEND | DURABLE);
  if (file === null) throw await noRecordsError(at);
  undo.push(() => file.close());
  await lockJournal(at, lock, file);

  const bytes = await readAll(file);
  const { records, wholeBytes } = decode(at, bytes);
  if (records.length === 0) throw await noRecordsError(at);
  const program = await readProgram(at, records.length);
  if (wholeBytes < bytes.length) await file.truncate(wholeBytes);
  // A killed engine may have written records that it did not make durable.
  await file.sync();
  return journalOf(at, { ...program, records }, wrapFile(appendFile(file)), wholeBytes, lock, null);
}

/** A run that left a state file or files of steps had begun, so its records are lost. */
async function noRecordsError(at: RunPaths): Promise<UsageError> {
  const began = (await statIfPresent(at.state)) !== null || (await statIfPresent(join(at.folder, 'steps'))) !== null;
  return began ? lostJournalError(at.runId, at.journal) : neverBeganError(at.runId);
}

type WrapFile = (file: AppendFile) => AppendFile;

function journalOf(
  { runId, journal: path }: RunPaths,
  run: StoredRun,
  file: AppendFile,
  size: number,
  lock: Lock,
  discard: (() => Promise<void>) | null,
): Journal {
  return new FileJournal({ runId, path, run, file, size, release: () => lock.release(), discard });
}

/** With O_DSYNC one call does what a write and a datasync do. Not on macOS, where only the datasync reaches the disk. */
const DURABLE = process.platform === 'linux' ? constants.O_DSYNC : 0;

function appendFile(file: FileHandle): AppendFile {
  return {
    write: async (bytes) => {
      const { bytesWritten } = await file.write(bytes);
      // Somebody deleted the file: its content is lost when we close it.
      if (fstatSync(file.fd).nlink === 0) throw deletedError();
      return bytesWritten;
    },
    datasync: () => (DURABLE === 0 ? file.datasync() : Promise.resolve()),
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  };
}

function deletedError(): Error {
  return Object.assign(new Error('ENOENT: the journal has been deleted'), { code: 'ENOENT', syscall: 'write' });
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

/** Whether the id is unused, or belongs to a run that never began. */
async function isFree(at: RunPaths): Promise<boolean> {
  const stats = await statIfPresent(at.folder);
  if (stats === null) return true;
  if (!stats.isDirectory()) return false;
  const names = await readFolder(at.folder);
  if (names.some((name) => name !== 'journal.jsonl' && name !== 'program.json')) return false;
  const decoded = decodeRecords(await readIfPresent(at.journal));
  return decoded.ok && decoded.value.records.length === 0;
}

async function removeRemains(at: RunPaths): Promise<void> {
  if ((await statIfPresent(at.folder)) === null) return;
  for (const path of [at.journal, at.program]) {
    if ((await statIfPresent(path)) !== null) await unlink(path);
  }
  await rmdir(at.folder);
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
  undo.push(() => rmdirIfEmpty(path));
  if (mode === 0o700) await chmod(path, mode);
  await syncFolder(dirname(path));
}

async function rmdirIfEmpty(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    // Another engine uses it already.
    if (!isErrno(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) throw error;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } catch (error) {
    // Some network file systems make names durable by themselves, and do not support this call.
    if (!isErrno(error, 'EINVAL', 'ENOTSUP')) throw error;
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

async function readProgram(
  at: RunPaths,
  recordCount: number,
): Promise<{ readonly program: Program; readonly programHash: string }> {
  const refuse = (what: string): UsageError =>
    new UsageError(
      `the program of run ${at.runId} cannot be trusted: ${at.program} ${what}`,
      `nothing was changed; its records are intact: jq . ${shellPath(at.journal)}`,
    );
  let text: string;
  try {
    text = await readFile(at.program, 'utf8');
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
    throw recordCount === 0 ? await noRecordsError(at) : refuse('is missing');
  }
  const decoded = decodeProgram(text);
  if (!decoded.ok) throw recordCount === 0 ? await noRecordsError(at) : refuse(decoded.error);
  return { program: decoded.value.program, programHash: decoded.value.hash };
}

/** Empty only while the creating engine is alive; otherwise throws. */
async function readRecords(at: RunPaths): Promise<readonly JournalRecord[]> {
  const read = async (): Promise<readonly JournalRecord[]> => decode(at, await readIfPresent(at.journal)).records;
  const records = await read();
  if (records.length > 0 || (await liveHolder(at)) !== null) return records;
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
  const path = shellPath(at.journal);
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

async function readLastRecord(at: RunPaths): Promise<JournalRecord | null> {
  const file = await openIfPresent(at.journal, constants.O_RDONLY);
  if (file === null) return null;
  try {
    const { size } = await file.stat();
    for (let length = LAST_RECORD_BYTES; ; length *= 16) {
      const start = Math.max(0, size - length);
      const bytes = await readFrom(file, start, size - start);
      const record = decodeLastRecord(bytes, start === 0 ? 'whole-file' : 'tail');
      if (record !== 'cut') return record;
    }
  } finally {
    await file.close();
  }
}

/** Much more than most records need. */
const LAST_RECORD_BYTES = 65_536;

async function readIfPresent(path: string, bytesMax = Infinity): Promise<Buffer> {
  const file = await openIfPresent(path, constants.O_RDONLY);
  if (file === null) return Buffer.alloc(0);
  try {
    const { size } = await file.stat();
    return await readFrom(file, 0, Math.min(size, bytesMax));
  } finally {
    await file.close();
  }
}

async function readAll(file: FileHandle): Promise<Buffer> {
  return readFrom(file, 0, (await file.stat()).size);
}

async function openIfPresent(path: string, flags: number): Promise<FileHandle | null> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
}

async function statIfPresent(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return null;
    throw error;
  }
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

/** Null if it is not a run. */
async function activityOf(at: RunPaths): Promise<Activity | null> {
  try {
    const stats = await statIfPresent(at.journal);
    return stats === null ? null : { id: at.runId, changedAt: stats.mtimeMs };
  } catch (error) {
    if (!isErrno(error, ...REFUSED)) throw error;
    return { id: at.runId, changedAt: null };
  }
}

/** Reads the beginnings of program and journal, and the end of the journal. */
async function entryOf(at: RunPaths, activity: Activity): Promise<RunEntry> {
  try {
    const [program, journal, last] = await Promise.all([
      readIfPresent(at.program, BEGINNING_BYTES),
      readIfPresent(at.journal, BEGINNING_BYTES),
      readLastRecord(at),
    ]);
    return {
      ...activity,
      source: sourceOf(program.toString('utf8')),
      startedAt: startOf(journal.toString('latin1')),
      last,
    };
  } catch (error) {
    if (!isErrno(error, ...REFUSED)) throw error;
    return { ...activity, source: null, startedAt: null, last: null };
  }
}

/** Enough for the source of a Program with the longest possible path. */
const BEGINNING_BYTES = 8_192;
