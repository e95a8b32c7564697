// Places in the output of an attempt: the number of a line, the first error, every match of a text.
//
//   places/1  An output is read in pieces, so its length costs time and no memory.
//   places/2  Lines are numbered from 1, from the first byte that was kept.
//   places/3  Lines that were counted once are not counted again, as long as the beginning of the output is kept.

import { ERROR_LINE } from '../view/error-line.ts';
import type { ByteStream } from './output-streams.ts';

export interface OutputPlace {
  readonly offset: number;
  readonly line: number;
}

export interface OutputMatch extends OutputPlace {
  /** In bytes. */
  readonly length: number;
}

export interface FoundMatches {
  readonly matches: readonly OutputMatch[];
  /** Everything before this byte was searched. */
  readonly searchedTo: number;
  readonly more: boolean;
}

export interface TextSearch {
  readonly find: string;
  readonly matchesCase: boolean;
  readonly from: number;
  readonly max: number;
}

const NEWLINE = 0x0a;
const STREAMS_MAX = 32;
/** Later errors are not looked for: the end is shown instead. */
const ERROR_BYTES_MAX = 64 << 20;
/** A longer search goes on in another request. */
const SEARCH_BYTES_MAX = 512 << 20;

/** Between two pieces. `lineStart`: where the line that `offset` is in begins. */
interface Mark {
  readonly offset: number;
  readonly line: number;
  readonly lineStart: number;
}

export class OutputPlaces {
  /** In order of their offsets. */
  readonly #marks = new Map<string, { readonly start: number; readonly marks: Mark[] }>();

  /** The line that a byte is in. `key`: the same for the same output. */
  async lineAt(key: string, stream: ByteStream, offset: number): Promise<number> {
    let mark = this.#last(key, stream, (each) => each.offset <= offset);
    for await (const { from, bytes } of stream.readAsIs(mark.offset, offset - mark.offset)) {
      mark = this.#counted(key, mark, from, bytes);
    }
    return mark.line;
  }

  /** Where a line begins: the last one if there are fewer. */
  async placeOf(key: string, stream: ByteStream, wanted: number): Promise<OutputPlace> {
    let mark = this.#last(key, stream, (each) => each.line < wanted);
    let last: OutputPlace = { offset: mark.lineStart, line: mark.line };
    if (mark.line >= wanted) return last;
    for await (const { from, bytes } of stream.readAsIs(mark.offset, stream.size - mark.offset)) {
      const found = lineIn(bytes, wanted - mark.line);
      if (found !== null && from + found < stream.size) return { offset: from + found, line: wanted };
      mark = this.#counted(key, mark, from, bytes);
      // A newline at the end begins no line.
      if (mark.lineStart < stream.size) last = { offset: mark.lineStart, line: mark.line };
    }
    return last;
  }

  #last(key: string, { start }: ByteStream, fits: (mark: Mark) => boolean): Mark {
    const known = this.#marks.get(key);
    if (known !== undefined && known.start === start) return known.marks.findLast(fits) ?? firstMark(start);
    this.#marks.delete(key);
    this.#marks.set(key, { start, marks: [firstMark(start)] });
    const [oldest] = this.#marks.keys();
    if (this.#marks.size > STREAMS_MAX && oldest !== undefined) this.#marks.delete(oldest);
    return firstMark(start);
  }

  #counted(key: string, before: Mark, from: number, bytes: Uint8Array): Mark {
    let { line, lineStart } = before;
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
      line += 1;
      lineStart = from + at + 1;
    }
    const mark = { offset: from + bytes.length, line, lineStart };
    const marks = this.#marks.get(key)?.marks;
    if (marks !== undefined && mark.offset > (marks.at(-1)?.offset ?? 0)) marks.push(mark);
    return mark;
  }
}

function firstMark(start: number): Mark {
  return { offset: start, line: 1, lineStart: start };
}

/** Where the `count`th next line begins. */
function lineIn(bytes: Uint8Array, count: number): number | null {
  let at = -1;
  for (let left = count; left > 0; left -= 1) {
    at = bytes.indexOf(NEWLINE, at + 1);
    if (at < 0) return null;
  }
  return at + 1;
}

/** The first line that looks like an error; null if none of the first lines does. */
export async function firstError(stream: ByteStream): Promise<OutputPlace | null> {
  let rest = '';
  let restFrom = stream.start;
  let line = 1;
  const bytesMax = Math.min(stream.size - stream.start, ERROR_BYTES_MAX);
  for await (const { from, bytes } of stream.readAsIs(stream.start, bytesMax)) {
    const begin = from - rest.length;
    const text = rest + Buffer.from(bytes).toString('latin1');
    const end = text.lastIndexOf('\n') + 1;
    const found = errorIn(text.slice(0, end), begin, line);
    if (found.place !== null) return found.place;
    line = found.line;
    rest = text.slice(end).slice(-LINE_BYTES_MAX);
    restFrom = from + bytes.length - rest.length;
  }
  return errorIn(rest, restFrom, line).place;
}

/** Of a line without end. */
const LINE_BYTES_MAX = 64 * 1024;

function errorIn(text: string, begin: number, first: number): { readonly place: OutputPlace | null; line: number } {
  let line = first;
  for (let from = 0; from < text.length; ) {
    const newline = text.indexOf('\n', from);
    const end = newline < 0 ? text.length : newline;
    if (ERROR_LINE.test(text.slice(from, end))) return { place: { offset: begin + from, line }, line };
    line += 1;
    from = end + 1;
  }
  return { place: null, line };
}

export async function searchOutput(
  places: OutputPlaces,
  key: string,
  stream: ByteStream,
  { find, matchesCase, from, max }: TextSearch,
): Promise<FoundMatches> {
  const needle = Buffer.from(matchesCase ? find : asciiLower(Buffer.from(find)));
  const begin = Math.max(stream.start, from);
  if (needle.length === 0) return { matches: [], searchedTo: stream.size, more: false };
  const matches: OutputMatch[] = [];
  let line = await places.lineAt(key, stream, begin);
  let rest: Buffer = Buffer.alloc(0);
  let end = begin;
  for await (const piece of stream.readAsIs(begin, Math.min(stream.size - begin, SEARCH_BYTES_MAX))) {
    const bytes = Buffer.from(piece.bytes);
    const isGap = piece.from !== end;
    const text = Buffer.concat([isGap ? Buffer.alloc(0) : rest, matchesCase ? bytes : asciiLower(bytes)]);
    const textFrom = piece.from + bytes.length - text.length;
    let counted = 0;
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
      line += newlines(text, counted, at);
      counted = at;
      if (matches.length === max) return { matches, searchedTo: textFrom + at, more: true };
      matches.push({ offset: textFrom + at, line, length: needle.length });
    }
    const kept = Math.max(counted, text.length - needle.length + 1);
    line += newlines(text, counted, kept);
    rest = text.subarray(kept);
    end = piece.from + bytes.length;
  }
  return { matches, searchedTo: end, more: end < stream.size };
}

function newlines(bytes: Buffer, from: number, to: number): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE, from); at >= 0 && at < to; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

/** Other letters have several bytes, and match only as they are. */
function asciiLower(bytes: Buffer): Buffer {
  const lower = Buffer.from(bytes);
  for (let at = 0; at < lower.length; at += 1) {
    const byte = lower[at] ?? 0;
    if (byte >= 0x41 && byte <= 0x5a) lower[at] = byte + 0x20;
  }
  return lower;
}
