// Runs in PostgreSQL.
//
// Lines of journals and Programs are stored as the bytes that the file store would write, checksums included, and checked when
// they are read.
//
//   fleet-store/1  A new run and its files are visible at once or not at all. If `create` fails, nothing is left after the
//                  process has ended.
//   fleet-store/2  A run has one writer: the latest take of a living owner (schema/2, schema/3).
//   fleet-store/3  No wait is without a deadline (database/1). Reads fail after it; appends are sent again (shared/2).
//   fleet-store/4  Following asks every 300 ms, because a notification for each append would make appends wait for each other.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../../base/errors.ts';
import type { Journal, JournalEvent, RunEntry, RunHolder, Store, StoredRun } from '../../engine/ports.ts';
import type { JournalRecord } from '../../kernel/decision.ts';
import { bootId } from '../../sys/process.ts';
import { checkRunId, missingRunError, neverBeganError, runExistsError, runLockedError } from '../errors.ts';
import { decodeProgram, decodeRecords, encodeProgram, hashProgram, sourceOf, startOf } from '../journal-lines.ts';
import { type FleetAddress, schemaOf } from './address.ts';
import { Connection, ConnectionLost } from './connection.ts';
import { requireSchema } from './migrate.ts';
import { type Owner, OwnerSession } from './owner-session.ts';
import { postgresRunFiles } from './run-files.ts';
import { type AppendAnswer, lostRecordsError, runJournal } from './run-journal.ts';
import { Witness } from './witness.ts';

export interface PostgresStoreOptions {
  readonly address: FleetAddress;
  readonly owner: Owner;
  /** Folders of runs that this machine drives, for witnesses; null: none are kept. */
  readonly home?: string | null;
  /** Also take runs whose files are on another machine. */
  readonly withoutFiles?: boolean;
}

export interface PostgresStore extends Store {
  /** Connects as the owner. Throws if another process is this owner. */
  hello(): Promise<void>;
  /** Runs that this owner may drive now, the oldest first. `isOurs`: it drove them before. */
  waiting(): Promise<readonly { readonly id: string; readonly isOurs: boolean }[]>;
  /** Makes a run that has ended wait for a worker. False if it is driven or waits already. */
  makeWaiting(runId: string): Promise<boolean>;
  /** Gives a run to a machine that has not its files. Throws if its owner lives. */
  moveTo(runId: string, machine: string): Promise<void>;
  /** Asks the owner of the run, or the next one, to stop it. False if it has ended. */
  stop(runId: string, by: string, force: boolean): Promise<boolean>;
  /** Runs that this owner drives, or may drive, and shall stop. */
  stops(): Promise<readonly { readonly id: string; readonly by: string; readonly force: boolean }[]>;
  whereabouts(runId: string): Promise<Whereabouts | null>;
  machines(): Promise<{ readonly machines: readonly FleetMachine[]; readonly waiting: number }>;
  /** Stores again what the witness of this machine has and the database has lost. Returns how many records that are. */
  restore(runId: string): Promise<number>;
  /** Ends the connections. Runs that are still held count as interrupted. */
  close(): Promise<void>;
}

