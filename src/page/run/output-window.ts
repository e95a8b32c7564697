// The part of an output that is loaded: whole lines around one place, so that an output of 100 MB opens like one of a kilobyte.
//
//   output/1  At most BYTES_MAX bytes and LINES_MAX lines are kept: what is far from the last read is dropped.
//   output/2  A line without end is shown in parts: nothing waits for its end.

import type { StreamName } from '../../web/protocol.ts';
import { AnsiLines, type Piece } from './ansi.ts';
import type { OutputRange, OutputSource } from './output-source.ts';
import type { Loaded } from './use-document.ts';

export interface ShownLine {
  readonly number: number;
  /** Position of its first byte. */
  readonly offset: number;
  readonly pieces: readonly Piece[];
  /** Characters that are not shown. */
  readonly cut: number;
}

export interface OutputPart {
  readonly lines: readonly ShownLine[];
  readonly from: number;
  readonly to: number;
  /** Of the whole output, when it was read last. */
  readonly size: number;
}

const CHUNK = 32 * 1024;
const BYTES_MAX = 512 * 1024;
const LINES_MAX = 1500;
const NEWLINE = 10;

interface Held {
  readonly from: number;
  readonly bytes: Uint8Array;
  readonly line: number;
  readonly size: number;
}

export class OutputWindow {
  readonly #source: OutputSource;
  readonly #stream: StreamName;
  /** Position of the first byte that was kept of the output. */
  readonly #start: number;
  #held: Held | null = null;

  constructor(source: OutputSource, stream: StreamName, start: number) {
    this.#source = source;
    this.#stream = stream;
    this.#start = start;
  }

  /** Reads around a place; `offset`: null stands for the end. */
  async open(offset: number | null): Promise<Loaded<OutputPart>> {
    const from = offset === null ? -CHUNK : Math.max(this.#start, offset - CHUNK / 2);
    const loaded = await this.#source.read(this.#stream, from, offset === null ? CHUNK : 2 * CHUNK);
    if (loaded.kind !== 'ready') return loaded;
    this.#held = limited(wholeLines(loaded.value, this.#start), offset === null ? 'end' : 'begin');
    return this.#shown();
  }

  /** The next bytes; none if there are no more yet. */
  async more(): Promise<Loaded<OutputPart>> {
    const held = this.#held;
    if (held === null) return this.open(null);
    const loaded = await this.#source.read(this.#stream, held.from + held.bytes.length, CHUNK);
    if (loaded.kind !== 'ready') return loaded;
    // A later read may have been quicker.
    if (this.#held === held) this.#held = limited(joined(held, loaded.value), 'end');
    return this.#shown();
  }

  /** The bytes before. */
  async earlier(): Promise<Loaded<OutputPart>> {
    const held = this.#held;
    if (held === null) return this.open(null);
    const from = Math.max(this.#start, held.from - CHUNK);
    if (from < held.from) {
      const loaded = await this.#source.read(this.#stream, from, held.from - from);
      if (loaded.kind !== 'ready') return loaded;
      const before = wholeLines(loaded.value, this.#start);
      if (this.#held === held) this.#held = limited(joined(before, held), 'begin');
    }
    return this.#shown();
  }

  #shown(): Loaded<OutputPart> {
    const { from = 0, bytes = new Uint8Array(), line = 1, size = 0 } = this.#held ?? {};
    return {
      kind: 'ready',
      value: { lines: linesIn({ from, bytes, line, size }), from, to: from + bytes.length, size },
    };
  }
}

/** Without a part of a line at its beginning, unless it is a part of one endless line. */
function wholeLines({ from, bytes, line, size }: OutputRange, start: number): Held {
  const end = from <= start ? -1 : bytes.indexOf(NEWLINE);
  if (end >= 0) return { from: from + end + 1, bytes: bytes.subarray(end + 1), line: line + 1, size };
  // At least a whole character.
  const whole =
    from <= start
      ? 0
      : Math.max(
          0,
          bytes.findIndex((byte) => (byte & 0xc0) !== 0x80),
        );
  return { from: from + whole, bytes: bytes.subarray(whole), line, size };
}

function joined(before: Held | OutputRange, after: Held | OutputRange): Held {
  const bytes = new Uint8Array(before.bytes.length + after.bytes.length);
  bytes.set(before.bytes);
  bytes.set(after.bytes, before.bytes.length);
  return { from: before.from, line: before.line, size: Math.max(before.size, after.size), bytes };
}

/** `keep`: the side that stays. */
function limited(held: Held, keep: 'begin' | 'end'): Held {
  const ends: number[] = [];
  for (let at = held.bytes.indexOf(NEWLINE); at >= 0; at = held.bytes.indexOf(NEWLINE, at + 1)) ends.push(at);
  if (keep === 'begin') {
    const end = Math.min(BYTES_MAX, (ends[LINES_MAX - 1] ?? held.bytes.length) + 1);
    return { ...held, bytes: held.bytes.subarray(0, end) };
  }
  const byLines = ends.length <= LINES_MAX ? 0 : (ends[ends.length - LINES_MAX - 1] ?? -1) + 1;
  const begin = Math.max(byLines, held.bytes.length - BYTES_MAX);
  const dropped = ends.filter((at) => at < begin).length;
  return { ...held, from: held.from + begin, line: held.line + dropped, bytes: held.bytes.subarray(begin) };
}

function linesIn({ from, bytes, line }: Held): readonly ShownLine[] {
  const decoder = new TextDecoder();
  const ansi = new AnsiLines();
  const lines: ShownLine[] = [];
  for (let begin = 0; begin < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, begin);
    const end = newline < 0 ? bytes.length : newline;
    // A long line is decoded only as far as it is shown.
    const text = decoder.decode(bytes.subarray(begin, Math.min(end, begin + 4 * SHOWN_MAX)));
    const cut = Math.max(0, end - begin - 4 * SHOWN_MAX, text.length - SHOWN_MAX);
    lines.push({ number: line + lines.length, offset: from + begin, pieces: ansi.line(text.slice(0, SHOWN_MAX)), cut });
    begin = end + 1;
  }
  return lines;
}

const SHOWN_MAX = 4000;
