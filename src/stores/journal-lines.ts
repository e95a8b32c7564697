// Records as lines of JSON: `{"seq":2,"at":"2026-…Z","durable":1,"input":…,"decisions":[…],"crc":"1a2b3c4d"}`.
//
// J1  The CRC is that of the line's text without its `crc` member, and is the last member of the line.
// J2  The first line begins with `"format":2`, so that another version can tell what it reads before it trusts a CRC.
// J3  A line counts once it is whole, with its line end: only then can it have been acknowledged.
// J4  What follows the last whole line, or a last line whose CRC is wrong, is a write that was cut off: it is dropped.
// J5  So is a line with a hole in it (bytes that never came are zero) and whole lines behind it, where none of those was
//     written after it had become durable: a line says up to which record it knew the journal to be durable. The pages of
//     one write may reach the disk in any order.
//     Anything else that is wrong is damage. To drop records behind it would forget finished work, so nothing is read.

import { crc32 } from 'node:zlib';

import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { formatMoment } from '../base/time.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';
import { lengthener, longIdIn, shortener } from './long-ids.ts';

export interface JournalText {
  readonly records: readonly JournalRecord[];
  /** Length of the whole lines. The bytes after them are a write that was cut off. */
  readonly wholeBytes: number;
}

export type JournalDamage =
  /** Line and record count from 1 alike. */
  | { readonly kind: 'damaged'; readonly line: number; readonly why: string }
  | { readonly kind: 'other-format'; readonly format: number; readonly isLater: boolean };

/** `durable`: the number of the last record that is known to be durable. */
export function encodeRecords(records: readonly JournalRecord[], durable: number): string {
  let text = '';
  for (const { seq, at, input, decisions } of records) {
    const head = { ...(seq === 1 ? { format: FORMAT } : {}), seq, at: formatMoment(at), durable };
    const under = longIdIn(input, decisions);
    const body =
      under === null
        ? JSON.stringify({ ...head, input, decisions })
        : `${JSON.stringify({ ...head, under }).slice(0, -1)},${JSON.stringify({ input, decisions }, shortener(under)).slice(1)}`;
    text += `${body.slice(0, -1)}${seal(crc32(body))}\n`;
  }
  return text;
}

/** `firstSeq`: the number of the record that the bytes begin with. They end where the file does. */
export function decodeRecords(bytes: Buffer, firstSeq = 1): Result<JournalText, JournalDamage> {
  const format = firstSeq === 1 ? formatOf(bytes) : FORMAT;
  if (format !== null && format !== FORMAT) {
    return err({ kind: 'other-format', format, isLater: format > FORMAT });
  }

  const records: JournalRecord[] = [];
  let start = 0;
  while (start < bytes.length) {
    const end = bytes.indexOf(LINE_END, start);
    const seq = firstSeq + records.length;
    const isLast = end === -1 || end + 1 === bytes.length;
    const line = end === -1 ? null : readLine(bytes, start, end);
    if (line === null) {
      if (isLast && !holdsWholeRecord(bytes, start)) break;
      if (!isLast && bytes.subarray(start, end).includes(0) && wasNeverDurable(bytes, end + 1, seq)) break;
      return err({ kind: 'damaged', line: seq, why: 'its checksum is wrong' });
    }
    if (format === null) return err({ kind: 'damaged', line: seq, why: 'it names no format' });
    if (line.seq !== seq) return err({ kind: 'damaged', line: seq, why: `it is numbered ${line.seq}` });
    records.push(recordOf(line));
    start = end + 1;
  }
  return ok({ records, wholeBytes: start });
}

/**
 * The last whole record in a piece that ends where the file does. `cut`: the piece begins in the middle of a line and
 * holds no whole one, so a longer piece is needed.
 */
export function decodeLastRecord(bytes: Buffer, piece: 'whole-file' | 'tail'): JournalRecord | 'cut' | null {
  let end = bytes.lastIndexOf(LINE_END);
  // One wrong line is a write that was cut off; a second one is damage, and what stands before it is not the last record.
  for (let tries = 0; tries < 2; tries++) {
    if (end < 0) break;
    const before = end === 0 ? -1 : bytes.lastIndexOf(LINE_END, end - 1);
    if (before === -1 && piece === 'tail') break;
    const line = readLine(bytes, before + 1, end);
    if (line !== null && isSoundBefore(bytes, before, piece)) return recordOf(line);
    // A hole before it may mean that it does not count (J5), which only the whole file tells.
    if (line !== null) return piece === 'tail' ? 'cut' : lastOf(bytes);
    if (end + 1 < bytes.length) return null;
    end = before;
  }
  return piece === 'tail' ? 'cut' : null;
}