/** Makes no connection before the first call. */
export function postgresStore({
  address,
  owner,
  home = null,
  withoutFiles = false,
}: PostgresStoreOptions): PostgresStore {
  const schema = schemaOf(address);
  const writer = new Connection(address, { name: `meow ${owner.id}` });
  const reader = new Connection(address, { name: `meow reader ${owner.id}` });
  const session = new OwnerSession(address, owner);
  /** The take of each run that this process holds. */
  const takes = new Map<string, string>();
  let checked: Promise<void> | null = null;

  const checkSchema = (): Promise<void> => {
    checked ??= requireSchema(reader, address).catch((error: unknown) => {
      checked = null;
      throw error;
    });
    return checked;
  };

  /** For one function of the schema. */
  const call = async <Row extends object>(
    db: Connection,
    text: string,
    ...values: readonly unknown[]
  ): Promise<readonly Row[]> => {
    await checkSchema();
    return db.query<Row>(text.replace('SCHEMA', schema), values);
  };
  const ask = async <T>(db: Connection, text: string, ...values: readonly unknown[]): Promise<T | null> =>
    (await call<{ value: T }>(db, `select SCHEMA.${text} as value`, ...values))[0]?.value ?? null;

  const witnessOf = (runId: string): Witness | null => (home === null ? null : new Witness(`${home}/${runId}`));

  const holder = async (runId: string): Promise<RunHolder | null> => {
    const [found] = await call<{ process: number; host: string; since: string; take: string }>(
      reader,
      'select * from SCHEMA.holder($1)',
      runId,
    );
    return found === undefined ? null : { pid: found.process, host: found.host, since: found.since, take: found.take };
  };

  const locked = async (runId: string): Promise<UsageError> => {
    const by = await holder(runId);
    return runLockedError(runId, by === null ? null : { pid: by.pid, takenAt: `${by.since} on ${by.host}` });
  };

  const missing = async (runId: string): Promise<UsageError> =>
    missingRunError(
      runId,
      (await list({})).map(({ id }) => id),
    );

  const list = async ({
    prefix = '',
    limit,
  }: {
    readonly prefix?: string;
    readonly limit?: number;
  }): Promise<readonly RunEntry[]> => {
    const rows = await call<ListedRun>(reader, 'select * from SCHEMA.list_runs($1, $2)', prefix, limit ?? null);
    return rows.map(({ id, changed_at: changedAt, program, first, last }) => ({
      id,
      changedAt,
      source: sourceOf(program.toString('utf8')),
      startedAt: startOf(first?.toString('latin1') ?? ''),
      last: last === null ? null : lastRecordOf(last),
    }));
  };

  const storedProgram = async (runId: string): Promise<StoredProgram | null> => {
    const [found] = await call<StoredProgram>(reader, 'select * from SCHEMA.read_program($1)', runId);
    return found ?? null;
  };

  const readLines = async (runId: string): Promise<readonly Buffer[]> => {
    const lines: Buffer[] = [];
    for (let head = Infinity; lines.length < head; ) {
      const [piece] = await call<Piece>(
        reader,
        'select * from SCHEMA.read_lines($1, $2, $3)',
        runId,
        lines.length + 1,
        PIECE_BYTES,
      );
      if (piece === undefined || piece.lines.length === 0) break;
      lines.push(...piece.lines);
      head = piece.head;
    }
    return lines;
  };

  const journalOf = (runId: string, take: string, from: string | null, run: StoredRun): Journal => {
    takes.set(runId, take);
    return runJournal({
      runId,
      run,
      taken: owner.kind === 'machine' ? { machine: { id: owner.id, boot: bootId() }, take: { id: take, from } } : null,
      witness: witnessOf(runId),
      async send(after, lines) {
        await session.start();
        return (await ask<AppendAnswer>(writer, 'append($1, $2, $3, $4)', runId, take, after, lines)) ?? 'fenced';
      },
      async release(hasEnded) {
        await ask(writer, 'release($1, $2, $3)', runId, take, hasEnded);
        if (takes.get(runId) === take) takes.delete(runId);
      },
    });
  };

  /** Takes an existing run. Returns the machine that drove it last. Throws why not. */
  const takeRun = async (runId: string, take: string): Promise<string | null> => {
    await checkSchema();
    await session.start();
    const [found] = await call<{ answer: string; at_home: string | null; from_machine: string | null }>(
      writer,
      'select * from SCHEMA.take_run($1, $2, $3, $4)',
      runId,
      owner.id,
      take,
      withoutFiles,
    );
    if (found === undefined || found.answer === 'absent') throw await missing(runId);
    if (found.answer === 'held') throw await locked(runId);
    if (found.answer === 'empty') throw neverBeganError(runId);
    if (found.answer === 'elsewhere') throw elsewhereError(runId, found.at_home ?? '');
    return found.from_machine;
  };

  /** If it fails, the take is given back. */
  const taking = async <T>(runId: string, act: (take: string) => Promise<T>): Promise<T> => {
    const take = randomUUID();
    try {
      return await act(take);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) await ask(writer, 'release($1, $2, false)', runId, take);
      throw error;
    }
  };

  return {
    isShared: true,
    list: (query = {}) => list(query),
    holder: async (runId) => {
      checkRunId(runId);
      return holder(runId);
    },

    async create(runId, program, fill) {
      checkRunId(runId);
      await checkSchema();
      await session.start();
      const programHash = hashProgram(program);
      const text = Buffer.from(encodeProgram(program, programHash));
      return taking(runId, async (take) => {
        const answer = await ask<string>(
          writer,
          'create_run($1, $2, $3, $4, $5)',
          runId,
          text,
          owner.id,
          take,
          fill === undefined,
        );
        if (answer === 'exists') throw runExistsError(runId);
        if (answer !== 'ok') throw await locked(runId);
        takes.set(runId, take);
        if (fill !== undefined) {
          await fill(files(runId));
          await ask(writer, 'show_run($1, $2)', runId, take);
        }
        witnessOf(runId)?.replace([]);
        return journalOf(runId, take, null, { program, programHash, records: [] });
      });
    },

    async open(runId) {
      checkRunId(runId);
      return taking(runId, async (take) => {
        const from = await takeRun(runId, take);
        const lines = await readLines(runId);
        await checkWitness(runId, witnessOf(runId), lines);
        const program = programOf(runId, (await storedProgram(runId))?.program ?? Buffer.alloc(0));
        return journalOf(runId, take, from, { ...program, records: recordsOf(runId, lines) });
      });
    },

    async read(runId) {
      checkRunId(runId);
      const found = await storedProgram(runId);
      if (found === null) throw await missing(runId);
      const records = recordsOf(runId, await readLines(runId));
      if (records.length === 0 && (await holder(runId)) === null) throw neverBeganError(runId);
      return { ...programOf(runId, found.program), records };
    },

    follow(runId, fromSeq, signal = new AbortController().signal) {
      checkRunId(runId);
      const look = async (from: number): Promise<Piece | null> => {
        const [piece] = await call<Piece>(
          reader,
          'select * from SCHEMA.read_lines($1, $2, $3)',
          runId,
          from,
          PIECE_BYTES,
        );
        return piece ?? null;
      };
      return followRun(runId, fromSeq, signal, look);
    },

    async programText(runId) {
      checkRunId(runId);
      return (await storedProgram(runId))?.program.toString('utf8') ?? '';
    },

    files: (runId) => files(runId),

    async hello() {
      await checkSchema();
      await session.start();
    },

    async waiting() {
      const rows = await call<{ id: string; home: string | null }>(
        reader,
        'select * from SCHEMA.waiting_runs($1)',
        owner.id,
      );
      return rows.map(({ id, home: at }) => ({ id, isOurs: at !== null }));
    },

    async makeWaiting(runId) {
      checkRunId(runId);
      if ((await storedProgram(runId)) === null) throw await missing(runId);
      return (await ask<boolean>(writer, 'make_waiting($1)', runId)) === true;
    },

    async moveTo(runId, machine) {
      checkRunId(runId);
      const answer = await ask<string>(writer, 'move_run($1, $2)', runId, machine);
      if (answer === 'held') throw await locked(runId);
      if (answer !== 'ok') throw await missing(runId);
    },

    async stop(runId, by, force) {
      checkRunId(runId);
      if ((await storedProgram(runId)) === null) throw await missing(runId);
      return (await ask<boolean>(writer, 'stop_run($1, $2, $3)', runId, by, force)) === true;
    },

    stops: () => call<{ id: string; by: string; force: boolean }>(reader, 'select * from SCHEMA.stops($1)', owner.id),

    async whereabouts(runId) {
      checkRunId(runId);
      const [found] = await call<{ waits: boolean; host: string | null; heard: string | null; is_driven: boolean }>(
        reader,
        'select * from SCHEMA.whereabouts($1)',
        runId,
      );
      if (found === undefined) return null;
      return { waits: found.waits, host: found.host, heard: found.heard, isDriven: found.is_driven };
    },

    async machines() {
      const machines = await call<FleetMachine>(reader, 'select * from SCHEMA.list_machines()');
      return { machines, waiting: (await ask<number>(reader, 'count_waiting()')) ?? 0 };
    },

    async restore(runId) {
      checkRunId(runId);
      return taking(runId, async (take) => {
        await takeRun(runId, take);
        const lines = await readLines(runId);
        const kept = (await witnessOf(runId)?.lines()) ?? [];
        requireSameLines(runId, lines, kept);
        const lost = kept.slice(lines.length);
        recordsOf(runId, [...lines, ...lost]);
        for (let at = 0; at < lost.length; at += LINES_AT_ONCE) {
          const some = lost.slice(at, at + LINES_AT_ONCE);
          const answer = await ask<AppendAnswer>(
            writer,
            'append($1, $2, $3, $4)',
            runId,
            take,
            lines.length + at,
            some,
          );
          if (answer !== 'ok') throw await locked(runId);
        }
        await ask(writer, 'release($1, $2, false)', runId, take);
        return lost.length;
      });
    },

    async close() {
      await session.close();
      await Promise.all([writer.close(), reader.close()]);
    },
  };

  function files(runId: string): ReturnType<Store['files']> {
    checkRunId(runId);
    return postgresRunFiles({ runId, take: () => takes.get(runId) ?? null, call, reader, writer });
  }
}

