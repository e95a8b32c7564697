// The output of an attempt by ranges of bytes, for readers that show a part of it. Reading a range costs what is read, however
// long the output is.
//
//   ranges/1  Every byte keeps its offset. Of a long output of a terminal the middle is not kept: such bytes are skipped.
//   ranges/2  Secrets are hidden, by as many stars: also one that the range contains only a part of.
//   ranges/3  The events of an agent without a terminal are also available as text, in a stream of its own.

import { dirname } from 'node:path';

import type { EventsAsText } from '../drivers/agent/readers/events-as-text.ts';
import { TRANSCRIPT } from '../drivers/agent/terminal/agent.ts';
import { segmentNames } from '../drivers/agent/tmux/transcript-segments.ts';
import type { RunFiles } from '../engine/ports.ts';
import { lookAt } from '../sys/files.ts';
import type { Adapters } from './adapters.ts';
import { redactorOfRun, type RunRedactor } from './redact.ts';
import type { ReadRun } from './runs.ts';
import { eventsAsText, hasExited, outputPrefix, OutputReader } from './step-output.ts';

export type StreamName = 'stdout' | 'stderr' | 'text';

/** Bytes at fixed offsets. */
export interface ByteStream {
  readonly stream: StreamName;
  readonly format: 'text' | 'terminal';
  /** The first byte that was kept. */
  readonly start: number;
  readonly size: number;
  /** At most so many bytes from there on, in pieces. A piece begins later than asked if bytes were not kept. */
  read(from: number, length: number): AsyncGenerator<StreamPiece>;
  /** The same with secrets, for finding places: much faster, and never shown. */
  readAsIs(from: number, length: number): AsyncGenerator<StreamPiece>;
}

export interface StreamPiece {
  readonly from: number;
  readonly bytes: Uint8Array;
}

export interface AttemptOutput {
  readonly attempt: number;
  /** No more bytes come. */
  readonly ended: boolean;
  readonly streams: readonly ByteStream[];
}

const CHUNK_BYTES = 1 << 20;

/** `converted`: texts of earlier calls, which are only continued. */
export async function attemptOutput(
  files: RunFiles,
  run: Pick<ReadRun, 'id' | 'state' | 'records'>,
  { step, attempt }: { readonly step: string; readonly attempt: number },
  { adapters, converted }: { readonly adapters: () => Adapters; readonly converted: ConvertedTexts },
): Promise<AttemptOutput> {
  const prefix = await outputPrefix(files, run.state, step, attempt);
  const names = await namesAt(files, prefix);
  const stdout = names.includes(TRANSCRIPT) ? TRANSCRIPT : 'stdout';
  const redactor = redactorOfRun(files.localPath(''));
  const streams = (['stdout', 'stderr'] as const).flatMap((stream) => {
    const base = stream === 'stdout' ? stdout : stream;
    const segments = segmentsIn(files, prefix, segmentNames(names, base));
    return segments === null ? [] : [hiding(fileStream(files, stream, base === TRANSCRIPT, segments), redactor)];
  });
  // The path tells runs of the same id in two projects apart.
  const text = await converted.of(files, files.localPath(prefix), prefix, () =>
    eventsAsText(run, { id: step, attempt, prefix }, adapters()),
  );
  const state = run.state.steps.get(step);
  const isOver = state !== undefined && (state.attempt !== attempt || state.status !== 'running');
  const ended = isOver || run.state.phase === 'ended' || (await hasExited(files, prefix));
  return { attempt, ended, streams: text === null ? streams : [text, ...streams] };
}

async function namesAt(files: RunFiles, prefix: string): Promise<readonly string[]> {
  // Only a folder, of a long-lived agent, has segments. The folder of all steps may be large.
  if (!prefix.endsWith('/')) return ['stdout', 'stderr'];
  return (await files.list(dirname(`${prefix}stdout`))).map(({ name }) => name);
}

interface Segment {
  readonly path: string;
  readonly at: number;
  readonly size: number;
}

/** Null if the stream has no file. */
function segmentsIn(
  files: RunFiles,
  prefix: string,
  names: readonly { readonly name: string; readonly at: number }[],
): readonly Segment[] | null {
  const found = names.flatMap(({ name, at }) => {
    const path = `${prefix}${name}`;
    const stats = lookAt(files.localPath(path));
    return stats?.isFile() === true ? [{ path, at, size: stats.size }] : [];
  });
  return found.length === 0 ? null : found;
}

