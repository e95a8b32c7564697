// What a page that shows a run is sent: the records that it lacks, each new one, and which engine works on the run.

import { followEngine, type KnownRecords, runFeed } from '../app/run-feed.ts';
import { unlessRefused } from '../app/runs.ts';
import type { NamedRun } from './named-runs.ts';
import { pageRecord } from './page-record.ts';
import type { PageRecord, RunEngine, RunName, ServerMessage } from './protocol.ts';

/** Resolves when the message has left, so that a slow reader is not sent more than it takes. */
type SendMessage = (message: ServerMessage) => Promise<void>;

/** Resolves when nothing more comes: the run is lost, or the signal has aborted. */
export async function sendRun(
  of: RunName,
  { project, store, id }: NamedRun,
  known: KnownRecords,
  send: SendMessage,
  signal: AbortSignal,
): Promise<void> {
  let engine = engineOf(await unlessRefused(store.holder(id), null));
  const ended = new AbortController();
  const sendEngines = async (): Promise<void> => {
    for await (const holder of followEngine(project, store, id, AbortSignal.any([signal, ended.signal]))) {
      const next = engineOf(holder);
      if (next?.pid === engine?.pid && next?.since === engine?.since) continue;
      engine = next;
      await send({ kind: 'engine', of, engine });
    }
  };
  const sendRecords = async (): Promise<void> => {
    for await (const event of runFeed(store, id, known, signal)) {
      if (signal.aborted) return;
      if (event.kind === 'run') await send({ of, engine, ...event });
      else if (event.kind === 'records') {
        for (const records of pieces(event.records.map(pageRecord))) await send({ kind: 'records', of, records });
      } else await send({ of, ...event });
    }
  };
  await Promise.all([sendEngines(), sendRecords().finally(() => ended.abort())]);
}

function engineOf(holder: RunEngine | null): RunEngine | null {
  return holder === null ? null : { pid: holder.pid, host: holder.host, since: holder.since };
}

/** So many records in a message: a page of a run of 20,000 steps shows something before all have arrived. */
const PIECE_RECORDS = 500;

function* pieces(records: readonly PageRecord[]): Generator<readonly PageRecord[]> {
  for (let at = 0; at < records.length; at += PIECE_RECORDS) yield records.slice(at, at + PIECE_RECORDS);
}