/** Where a run is. */
export interface Whereabouts {
  /** It has not ended, or shall be resumed. */
  readonly waits: boolean;
  /** Of the machine that has its files; null if none has. */
  readonly host: string | null;
  /** When that machine connected last, ISO 8601. */
  readonly heard: string | null;
  readonly isDriven: boolean;
}

export interface FleetMachine {
  readonly id: string;
  readonly host: string;
  readonly process: number;
  /** When it connected. ISO 8601. */
  readonly since: string;
  readonly lives: boolean;
  /** Runs that it drives. */
  readonly driven: number;
  /** Runs that wait for it. */
  readonly waiting: number;
}

const PIECE_BYTES = 4 * 1024 * 1024;
const LINES_AT_ONCE = 500;
const FOLLOW_MS = 300;

interface ListedRun {
  readonly id: string;
  readonly changed_at: number;
  /** The beginning. */
  readonly program: Buffer;
  readonly first: Buffer | null;
  readonly last: Buffer | null;
}

interface StoredProgram {
  readonly born: string;
  readonly program: Buffer;
  readonly head: number;
}

interface Piece {
  /** Differs with every run that has this id. */
  readonly born: string;
  readonly head: number;
  readonly lines: readonly Buffer[];
}

async function* followRun(
  runId: string,
  fromSeq: number,
  signal: AbortSignal,
  look: (from: number) => Promise<Piece | null>,
): AsyncGenerator<JournalEvent> {
  let next = fromSeq;
  let born: string | null = null;
  while (!signal.aborted) {
    const piece = await look(next);
    if (piece === null) {
      yield lost(
        'deleted',
        new UsageError(`the journal of run ${runId} no longer exists`, 'all runs: meow list --fleet'),
      );
      return;
    }
    born ??= piece.born;
    if (piece.born !== born) {
      const hint = `look at the new one: meow status ${runId} --fleet`;
      yield lost('replaced', new UsageError(`the journal of run ${runId} was replaced by another one`, hint));
      return;
    }
    if (piece.head > 0 && piece.head < next - 1) {
      next = piece.head + 1;
      yield { kind: 'cut', lastSeq: piece.head };
      continue;
    }
    if (piece.lines.length > 0) {
      const records = tryRecordsOf(runId, piece.lines, next);
      if (records instanceof UsageError) {
        yield lost('damaged', records);
        return;
      }
      next += records.length;
      yield { kind: 'records', records };
      continue;
    }
    await sleep(FOLLOW_MS, undefined, { signal }).catch(ignoreAbort);
  }
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error;
}

