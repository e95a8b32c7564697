// Appends records to a journal in the database.
//
//   shared/1  Appends are sent in order. Those that wait while the database works are committed together, with one statement.
//   shared/2  After a lost connection the same bytes are sent again, until there is an answer. The database stores them once.
//   shared/3  A writer whose take is no longer the latest is fenced: its append leaves nothing, and it appends nothing more.
//   shared/4  The machine that writes keeps a copy of every acknowledged line, the witness. If the database has fewer records
//             than that, it has lost some (a standby that was behind was promoted), and the run is held until they are restored.

import { setTimeout as sleep } from 'node:timers/promises';

import { assert, Bug, UsageError } from '../../base/errors.ts';
import type { Journal, StoredRun } from '../../engine/ports.ts';
import type { JournalRecord } from '../../kernel/decision.ts';
import type { Taken } from '../../kernel/input.ts';
import { isSystemError } from '../../sys/errors.ts';
import { DiskFailure } from '../errors.ts';
import { checkSequence, encodeRecords } from '../journal-lines.ts';
import { ConnectionLost } from './connection.ts';
import type { Witness } from './witness.ts';

export type AppendAnswer = 'ok' | 'fenced' | 'behind';

export interface RunJournalParts {
  readonly runId: string;
  readonly run: StoredRun;
  /** Of a run that a machine drives. */
  readonly taken: Taken | null;
  readonly witness: Witness | null;
  /** One statement. Throws `ConnectionLost` if there was no answer. */
  readonly send: (after: number, lines: readonly Buffer[]) => Promise<AppendAnswer>;
  /** Releases the take, and removes a run without a record. */
  readonly release: (hasEnded: boolean) => Promise<void>;
}

export function runJournal({ runId, run, taken, witness, send, release }: RunJournalParts): Journal {
  let lastSeq = run.records.length;
  let durableSeq = lastSeq;
  let pending: PendingAppend[] = [];
  let draining: Promise<void> | null = null;
  let failure: Error | null = null;
  let hasEnded = isEnd(run.records.at(-1));
  let closed: Promise<void> | null = null;

  async function drain(): Promise<void> {
    // Appends of the same event-loop tick are committed together.
    await Promise.resolve();
    while (pending.length > 0) {
      const group = pending;
      pending = [];
      try {
        await write(group.flatMap(({ lines }) => lines));
      } catch (error) {
        failure = asError(error);
        for (const { reject } of [...group, ...pending]) reject(failure);
        pending = [];
        break;
      }
      for (const { resolve } of group) resolve();
    }
    draining = null;
  }

  async function write(lines: readonly Buffer[]): Promise<void> {
    const answer = await untilAnswered(() => send(durableSeq, lines));
    if (answer === 'behind') throw lostRecordsError(runId);
    if (answer === 'fenced') throw fencedError(runId);
    durableSeq += lines.length;
    try {
      witness?.append(lines);
    } catch (error) {
      throw isSystemError(error) ? new DiskFailure(runId, 'its journal', witness?.path ?? '', error) : error;
    }
  }

  async function close(): Promise<void> {
    await draining;
    await untilAnswered(() => release(failure === null && hasEnded));
    if (durableSeq === 0) await witness?.remove();
  }

  return {
    ...run,
    ...(taken === null ? {} : { taken }),
    async append(records) {
      if (failure !== null) throw failure;
      assert(closed === null, 'the journal is closed');
      checkSequence(lastSeq, records);
      if (records.length === 0) return;
      const lines = records.map((record) => Buffer.from(encodeRecords([record], durableSeq)));
      lastSeq += records.length;
      hasEnded = isEnd(records.at(-1));
      await new Promise<void>((resolve, reject) => {
        pending.push({ lines, resolve, reject });
        draining ??= drain();
      });
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
}

/** Whether nothing follows this record unless somebody resumes the run. */
function isEnd(last: JournalRecord | undefined): boolean {
  return last?.decisions.some(({ kind }) => kind === 'run-ended') ?? false;
}

export function lostRecordsError(runId: string): UsageError {
  return new UsageError(
    `run ${runId} is held: the database has lost its last records, perhaps because a standby that was behind has been promoted`,
    `nothing more was started; on the machine that drove it: meow fleet restore ${runId}`,
  );
}

function fencedError(runId: string): UsageError {
  return new UsageError(
    `run ${runId} was taken by another process, so nothing more is started or recorded here`,
    `see where it is now: meow status ${runId} --fleet`,
  );
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Bug(`not an Error: ${String(error)}`);
}

/** A lost connection means that the database is away: there is no end to that which could be known here. */
export async function untilAnswered<T>(act: () => Promise<T>): Promise<T> {
  for (let pauseMs = RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, RETRY_MAX_MS)) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
    await sleep(pauseMs);
  }
}

const RETRY_MS = 100;
const RETRY_MAX_MS = 2_000;

interface PendingAppend {
  readonly lines: readonly Buffer[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}
