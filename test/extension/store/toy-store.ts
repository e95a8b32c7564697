// A toy store, as proof that a store is added by one folder. It stands for a database on another machine: every call takes a
// moment, records and files are rows of bytes, a run is owned by a random take id that each append is checked against, and
// followers look for new rows from time to time. Nothing of it is on this machine's disk.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';

import { assert, UsageError } from '../../../src/base/errors.ts';
import type {
  Journal,
  JournalEvent,
  RunFile,
  RunFiles,
  RunHolder,
  Store,
  StoredRun,
} from '../../../src/engine/ports.ts';
import type { Program } from '../../../src/ir/program.ts';
import type { JournalRecord } from '../../../src/kernel/decision.ts';
import {
  checkRunId,
  missingRunError,
  neverBeganError,
  runExistsError,
  runLockedError,
} from '../../../src/stores/errors.ts';
import { checkSequence, hashProgram } from '../../../src/stores/journal-lines.ts';

const LOOK_MS = 5;

/** The rows. Whoever reads or changes them does so in one synchronous step, as in a transaction. */
interface Database {
  readonly runs: Map<string, RunRow>;
  readonly files: Map<string, Buffer>;
  changes: number;
}

interface RunRow {
  readonly program: Buffer;
  readonly hash: string;
  readonly records: Buffer[];
  changedAt: number;
  /** Orders runs that changed in the same millisecond. */
  change: number;
  holder: RunHolder | null;
}

export function toyStore(): Store {
  const database: Database = { runs: new Map(), files: new Map(), changes: 0 };
  const { runs } = database;

  /** A round trip to the server. */
  async function query<T>(runId: string, transaction: () => T): Promise<T> {
    checkRunId(runId);
    await setImmediate();
    return transaction();
  }

  function require(runId: string): RunRow {
    const row = runs.get(runId);
    if (row === undefined) throw missingRunError(runId, [...runs.keys()]);
    return row;
  }

  function take(runId: string, row: RunRow): Journal {
    const holder = { pid: process.pid, host: hostname(), since: new Date().toISOString(), take: randomUUID() };
    row.holder = holder;
    let closed = false;
    let lastSeq = row.records.length;
    return {
      ...stored(row),
      async append(records) {
        assert(!closed, 'the journal is closed');
        checkSequence(lastSeq, records);
        lastSeq += records.length;
        const lines = records.map((record) => Buffer.from(JSON.stringify(record)));
        await query(runId, () => {
          if (row.holder?.take !== holder.take) throw new UsageError(`run ${runId} was taken by another engine`);
          row.records.push(...lines);
          row.changedAt = Date.now();
          row.change = database.changes++;
        });
      },
      async close() {
        if (closed) return;
        closed = true;
        await query(runId, () => {
          if (row.holder?.take !== holder.take) return;
          row.holder = null;
          if (row.records.length === 0) runs.delete(runId);
        });
      },
    };
  }

  return {
    create: (runId, program) =>
      query(runId, () => {
        const before = runs.get(runId);
        if (before?.holder) throw runLockedError(runId, null);
        if (before !== undefined) throw runExistsError(runId);
        const row: RunRow = {
          program: Buffer.from(JSON.stringify(program)),
          hash: hashProgram(program),
          records: [],
          changedAt: Date.now(),
          change: database.changes++,
          holder: null,
        };
        runs.set(runId, row);
        return take(runId, row);
      }),

    open: (runId) =>
      query(runId, () => {
        const row = require(runId);
        if (row.holder !== null) throw runLockedError(runId, null);
        if (row.records.length === 0) throw neverBeganError(runId);
        return take(runId, row);
      }),

    read: (runId) => query(runId, () => stored(require(runId))),

    async list({ prefix = '', limit } = {}) {
      await setImmediate();
      return [...runs]
        .filter(([id]) => id.startsWith(prefix))
        .toSorted(([, a], [, b]) => b.change - a.change)
        .slice(0, limit)
        .map(([id, row]) => {
          const { program, records } = stored(row);
          const { source } = program;
          return {
            id,
            changedAt: row.changedAt,
            source,
            startedAt: records[0]?.at ?? null,
            last: records.at(-1) ?? null,
          };
        });
    },

    async *follow(runId, fromSeq, signal = new AbortController().signal): AsyncGenerator<JournalEvent> {
      let next = fromSeq;
      while (!signal.aborted) {
        const lines = await query(runId, () => runs.get(runId)?.records.slice());
        if (lines === undefined) {
          yield { kind: 'lost', why: 'deleted', refusal: missingRunError(runId, []) };
          return;
        }
        if (lines.length < next - 1) {
          next = lines.length + 1;
          yield { kind: 'cut', lastSeq: lines.length };
        }
        const records = lines.slice(next - 1).map(recordOf);
        next += records.length;
        if (records.length > 0) yield { kind: 'records', records };
        else await sleep(LOOK_MS);
      }
    },

    holder: (runId) => query(runId, () => runs.get(runId)?.holder ?? null),
    programText: (runId) => query(runId, () => runs.get(runId)?.program.toString('utf8') ?? ''),

    files(runId) {
      checkRunId(runId);
      return toyFiles(database.files, `${runId}/`);
    },
  };
}

function stored({ program, hash, records }: RunRow): StoredRun {
  return {
    program: JSON.parse(program.toString('utf8')) as Program,
    programHash: hash,
    records: records.map(recordOf),
  };
}

function recordOf(line: Buffer): JournalRecord {
  return JSON.parse(line.toString('utf8')) as JournalRecord;
}

/** One row a file, named by run and path. */
function toyFiles(rows: Map<string, Buffer>, run: string): RunFiles {
  const below = (folder: string): string => (folder === '' ? run : `${run}${folder}/`);
  return {
    async list(folder) {
      await setImmediate();
      const found = new Map<string, RunFile>();
      for (const [key, bytes] of rows) {
        if (!key.startsWith(below(folder))) continue;
        const [name = '', ...rest] = key.slice(below(folder).length).split('/');
        found.set(
          name,
          rest.length > 0 ? { name, kind: 'folder', size: 0 } : { name, kind: 'file', size: bytes.length },
        );
      }
      return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
    async read(path, start = 0, length = Infinity) {
      await setImmediate();
      return rows.get(run + path)?.subarray(start, start + length) ?? null;
    },
    async *changes(_folder, signal) {
      while (!signal.aborted) {
        yield;
        await sleep(LOOK_MS);
      }
    },
    async append(path, bytes) {
      await setImmediate();
      rows.set(run + path, Buffer.concat([rows.get(run + path) ?? Buffer.alloc(0), bytes]));
    },
    async replace(path, bytes) {
      await setImmediate();
      rows.set(run + path, Buffer.from(bytes));
    },
    async remove(path) {
      await setImmediate();
      for (const key of rows.keys()) if (key === run + path || key.startsWith(below(path))) rows.delete(key);
    },
    localPath(path) {
      throw new UsageError(`${path} is in a database, and not on this machine`);
    },
  };
}
