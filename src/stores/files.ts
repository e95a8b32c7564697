// Runs as folders of files:
//
//   FOLDER/ID/journal.jsonl    the truth (journal-lines.ts, file-journal.ts)
//   FOLDER/ID/program.json     the Program and its hash
//   FOLDER/ID/steps/           made by drivers
//   FOLDER/ID/sock, inbox/     where the run is talked to (ipc/address.ts)
//   FOLDER/ID.yaml             the state for people (state-file.ts)
//   FOLDER/ID.yaml.lock        who writes (lock.ts)
//
// F1  The lock is taken before anything of a new run can be seen, and given back after all else.
// F2  A new run is durable, names included, before `create` returns; a create that fails leaves nothing behind, nor does a
//     run that is released before it has a record.
// F3  What a crash left unfinished is cut off, and what remains made durable, before anything is built on it.
// F4  What is damaged is refused and left as it is.
// F5  Folders are 0700 and files 0600, whatever the umask.
// F6  A run that may not be read (another user's, for F5) is refused when it is asked for, and keeps nobody from the others.
//
// The folder may hold workflows too (they are searched there by name): only what has a journal or a program is a run.

import type { Stats } from 'node:fs';
import { fstatSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { chmod, constants, mkdir, open, readdir, readFile, rmdir, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

import { REFUSED } from '../sys/errno.ts';
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
  lockedRun,
  isErrno,
  isRunId,
  isSystemError,
  missingRun,
  lostJournal,
  neverBegan,
  refusalOf,
  shellPath,
  takenRun,
} from './usage-errors.ts';
import { readFrom } from './read-bytes.ts';
import { decodeProgram, encodeProgram, hashProgram, sourceOf } from './stored-program.ts';

export interface FileStoreOptions {
  /** `…/.meow/workflows`; made when the first run is. */
  readonly folder: string;
  /** Stands between journals and their files: a disk that fails, in tests. */
  readonly through?: (file: AppendFile) => AppendFile;
}

export function fileStore({ folder, through = (file) => file }: FileStoreOptions): Store {
  const places = (runId: string): Places => {
    checkRunId(runId);
    return placesOf(folder, runId);
  };

  const latestFirst = async (prefix = ''): Promise<readonly Activity[]> => {
    const names = (await readFolder(folder)).filter((name) => isRunId(name) && name.startsWith(prefix));
    const found = await Promise.all(names.map((id) => activityOf(placesOf(folder, id))));
    return found
      .filter((run) => run !== null)
      .toSorted((a, b) => (b.changedAt ?? -1) - (a.changedAt ?? -1) || (a.id < b.id ? -1 : 1));
  };

  const requireRun = async (at: Places): Promise<void> => {
    if ((await statIfThere(at.journal)) !== null || (await statIfThere(at.program)) !== null) return;
    throw missingRun(
      at.runId,
      (await latestFirst()).map(({ id }) => id),
    );
  };

  const reading = async <T>(runId: string, read: (at: Places) => Promise<T>): Promise<T> => {
    const at = places(runId);
    try {
      return await read(at);
    } catch (error) {
      throw refusalOf(error, `read the run ${runId}`, at.folder, ofAnother(at));
    }
  };

  return {
    async list({ prefix, limit } = {}) {
      const runs = (await latestFirst(prefix)).slice(0, limit);
      const entries: RunEntry[] = [];
      for (let at = 0; at < runs.length; at += ENTRIES_AT_ONCE) {
        const some = runs.slice(at, at + ENTRIES_AT_ONCE);
        entries.push(...(await Promise.all(some.map((run) => entryOf(placesOf(folder, run.id), run)))));
      }
      return entries;
    },

    async create(runId, program) {
      const at = places(runId);
      const undo: Undo = [];
      try {
        return await make(at, program, through, undo);
      } catch (error) {
        await undoAll(undo);
        throw refusalOf(error, `make the run ${runId}`, at.folder);
      }
    },

    async open(runId) {
      const at = places(runId);
      const undo: Undo = [];
      try {
        await requireRun(at);
        return await takeUp(at, through, undo);
      } catch (error) {
        await undoAll(undo);
        throw refusalOf(error, `take up the run ${runId}`, at.folder, ofAnother(at));
      }
    },

    read: (runId) =>
      reading(runId, async (at) => {
        await requireRun(at);
        const records = await readRecords(at);
        return { ...(await readProgram(at, records.length)), records };
      }),

    follow(runId, fromSeq, signal = new AbortController().signal) {
      const at = places(runId);
      return tailJournal({ path: at.journal, fromSeq, signal, refusal: (loss) => lossRefusal(at, loss) });
    },

    programText: (runId) => reading(runId, async (at) => (await readIfThere(at.program)).toString('utf8')),

    holder: (runId) =>
      reading(runId, async (at) => {
        const holder = await livingHolder(at);
        if (holder === null) return null;
        return { pid: holder.pid, host: hostname(), since: holder.takenAt, take: holder.nonce };
      }),

    files: (runId) => localRunFiles(places(runId).folder),
  };
}

/** Files open at the same time. */
const ENTRIES_AT_ONCE = 64;

interface Places {
  readonly runId: string;
  readonly parent: string;
  readonly folder: string;
  readonly journal: string;
  readonly program: string;
  readonly state: string;
  readonly lock: string;
}

function placesOf(parent: string, runId: string): Places {
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

/** What to do where permission is denied. */
function ofAnother({ parent, folder }: Places): string {
  return `see whose it is: ls -la ${shellPath(parent)} ${shellPath(folder)} · ask them, or make it yours (chown, chmod)`;
}

async function livingHolder({ lock }: Places): Promise<LockHolder | null> {
  const holder = await readLockHolder(lock);
  return holder !== null && (await isHolderAlive(holder)) ? holder : null;
}

/** How to take back what was done so far, in the order it was done. */
type Undo = (() => Promise<void>)[];

/** What cannot be taken back does not keep the rest from it; the error that led here is the one to be told. */
async function undoAll(undo: Undo): Promise<void> {
  for (const step of undo.toReversed()) {
    try {
      await step();
    } catch (error) {
      if (!isSystemError(error)) throw error;
    }
  }
}

async function make(at: Places, program: Program, through: Through, undo: Undo): Promise<Journal> {
  await makeFolder(at.parent, 0o700, undo);
  const locking = lockRun(at, undo);
  // The lock is asked for meanwhile.
  const programHash = hashProgram(program);
  const lock = await locking;
  if (!(await isFree(at))) throw takenRun(at.runId);
  await clearRemains(at);

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
  return journalOf(at, run, through(appendFile(file)), 0, lock, () => undoAll(undo));
}

async function takeUp(at: Places, through: Through, undo: Undo): Promise<Journal> {
  const lock = await lockRun(at, undo);
  const file = await openIfThere(at.journal, constants.O_RDWR | constants.O_APPEND | DURABLE);
  if (file === null) throw await withoutRecords(at);
  undo.push(() => file.close());
  await lockJournal(at, lock, file);

  const bytes = await readAll(file);
  const { records, wholeBytes } = decode(at, bytes);
  if (records.length === 0) throw await withoutRecords(at);
  const program = await readProgram(at, records.length);
  if (wholeBytes < bytes.length) await file.truncate(wholeBytes);
  // A killed engine may have written what it did not live to make durable.
  await file.sync();
  return journalOf(at, { ...program, records }, through(appendFile(file)), wholeBytes, lock, null);
}

/** A run that left more behind than what it is made of has begun: then its records are lost, and that is another matter. */
async function withoutRecords(at: Places): Promise<UsageError> {
  const began = (await statIfThere(at.state)) !== null || (await statIfThere(join(at.folder, 'steps'))) !== null;
  return began ? lostJournal(at.runId, at.journal) : neverBegan(at.runId);
}

type Through = (file: AppendFile) => AppendFile;

function journalOf(
  { runId, journal: path }: Places,
  run: StoredRun,
  file: AppendFile,
  size: number,
  lock: Lock,
  discard: (() => Promise<void>) | null,
): Journal {
  return new FileJournal({ runId, path, run, file, size, release: () => lock.release(), discard });
}

/**
 * Where the system can make each write durable before it returns, one call does what a write and a datasync do. Not on
 * macOS, where only the datasync reaches the disk itself.
 */
const DURABLE = process.platform === 'linux' ? constants.O_DSYNC : 0;

function appendFile(file: FileHandle): AppendFile {
  return {
    write: async (bytes) => {
      const { bytesWritten } = await file.write(bytes);
      // Somebody deleted it: what is written now is gone with its last reader.
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

async function lockRun(at: Places, undo: Undo): Promise<Lock> {
  const answer = await takeLock(at.lock);
  if (answer.kind === 'held') throw lockedRun(at.runId, answer.by);
  undo.push(() => answer.lock.release());
  return answer.lock;
}

/** The lock file is easily deleted by a helpful hand; the journal would then have two writers, so it is locked as well. */
async function lockJournal(at: Places, lock: Lock, file: FileHandle): Promise<void> {
  if (lock.kind === 'flock' && !(await flockFile(file.fd))) throw lockedRun(at.runId, null);
}

/** Whether the id can be used: nothing is there, or the remains of a run that never began. */
async function isFree(at: Places): Promise<boolean> {
  const stats = await statIfThere(at.folder);
  if (stats === null) return true;
  if (!stats.isDirectory()) return false;
  const names = await readFolder(at.folder);
  if (names.some((name) => name !== 'journal.jsonl' && name !== 'program.json')) return false;
  const decoded = decodeRecords(await readIfThere(at.journal));
  return decoded.ok && decoded.value.records.length === 0;
}

async function clearRemains(at: Places): Promise<void> {
  if ((await statIfThere(at.folder)) === null) return;
  for (const path of [at.journal, at.program]) {
    if ((await statIfThere(path)) !== null) await unlink(path);
  }
  await rmdir(at.folder);
}

/** With the folders above it that are missing, durably. */
async function makeFolder(path: string, mode: number, undo: Undo, parentMade = false): Promise<void> {
  try {
    await mkdir(path, mode);
  } catch (error) {
    if (isErrno(error, 'EEXIST') && (await stat(path)).isDirectory()) return;
    // Some file systems say that the parent is missing where it is there, and nothing can be made in it.
    if (!isErrno(error, 'ENOENT') || parentMade || dirname(path) === path) throw error;
    await makeFolder(dirname(path), 0o755, undo);
    // From the start: another engine may be making the same.
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
    // Another engine has begun to use it.
    if (!isErrno(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) throw error;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } catch (error) {
    // Some network file systems keep names durable by themselves, and know no such call.
    if (!isErrno(error, 'EINVAL', 'ENOTSUP')) throw error;
  } finally {
    await folder.close();
  }
}

async function writeProgram(at: Places, text: string, undo: Undo): Promise<void> {
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
  at: Places,
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
    throw recordCount === 0 ? await withoutRecords(at) : refuse('is missing');
  }
  const decoded = decodeProgram(text);
  if (!decoded.ok) throw recordCount === 0 ? await withoutRecords(at) : refuse(decoded.error);
  return { program: decoded.value.program, programHash: decoded.value.hash };
}

/** None are there only as long as the engine that has just made the run lives; else it never began, or they are lost. */
async function readRecords(at: Places): Promise<readonly JournalRecord[]> {
  const read = async (): Promise<readonly JournalRecord[]> => decode(at, await readIfThere(at.journal)).records;
  const records = await read();
  if (records.length > 0 || (await livingHolder(at)) !== null) return records;
  // An engine may have recorded them, and ended, since we looked.
  const now = await read();
  if (now.length === 0) throw await withoutRecords(at);
  return now;
}

function decode(at: Places, bytes: Buffer): JournalText {
  const decoded = decodeRecords(bytes);
  if (decoded.ok) return decoded.value;
  throw damagedJournal(at, decoded.error);
}

function damagedJournal(at: Places, damage: JournalDamage): UsageError {
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

function lossRefusal(at: Places, loss: JournalLossDetail): UsageError {
  switch (loss.kind) {
    case 'deleted':
      return new UsageError(`the journal of run ${at.runId} does not exist any more`, 'all runs: meow list');
    case 'replaced':
      return new UsageError(
        `the journal of run ${at.runId} was replaced by another one`,
        `look at the new one: meow status ${at.runId}`,
      );
    case 'denied': {
      const refusal = refusalOf(loss.error, `read the run ${at.runId}`, at.folder, ofAnother(at));
      return refusal instanceof UsageError ? refusal : new UsageError(loss.error.message);
    }
    case 'damaged':
    case 'other-format':
      return damagedJournal(at, loss);
  }
}

async function readLastRecord(at: Places): Promise<JournalRecord | null> {
  const file = await openIfThere(at.journal, constants.O_RDONLY);
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

/** Most last records fit many times over. */
const LAST_RECORD_BYTES = 65_536;

async function readIfThere(path: string, bytesMax = Infinity): Promise<Buffer> {
  const file = await openIfThere(path, constants.O_RDONLY);
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

async function openIfThere(path: string, flags: number): Promise<FileHandle | null> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
}

async function statIfThere(path: string): Promise<Stats | null> {
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
    throw refusalOf(error, 'list the runs', path);
  }
}

type Activity = Pick<RunEntry, 'id' | 'changedAt'>;

/** Null if it is not a run. */
async function activityOf(at: Places): Promise<Activity | null> {
  try {
    const stats = await statIfThere(at.journal);
    return stats === null ? null : { id: at.runId, changedAt: stats.mtimeMs };
  } catch (error) {
    if (!isErrno(error, ...REFUSED)) throw error;
    return { id: at.runId, changedAt: null };
  }
}

/** Reads the beginnings of program and journal, and the end of the journal. */
async function entryOf(at: Places, activity: Activity): Promise<RunEntry> {
  try {
    const [program, journal, last] = await Promise.all([
      readIfThere(at.program, BEGINNING_BYTES),
      readIfThere(at.journal, BEGINNING_BYTES),
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

/** Contains where a Program comes from, with the longest path that there may be. */
const BEGINNING_BYTES = 8_192;
