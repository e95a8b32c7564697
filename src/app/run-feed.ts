// The records of a run for a reader that keeps a copy of them, and may have been away: what it lacks, then each new record.
//
//   run-feed/1  A generation names one journal: a run that was deleted and started again under its id has another.
//   run-feed/2  A reader whose last record is not the stored one starts again with record 1: its copy is of no use.
//   run-feed/3  If another journal takes the place of the run, its records follow. All other losses end the feed.

import type { JournalEvent, JournalLoss, RunHolder, Store } from '../engine/ports.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { findProcess, lives, type ProcessEntry } from '../sys/process.ts';
import { watchFolder } from '../sys/watch.ts';
import type { Project } from './project.ts';
import { unlessRefused } from './runs.ts';

/** What the reader has. */
export interface KnownRecords {
  /** The first record that it lacks. */
  readonly fromSeq: number;
  /** Of its copy; absent at first. */
  readonly generation?: string;
  /** The time of the record before `fromSeq`. */
  readonly lastAt?: number;
}

export type FeedEvent =
  /** First, and whenever the records that follow begin with another one than the next. */
  | { readonly kind: 'run'; readonly generation: string; readonly fromSeq: number; readonly lastSeq: number }
  | { readonly kind: 'records'; readonly records: readonly JournalRecord[] }
  /** Later records of the copy do not count. */
  | { readonly kind: 'cut'; readonly lastSeq: number }
  | {
      readonly kind: 'lost';
      readonly why: JournalLoss | 'missing';
      readonly message: string;
      readonly cure: string | null;
    };

export async function* runFeed(
  store: Store,
  id: string,
  known: KnownRecords,
  signal: AbortSignal,
): AsyncGenerator<FeedEvent> {
  let has = known;
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const head = await runHead(store, id);
    if (head === null) {
      const message = isFirst ? `there is no run ${id}` : `run ${id} was deleted`;
      yield { kind: 'lost', why: isFirst ? 'missing' : 'deleted', message, cure: 'all runs: meow list' };
      return;
    }
    const isSame = has.generation === undefined || has.generation === head.generation;
    const loss = yield* feedFrom(store, id, isSame ? has : { fromSeq: 1 }, head, signal);
    if (loss === null) return;
    if (loss.why !== 'replaced') {
      yield loss;
      return;
    }
    has = { fromSeq: 1, generation: '' };
  }
}

type Loss = Extract<FeedEvent, { kind: 'lost' }>;

/** Returns why the journal was lost; null at the abort. */
async function* feedFrom(
  store: Store,
  id: string,
  { fromSeq, lastAt }: KnownRecords,
  head: RunHead,
  signal: AbortSignal,
): AsyncGenerator<FeedEvent, Loss | null> {
  if (fromSeq > 1) {
    // The record before it must be the one that the reader has.
    const events = store.follow(id, fromSeq - 1, signal);
    let isChecked = false;
    for await (const event of events) {
      if (event.kind === 'lost') return lossOf(event);
      if (isChecked) yield event;
      else if (event.kind === 'records' && isSameRecord(event.records[0], fromSeq - 1, lastAt)) {
        isChecked = true;
        yield { kind: 'run', ...head, fromSeq };
        if (event.records.length > 1) yield { kind: 'records', records: event.records.slice(1) };
      } else break;
    }
    if (isChecked || signal.aborted) return null;
  }
  yield { kind: 'run', ...head, fromSeq: 1 };
  yield { kind: 'cut', lastSeq: 0 };
  for await (const event of store.follow(id, 1, signal)) {
    if (event.kind === 'lost') return lossOf(event);
    yield event;
  }
  return null;
}

function isSameRecord(record: JournalRecord | undefined, seq: number, at: number | undefined): boolean {
  return record?.seq === seq && (at === undefined || record.at === at);
}

function lossOf({ why, refusal }: Extract<JournalEvent, { kind: 'lost' }>): Loss {
  return { kind: 'lost', why, message: refusal.message, cure: refusal.hint };
}

export interface RunHead {
  readonly generation: string;
  /** 0 if nothing is recorded, or the last record cannot be read. */
  readonly lastSeq: number;
}

/** Null if the run does not exist. Its cost does not grow with the journal. */
export async function runHead(store: Store, id: string): Promise<RunHead | null> {
  const listed = await unlessRefused(store.list({ prefix: id }), []);
  const entry = listed.find((each) => each.id === id);
  if (entry === undefined) return null;
  const program = await unlessRefused(store.files(id).read('program.json', 0, HASH_BYTES), null);
  const [, hash = ''] = /"hash":"([0-9a-f]{16})/.exec(Buffer.from(program ?? []).toString('latin1')) ?? [];
  return { generation: `${entry.startedAt ?? 0}-${hash}`, lastSeq: entry.last?.seq ?? 0 };
}

/** The stored Program begins with its hash. */
const HASH_BYTES = 64;

/** The engine of a run now, and whenever another one has it. Its death leaves no trace, so a living one is checked. */
export async function* followEngine(
  project: Pick<Project, 'runs'>,
  store: Store,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<RunHolder | null> {
  let wake = (): void => {};
  let changed = false;
  const onChange = (): void => {
    changed = true;
    wake();
  };
  const lock = `${id}.yaml.lock`;
  const watcher = watchFolder(project.runs, (name) => {
    if (name === null || name.startsWith(lock)) onChange();
  });
  signal.addEventListener('abort', onChange);
  let last: string | null = null;
  let isFirst = true;
  try {
    while (!signal.aborted) {
      changed = false;
      const holder = await unlessRefused(store.holder(id), null);
      if (isFirst || (holder?.take ?? null) !== last) yield holder;
      isFirst = false;
      last = holder?.take ?? null;
      const engine = holder === null ? null : findProcess(holder.pid);
      await new Promise<void>((resolve) => {
        const timer = engine === null ? null : setInterval(() => deadEngine(engine, onChange), ENGINE_MS).unref();
        wake = () => {
          if (timer !== null) clearInterval(timer);
          resolve();
        };
        if (changed || signal.aborted) wake();
      });
    }
  } finally {
    watcher.close();
    signal.removeEventListener('abort', onChange);
  }
}

const ENGINE_MS = 2_000;

function deadEngine(engine: ProcessEntry, onDeath: () => void): void {
  if (!lives(engine)) onDeath();
}