function fileStream(
  files: RunFiles,
  stream: StreamName,
  isTerminal: boolean,
  segments: readonly Segment[],
): ByteStream {
  const last = segments.at(-1);
  return {
    stream,
    format: isTerminal ? 'terminal' : 'text',
    start: segments[0]?.at ?? 0,
    size: last === undefined ? 0 : last.at + last.size,
    async *read(from, length) {
      yield* this.readAsIs(from, length);
    },
    async *readAsIs(from, length) {
      const end = from + length;
      for (const { path, at, size } of segments) {
        for (let next = Math.max(from, at); next < Math.min(end, at + size); ) {
          const bytes = await files.read(path, next - at, Math.min(CHUNK_BYTES, end - next, at + size - next));
          if (bytes === null || bytes.length === 0) break;
          yield { from: next, bytes };
          next += bytes.length;
        }
      }
    },
  };
}

/** A secret is recognized with this much around it. */
const AROUND_BYTES = 8 * 1024;

function hiding(stream: ByteStream, redactor: RunRedactor): ByteStream {
  return {
    ...stream,
    async *read(from, length) {
      const end = from + length;
      const pieces = stream.readAsIs(Math.max(stream.start, from - AROUND_BYTES), length + 2 * AROUND_BYTES);
      let held: StreamPiece | null = null;
      // A piece is shown when what follows it is known.
      for await (const piece of pieces) {
        const isGap = held !== null && held.from + held.bytes.length !== piece.from;
        if (held !== null && isGap) {
          yield* within(hidden(held, redactor), from, end);
          held = null;
        }
        const all: StreamPiece = held === null ? piece : { from: held.from, bytes: joined(held.bytes, piece.bytes) };
        const shown = Math.max(0, all.bytes.length - AROUND_BYTES);
        const safe = hidden(all, redactor);
        yield* within({ from: all.from, bytes: safe.bytes.subarray(0, shown) }, from, end);
        // What was hidden stays hidden, also if only its end is read again.
        held = { from: all.from + shown, bytes: safe.bytes.subarray(shown) };
      }
      if (held !== null) yield* within(hidden(held, redactor), from, end);
    },
  };
}

function hidden({ from, bytes }: StreamPiece, redactor: RunRedactor): StreamPiece {
  return { from, bytes: redactor.hide(bytes) };
}

function* within({ from, bytes }: StreamPiece, begin: number, end: number): Generator<StreamPiece> {
  const first = Math.max(from, begin);
  const part = bytes.subarray(first - from, Math.max(0, end - from));
  if (part.length > 0) yield { from: first, bytes: part };
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  return Buffer.concat([a, b]);
}

/** Events that were converted to text before, for a few outputs. */
export class ConvertedTexts {
  readonly #texts = new Map<string, ConvertedText | null>();

  /** Null if the output is not one of events. */
  async of(
    files: RunFiles,
    key: string,
    prefix: string,
    converter: () => EventsAsText | null,
  ): Promise<ByteStream | null> {
    let text = this.#texts.get(key);
    if (text === undefined) {
      const events = converter();
      text = events === null ? null : new ConvertedText(files, prefix, events);
    }
    // The one used last is the newest.
    this.#texts.delete(key);
    this.#texts.set(key, text);
    const [oldest] = this.#texts.keys();
    if (this.#texts.size > TEXTS_MAX && oldest !== undefined) this.#texts.delete(oldest);
    await text?.update();
    return text?.stream() ?? null;
  }
}

const TEXTS_MAX = 16;
/** The end of a text is what people read. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;

class ConvertedText {
  readonly #reader: OutputReader;
  readonly #events: EventsAsText;
  #start = 0;
  #bytes = Buffer.alloc(0);
  #updating: Promise<void> | null = null;

  constructor(files: RunFiles, prefix: string, events: EventsAsText) {
    this.#reader = new OutputReader(files, prefix);
    this.#events = events;
  }

  update(): Promise<void> {
    this.#updating ??= this.#convert().finally(() => {
      this.#updating = null;
    });
    return this.#updating;
  }

  async #convert(): Promise<void> {
    for await (const piece of this.#reader.fresh()) {
      if (piece.kind === 'gap' || piece.stream !== 'stdout') continue;
      this.#bytes = Buffer.concat([this.#bytes, Buffer.from(this.#events.add(piece.bytes))]);
      const surplus = this.#bytes.length - TEXT_BYTES_MAX;
      if (surplus <= 0) continue;
      this.#bytes = Buffer.from(this.#bytes.subarray(surplus));
      this.#start += surplus;
    }
  }

  stream(): ByteStream {
    const [start, bytes] = [this.#start, this.#bytes];
    return {
      stream: 'text',
      format: 'text',
      start,
      size: start + bytes.length,
      async *read(from, length) {
        yield* this.readAsIs(from, length);
      },
      // Secrets were masked when it was converted.
      async *readAsIs(from, length) {
        const first = Math.max(from, start);
        const piece = bytes.subarray(first - start, Math.max(0, from + length - start));
        if (piece.length > 0) yield { from: first, bytes: piece };
      },
    };
  }
}