function lost(why: 'deleted' | 'replaced' | 'damaged', refusal: UsageError): JournalEvent {
  return { kind: 'lost', why, refusal };
}

/** A line in the database is whole or damaged: there is no write that was cut off. */
function tryRecordsOf(runId: string, lines: readonly Buffer[], firstSeq = 1): readonly JournalRecord[] | UsageError {
  const decoded = decodeRecords(Buffer.concat(lines), firstSeq);
  if (decoded.ok && decoded.value.records.length === lines.length) return decoded.value.records;
  if (!decoded.ok && decoded.error.kind === 'other-format') {
    return new UsageError(
      `run ${runId} was recorded by another version of meow (journal format ${decoded.error.format})`,
      'use the version that recorded it',
    );
  }
  const at = decoded.ok
    ? firstSeq + decoded.value.records.length
    : decoded.error.kind === 'damaged'
      ? decoded.error.line
      : firstSeq;
  return new UsageError(
    `the journal of run ${runId} is damaged in the database: record ${at} cannot be trusted`,
    `nothing was changed or started; restore the database from a backup, or compare with journal.jsonl on the machine of the run`,
  );
}

function recordsOf(runId: string, lines: readonly Buffer[]): readonly JournalRecord[] {
  const records = tryRecordsOf(runId, lines);
  if (records instanceof UsageError) throw records;
  return records;
}

