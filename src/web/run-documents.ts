// Documents of a run: its Program, its records, and what its steps were given and printed.

import { dirname } from 'node:path';

import { Adapters } from '../app/adapters.ts';
import { firstError, OutputPlaces, searchOutput } from '../app/output-places.ts';
import { type AttemptOutput, attemptOutput, type ByteStream, ConvertedTexts } from '../app/output-streams.ts';
import { redactorOfRun } from '../app/redact.ts';
import { runHead } from '../app/run-feed.ts';
import { runPatch } from '../app/run-patch.ts';
import { CLEANUP_STEP, type ReadRun, readRun, type Store } from '../app/runs.ts';
import { effectTexts, startedEffect, storedOutput } from '../app/step-texts.ts';
import { UsageError } from '../base/errors.ts';
import type { NamedRun } from './named-runs.ts';
import { pageRecord, valueAtPointer } from './page-record.ts';
import type {
  DiffDocument,
  OutputPlace,
  OutputsDocument,
  ProgramDocument,
  PromptDocument,
  SearchDocument,
  StreamName,
} from './protocol.ts';
import type { Query } from './query.ts';
import { jsonReply, type Reply, RequestRefused, TEXT_TYPE } from './reply.ts';

type RunDocument = (run: NamedRun, query: Query) => Promise<Reply>;

export const RUN_DOCUMENTS: Readonly<Record<string, RunDocument>> = {
  program: async ({ store, id }) => {
    const { program, programHash } = await readRun(store, id).catch((error: unknown) => refuse(store, id, error));
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
    const line = query.optional('line') === '1' ? await places.lineAt(found.key, found, begins) : null;
    const headers = {
      'meow-from': String(begins),
      'meow-size': String(found.size),
      ...(line === null ? {} : { 'meow-line': String(line) }),
    };
    async function* bytes(): AsyncGenerator<Uint8Array> {
      if (first.done !== true) yield first.value.bytes;
      for await (const piece of pieces) yield piece.bytes;
    }
    return { status: 200, kind: 'page', type: TEXT_TYPE, body: bytes(), headers };
  },

  'output-line': async (run, query) => {
    const found = await streamIn(run, query);
    return jsonReply((await places.placeOf(found.key, found, query.count('line', 1))) satisfies OutputPlace);
  },

  'output-error': async (run, query) => {
    return jsonReply((await firstError(await streamIn(run, query))) satisfies OutputPlace | null);
  },

  'output-search': async (run, query) => {
    const found = await streamIn(run, query);
    const search = {
      find: query.text('find'),
      matchesCase: query.optional('case') === '1',
      from: query.count('from', 0, 0),
      max: Math.min(query.count('max', MATCHES_MAX), MATCHES_MAX),
    };
    const answer = await searchOutput(places, found.key, found, search);
    return jsonReply({ ...answer, size: found.size } satisfies SearchDocument);
  },

  stored: async (run, query) => {
    const [step, output] = [query.text('step'), query.text('output')];
    const { state } = await readRun(run.store, run.id);
    const stored = storedOutput(state.steps.get(step), output, run.store.files(run.id));
    if (stored === null) throw new RequestRefused(404, `step ${step} has no output ${output} in a file`);
    if (!stored.ok) throw new RequestRefused(409, stored.error);
    return jsonReply(stored.value);
  },

  diff: async ({ store, id }, query) => {
    const { state } = await readRun(store, id);
    const redactor = redactorOfRun(store.files(id).localPath(''));
    return jsonReply((await runPatch(state, query.optional('step'), redactor)) satisfies DiffDocument);
  },
};

/** Says what is wrong with a run that the store refuses, as those who follow it are told. */
async function refuse(store: Store, id: string, error: unknown): Promise<never> {
  if (!(error instanceof UsageError)) throw error;
  for await (const event of store.follow(id, 1)) {
    if (event.kind === 'lost') throw new RequestRefused(409, error.message, error.hint, { why: event.why });
    break;
  }
  throw error;
}

const MATCHES_MAX = 1_000;

const converted = new ConvertedTexts();
const places = new OutputPlaces();

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

/** `key`: the same for the same output. */
async function streamIn(run: NamedRun, query: Query): Promise<ByteStream & { readonly key: string }> {
  const stream = query.oneOf<StreamName>('stream', ['stdout', 'stderr', 'text']);
  const { streams, attempt } = await outputIn(run, query);
  const found = streams.find((each) => each.stream === stream);
  const key = JSON.stringify([run.project.meow, run.id, query.text('step'), attempt, stream]);
  if (found !== undefined) return { ...found, key };
  throw new RequestRefused(404, `attempt ${attempt} of step ${query.text('step')} has no ${stream}`);
}
