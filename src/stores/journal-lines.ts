// Records as lines of JSON: `{"seq":1,"at":"2026-…Z","input":…,"decisions":[…],"crc":"1a2b3c4d"}`.
//
// J1  The CRC is that of the line's text without its `crc` member, and is the last member of the line.
// J2  The first line begins with `"format":1`, so that a later version can tell what it reads before it trusts a CRC.
// J3  A line counts once it is whole, with its line end: only then can it have been acknowledged.
// J4  What follows the last whole line, or a last line whose CRC is wrong, is a write that was cut off: it is dropped.
//     Anything else that is wrong is damage. To drop records behind it would forget finished work, so nothing is read.

import { crc32 } from 'node:zlib';

import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { formatMoment } from '../base/time.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';

export interface JournalText {
  readonly records: readonly JournalRecord[];
  /** How far the file is whole, in bytes. Beyond it stands a write that was cut off. */
  readonly wholeBytes: number;
}

export type JournalDamage =
  /** Line and record count from 1 alike. */
  | { readonly kind: 'damaged'; readonly line: number; readonly why: string }
  | { readonly kind: 'later-format'; readonly format: number };

export function encodeRecords(records: readonly JournalRecord[]): string {
  let text = '';
  for (const { seq, at, input, decisions } of records) {
    const body = JSON.stringify({
      ...(seq === 1 ? { format: FORMAT } : {}),
      seq,
      at: formatMoment(at),
      input,
      decisions,
    });
    text += `${body.slice(0, -1)}${seal(crc32(body))}\n`;
  }
  return text;
}

export function decodeRecords(bytes: Buffer): Result<JournalText, JournalDamage> {
  const format = formatOf(bytes);
  if (format !== null && format > FORMAT) return err({ kind: 'later-format', format });

  const records: JournalRecord[] = [];
  let start = 0;
  while (start < bytes.length) {
    const end = bytes.indexOf(LINE_END, start);
    const seq = records.length + 1;
    const isLast = end === -1 || end + 1 === bytes.length;
    const line = end === -1 ? null : readLine(bytes, start, end);
    if (line === null) {
      if (isLast && !holdsWholeRecord(bytes, start)) break;
      return err({ kind: 'damaged', line: seq, why: 'its checksum is wrong' });
    }
    if (format === null) return err({ kind: 'damaged', line: seq, why: 'it names no format' });
    if (line.seq !== seq) return err({ kind: 'damaged', line: seq, why: `it is numbered ${line.seq}` });
    records.push(line);
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
    const record = readLine(bytes, before + 1, end);
    if (record !== null) return record;
    if (end + 1 < bytes.length) return null;
    end = before;
  }
  return piece === 'tail' ? 'cut' : null;
}

const FORMAT = 1;
const LINE_END = 0x0a;
const CLOSING_BRACE = Buffer.from('}');
/** `,"crc":"1a2b3c4d"}` */
const CRC_BEFORE = ',"crc":"';
const CRC_LENGTH = CRC_BEFORE.length + 8 + 2;

/** As the line has it: the moment is written for people. */
interface Line {
  readonly seq: number;
  readonly at: string;
  readonly input: Input;
  readonly decisions: readonly Decision[];
}

/** Null where the text before `end` is not what was written. */
function readLine(bytes: Buffer, start: number, end: number): JournalRecord | null {
  const crcStart = end - CRC_LENGTH;
  if (crcStart <= start) return null;
  const crc = crcOfBody(crc32(bytes.subarray(start, crcStart)));
  if (bytes.toString('latin1', crcStart, end) !== seal(crc)) return null;
  const line = parse(bytes.toString('utf8', start, end));
  if (line === null) return null;
  const at = Date.parse(line.at);
  return Number.isNaN(at) ? null : { seq: line.seq, at, input: line.input, decisions: line.decisions };
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