function lastRecordOf(line: Buffer): JournalRecord | null {
  const [, seq] = /^\{(?:"format":\d+,)?"seq":(\d+)/.exec(line.toString('latin1', 0, 60)) ?? [];
  const records = tryRecordsOf('', [line], Number(seq ?? 1));
  return records instanceof UsageError ? null : (records[0] ?? null);
}

function programOf(runId: string, bytes: Buffer): Omit<StoredRun, 'records'> {
  const decoded = decodeProgram(bytes.toString('utf8'));
  if (decoded.ok) return decoded.value;
  throw new UsageError(
    `the program of run ${runId} cannot be trusted: in the database it ${decoded.error}`,
    'nothing was changed; restore the database from a backup',
  );
}

/** Brings the witness of this machine up to date, unless it has more than the database. */
async function checkWitness(runId: string, witness: Witness | null, lines: readonly Buffer[]): Promise<void> {
  if (witness === null) return;
  const kept = await witness.lines();
  requireSameLines(runId, lines, kept);
  if (kept.length > lines.length) throw lostRecordsError(runId);
  if (kept.length < lines.length || kept.length === 0) witness.replace(lines);
}

function requireSameLines(runId: string, lines: readonly Buffer[], kept: readonly Buffer[]): void {
  const differs = kept.findIndex((line, at) => lines[at] !== undefined && !lines[at].equals(line));
  if (differs === -1) return;
  throw new UsageError(
    `run ${runId} is held: from record ${differs + 1} on, the database has other records than this machine has seen stored`,
    'another machine continued it after the database had lost records: continue it there, or move journal.jsonl of its folder here aside',
  );
}

function elsewhereError(runId: string, home: string): UsageError {
  return new UsageError(
    `the files of run ${runId} are on the machine ${home}, so it waits for that machine`,
    `start meow worker there; or continue it here without its files: meow resume ${runId} --fleet --here`,
  );
}
