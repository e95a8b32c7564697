// Documents of a run: its Program, its records, and what its steps were given and printed.

import { dirname } from 'node:path';

import { Adapters } from '../app/adapters.ts';
import { type AttemptOutput, attemptOutput, type ByteStream, ConvertedTexts } from '../app/output-streams.ts';
import { runHead } from '../app/run-feed.ts';
import { CLEANUP_STEP, type ReadRun, readRun } from '../app/runs.ts';
import { effectTexts, startedEffect } from '../app/step-texts.ts';
import type { NamedRun } from './named-runs.ts';
import { pageRecord, valueAtPointer } from './page-record.ts';
import type { OutputsDocument, ProgramDocument, PromptDocument, StreamName } from './protocol.ts';
import type { Query } from './query.ts';
import { jsonReply, type Reply, RequestRefused, TEXT_TYPE } from './reply.ts';

type RunDocument = (run: NamedRun, query: Query) => Promise<Reply>;

export const RUN_DOCUMENTS: Readonly<Record<string, RunDocument>> = {
  program: async ({ store, id }) => {
    const { program, programHash } = await readRun(store, id);
    return jsonReply({ program, programHash } satisfies ProgramDocument);
  },

  records: async ({ store, id }, query) => {
    const [from, to] = [query.count('from', 1), query.count('to', Infinity)];
    const head = await runHead(store, id);
    const { records } = await readRun(store, id);
    const wanted = records.slice(from - 1, to);
    const lines = wanted.map((record) => `${JSON.stringify(pageRecord(record))}\n`);
    const headers = { 'meow-generation': head?.generation ?? '' };
    return { status: 200, kind: 'page', type: 'application/x-ndjson; charset=utf-8', body: lines.join(''), headers };
  },

  record: async (run, query) => jsonReply(await recordAt(run, query.count('seq', 0))),

  text: async (run, query) => {
    const record = await recordAt(run, query.count('seq', 0));
    const text = valueAtPointer(record.decisions, query.text('at'));
    if (typeof text === 'string') return { status: 200, kind: 'page', type: TEXT_TYPE, body: text };
    throw new RequestRefused(404, `record ${record.seq} has no text at ${query.text('at')}`);
  },

  prompt: async (run, query) => {
    const read = await readRun(run.store, run.id);
    const { step, attempt } = attemptIn(read, query);
    const effect = startedEffect(read.records, step, attempt);
    const texts = effect === null ? [] : effectTexts(effect, run.store.files(run.id));
    return jsonReply({ kind: effect?.kind ?? null, attempt, texts } satisfies PromptDocument);
  },

  outputs: async (run, query) => {
    const { attempt, ended, streams } = await outputIn(run, query);
    const shown = streams.map(({ stream, format, start, size }) => ({ stream, format, start, size }));
    return jsonReply({ attempt, ended, streams: shown } satisfies OutputsDocument);
  },

  output: async (run, query) => {
    const found = await streamIn(run, query);
    const asked = query.count('from', 0, -Number.MAX_SAFE_INTEGER);
    const from = Math.max(found.start, asked < 0 ? found.size + asked : asked);
    const length = query.count('length', Infinity, 0);
    const pieces = found.read(from, Math.min(length, Math.max(0, found.size - from)));
    const first = await pieces.next();
    const begins = first.done === true ? Math.min(from, found.size) : first.value.from;
    const headers = { 'meow-from': String(begins), 'meow-size': String(found.size) };
    async function* bytes(): AsyncGenerator<Uint8Array> {
      if (first.done !== true) yield first.value.bytes;
      for await (const piece of pieces) yield piece.bytes;
    }
    return { status: 200, kind: 'page', type: TEXT_TYPE, body: bytes(), headers };
  },
};

const converted = new ConvertedTexts();

async function recordAt({ store, id }: NamedRun, seq: number): Promise<ReadRun['records'][number]> {
  const { records } = await readRun(store, id);
  const record = records[seq - 1];
  if (record !== undefined) return record;
  throw new RequestRefused(404, `run ${id} has no record ${seq}`, `it has ${records.length}`);
}

/** The step and attempt in the query; the last attempt if it names none. */
function attemptIn({ id, state }: ReadRun, query: Query): { readonly step: string; readonly attempt: number } {
  const step = query.text('step');
  const found = state.steps.get(step);
  if (found === undefined && step !== CLEANUP_STEP) throw new RequestRefused(404, `run ${id} has no step ${step}`);
  const latest = found?.attempt ?? state.cleanups;
  const attempt = query.count('attempt', latest);
  if (attempt > latest) throw new RequestRefused(404, `step ${step} has no attempt ${attempt}`, `it has ${latest}`);
  return { step, attempt };
}

async function outputIn({ project, store, id }: NamedRun, query: Query): Promise<AttemptOutput> {
  const read = await readRun(store, id);
  const where = attemptIn(read, query);
  if (where.attempt === 0) return { attempt: 0, ended: read.state.phase === 'ended', streams: [] };
  const adapters = (): Adapters => new Adapters({ ...project, cwd: dirname(project.meow) });
  return attemptOutput(store.files(id), read, where, { adapters, converted });
}

async function streamIn(run: NamedRun, query: Query): Promise<ByteStream> {
  const stream = query.oneOf<StreamName>('stream', ['stdout', 'stderr', 'text']);
  const { streams, attempt } = await outputIn(run, query);
  const found = streams.find((each) => each.stream === stream);
  if (found !== undefined) return found;
  throw new RequestRefused(404, `attempt ${attempt} of step ${query.text('step')} has no ${stream}`);
}