/** Whether the line before one that begins behind `lineEnd` is whole, as far as the piece shows it. */
function isSoundBefore(bytes: Buffer, lineEnd: number, piece: 'whole-file' | 'tail'): boolean {
  if (lineEnd <= 0) return true;
  const start = bytes.lastIndexOf(LINE_END, lineEnd - 1) + 1;
  if (start === 0 && piece === 'tail') return true;
  return readLine(bytes, start, lineEnd) !== null;
}

function lastOf(bytes: Buffer): JournalRecord | null {
  const decoded = decodeRecords(bytes);
  return decoded.ok ? (decoded.value.records.at(-1) ?? null) : null;
}

/** When a journal was begun, from its first bytes. */
export function startOf(beginning: string): number | null {
  const [, at = ''] = /^\{"format":\d+,"seq":1,"at":"([^"]+)"/.exec(beginning) ?? [];
  return Number.isNaN(Date.parse(at)) ? null : Date.parse(at);
}

const FORMAT = 2;
export const LINE_END = 0x0a;
const CLOSING_BRACE = Buffer.from('}');
/** `,"crc":"1a2b3c4d"}` */
const CRC_BEFORE = ',"crc":"';
export const CRC_LENGTH = CRC_BEFORE.length + 8 + 2;

/** As the line has it: the moment is written for people. */
interface Line {
  readonly seq: number;
  readonly at: string;
  readonly durable: number;
  /** Where ids are long (long-ids.ts). */
  readonly under?: string;
  readonly input: Input;
  readonly decisions: readonly Decision[];
}

/** Null where the text before `end` is not what was written. */
function readLine(bytes: Buffer, start: number, end: number): Line | null {
  const crcStart = end - CRC_LENGTH;
  if (crcStart <= start) return null;
  const crc = crcOfBody(crc32(bytes.subarray(start, crcStart)));
  if (bytes.toString('latin1', crcStart, end) !== seal(crc)) return null;
  const text = bytes.toString('utf8', start, end);
  const line = parse(text);
  if (line === null || Number.isNaN(Date.parse(line.at))) return null;
  return line.under === undefined ? line : (JSON.parse(text, lengthener(line.under)) as Line);
}

function recordOf({ seq, at, input, decisions }: Line): JournalRecord {
  return { seq, at: Date.parse(at), input, decisions };
}

/** Whether some of the lines behind a wrong one are whole, and all of those were written before it was durable (J5). */
function wasNeverDurable(bytes: Buffer, from: number, wrong: number): boolean {
  let whole = 0;
  for (let start = from; start < bytes.length; ) {
    const end = bytes.indexOf(LINE_END, start);
    if (end === -1) break;
    const line = readLine(bytes, start, end);
    if (line !== null) {
      if (line.durable >= wrong) return false;
      whole += 1;
    }
    start = end + 1;
  }
  return whole > 0;
}

/** A text that is no JSON in spite of its CRC was not written by us. */
function parse(text: string): Line | null {
  try {
    return JSON.parse(text) as Line;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Whether a whole record stands at the start, with something else than a line end behind it: the line end is damaged. */
function holdsWholeRecord(bytes: Buffer, start: number): boolean {
  let crc = 0;
  let counted = start;
  for (;;) {
    const found = bytes.indexOf(CRC_BEFORE, counted === start ? start : counted + 1);
    if (found === -1) return false;
    crc = crc32(bytes.subarray(counted, found), crc);
    counted = found;
    const end = found + CRC_LENGTH;
    if (end >= bytes.length || bytes[end] === LINE_END) continue;
    if (bytes.toString('latin1', found, end) === seal(crcOfBody(crc))) return true;
  }
}

/** The brace that closes the line stands behind the CRC, and closes the text that it is taken of. */
function crcOfBody(crcBeforeBrace: number): number {
  return crc32(CLOSING_BRACE, crcBeforeBrace);
}

function seal(crc: number): string {
  return `${CRC_BEFORE}${crc.toString(16).padStart(8, '0')}"}`;
}

function formatOf(bytes: Buffer): number | null {
  const match = /^\{"format":(\d+),/.exec(bytes.toString('latin1', 0, 40));
  return match?.[1] === undefined ? null : Number(match[1]);
}
