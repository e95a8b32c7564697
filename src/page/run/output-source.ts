// Where the output of an attempt comes from: the server, by ranges, or the file that contains the run.

import {
  type ExportedOutput,
  type OutputPlace,
  type OutputsDocument,
  runDataPath,
  type RunName,
  type SearchDocument,
  type StreamName,
} from '../../web/protocol.ts';
import { effectId } from '../../kernel/state.ts';
import { ERROR_LINE } from '../../view/error-line.ts';
import { exported } from '../exported.ts';
import { fetchDocument, fetchFrom, type Loaded, unlessAway } from './use-document.ts';

export interface OutputRange {
  /** Position of the first byte of `bytes` in the stream: later than requested if earlier bytes were not kept. */
  readonly from: number;
  readonly bytes: Uint8Array;
  /** Of the whole stream. */
  readonly size: number;
  /** Number of the line that `from` is in. */
  readonly line: number;
}

export interface OutputSource {
  streams(): Promise<Loaded<OutputsDocument>>;
  /** `from` < 0 counts from the end. */
  read(stream: StreamName, from: number, length: number): Promise<Loaded<OutputRange>>;
  /** Null: there is none. */
  firstError(stream: StreamName): Promise<Loaded<OutputPlace | null>>;
  line(stream: StreamName, line: number): Promise<Loaded<OutputPlace>>;
  search(stream: StreamName, find: string, from: number): Promise<Loaded<SearchDocument>>;
  /** Of the whole stream as it is; null if only a part is known. */
  rawAddress(stream: StreamName): string | null;
}

const MATCHES_MAX = 500;

export function outputSource(of: RunName, step: string, attempt: number): OutputSource {
  if (exported !== null) return new SavedOutput(exported.outputs[effectId(step, attempt)] ?? []);
  return new ServedOutput(of, { step, attempt });
}

class ServedOutput implements OutputSource {
  readonly #of: RunName;
  readonly #what: { readonly step: string; readonly attempt: number };

  constructor(of: RunName, what: { readonly step: string; readonly attempt: number }) {
    this.#of = of;
    this.#what = what;
  }

  streams(): Promise<Loaded<OutputsDocument>> {
    return fetchDocument(runDataPath(this.#of, 'outputs', { ...this.#what }));
  }

  read(stream: StreamName, from: number, length: number): Promise<Loaded<OutputRange>> {
    const path = runDataPath(this.#of, 'output', { ...this.#what, stream, from, length, line: 1 });
    return unlessAway(async () => {
      const loaded = await fetchFrom(path);
      if (loaded.kind !== 'ready') return loaded;
      const { value: response } = loaded;
      const numberOf = (name: string): number => Number(response.headers.get(name) ?? 0);
      const bytes = new Uint8Array(await response.arrayBuffer());
      const value = { from: numberOf('meow-from'), size: numberOf('meow-size'), line: numberOf('meow-line'), bytes };
      return { kind: 'ready', value };
    });
  }

  firstError(stream: StreamName): Promise<Loaded<OutputPlace | null>> {
    return fetchDocument(runDataPath(this.#of, 'output-error', { ...this.#what, stream }));
  }

  line(stream: StreamName, line: number): Promise<Loaded<OutputPlace>> {
    return fetchDocument(runDataPath(this.#of, 'output-line', { ...this.#what, stream, line }));
  }

  search(stream: StreamName, find: string, from: number): Promise<Loaded<SearchDocument>> {
    const query = { ...this.#what, stream, find, from, max: MATCHES_MAX };
    return fetchDocument(runDataPath(this.#of, 'output-search', query));
  }

  rawAddress(stream: StreamName): string {
    return runDataPath(this.#of, 'output', { ...this.#what, stream });
  }
}

/** The end of each stream. Its first line counts as line 1. */
class SavedOutput implements OutputSource {
  readonly #streams: ReadonlyMap<StreamName, { readonly saved: ExportedOutput; readonly bytes: Uint8Array }>;

  constructor(saved: readonly ExportedOutput[]) {
    const encoder = new TextEncoder();
    this.#streams = new Map(saved.map((each) => [each.stream, { saved: each, bytes: encoder.encode(each.text) }]));
  }

  streams(): Promise<Loaded<OutputsDocument>> {
    const streams = [...this.#streams.values()].map(({ saved: { stream, from, size } }) => ({
      stream,
      format: 'text' as const,
      start: from,
      size,
    }));
    return ready({ attempt: 0, ended: true, streams });
  }

  read(stream: StreamName, from: number, length: number): Promise<Loaded<OutputRange>> {
    const { bytes, start } = this.#stream(stream);
    const begin = Math.max(0, (from < 0 ? start + bytes.length + from : from) - start);
    const part = bytes.subarray(begin, begin + length);
    return ready({ from: start + begin, bytes: part, size: start + bytes.length, line: lineAt(bytes, begin) });
  }

  firstError(stream: StreamName): Promise<Loaded<OutputPlace | null>> {
    const { bytes, start } = this.#stream(stream);
    const found = new TextDecoder()
      .decode(bytes)
      .split('\n')
      .findIndex((each) => ERROR_LINE.test(each));
    return ready(found < 0 ? null : { offset: start + offsetOf(bytes, found + 1), line: found + 1 });
  }

  line(stream: StreamName, line: number): Promise<Loaded<OutputPlace>> {
    const { bytes, start } = this.#stream(stream);
    const last = lineAt(bytes, bytes.length);
    return ready({ offset: start + offsetOf(bytes, Math.min(line, last)), line: Math.min(line, last) });
  }

  search(stream: StreamName, find: string): Promise<Loaded<SearchDocument>> {
    const { bytes, start } = this.#stream(stream);
    const { length } = new TextEncoder().encode(find);
    const wanted = find.toLowerCase();
    const lines = new TextDecoder().decode(bytes).split('\n');
    const matches = lines.flatMap((text, index) =>
      text.toLowerCase().includes(wanted)
        ? [{ offset: start + offsetOf(bytes, index + 1), line: index + 1, length }]
        : [],
    );
    const size = start + bytes.length;
    return ready({
      matches: matches.slice(0, MATCHES_MAX),
      searchedTo: size,
      size,
      more: matches.length > MATCHES_MAX,
    });
  }

  rawAddress(): null {
    return null;
  }

  #stream(stream: StreamName): { readonly bytes: Uint8Array; readonly start: number } {
    const found = this.#streams.get(stream);
    return { bytes: found?.bytes ?? new Uint8Array(), start: found?.saved.from ?? 0 };
  }
}

const NEWLINE = 10;

function lineAt(bytes: Uint8Array, offset: number): number {
  let line = 1;
  for (let index = 0; index < offset; index++) if (bytes[index] === NEWLINE) line += 1;
  return line;
}

/** Where a line begins. */
function offsetOf(bytes: Uint8Array, line: number): number {
  let offset = 0;
  for (let at = 1; at < line; at++) offset = bytes.indexOf(NEWLINE, offset) + 1;
  return offset;
}

function ready<T>(value: T): Promise<Loaded<T>> {
  return Promise.resolve({ kind: 'ready', value });
}
