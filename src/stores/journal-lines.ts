// Records as lines of JSON: `{"seq":2,"at":"2026-…Z","durable":1,"input":…,"decisions":[…],"crc":"1a2b3c4d"}`.
//
//   journal/1  The CRC is that of the line's text without its `crc` member, and is the last member of the line.
//   journal/2  The first line begins with `"format":2`, so that another version recognizes the format before it trusts a CRC.
//   journal/3  A line counts once it is whole, with its line end: only then can it have been acknowledged.
//   journal/4  Bytes after the last whole line, and a last line whose CRC is wrong, are a write that was cut off. They are
//              dropped.
//   journal/5  The pages of one write may reach the disk in any order, so a line may have a hole (zero bytes) although later
//              lines are whole. Such a line and those after it are dropped, if none of them was written after it had become
//              durable: `durable` is the last record that the writer knew to be durable.
//   journal/6  Anything else that is wrong is damage. Dropping the records after it would forget finished work, so nothing is
//              read.

import { crc32 } from 'node:zlib';
import { createHash } from 'node:crypto';

import { assert, err, ok, type Result } from '../base/errors.ts';
import { isJsonMap, parseJson } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import type { StoredRun } from '../engine/ports.ts';
import type { Program, Source } from '../ir/program.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';

export interface JournalText {
  readonly records: readonly JournalRecord[];
  /** Length of the whole lines. The bytes after them are a write that was cut off. */
  readonly wholeBytes: number;
}

export type JournalDamage =
  /** Line and record count from 1 alike. */
  | { readonly kind: 'damaged'; readonly line: number; readonly why: string }
  | { readonly kind: 'other-format'; readonly format: number; readonly isLater: boolean };

/** `durable`: the last record that is known to be durable. */
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
    if (format === null) return err({ kind: 'damaged', line: seq, why: 'it does not name a format' });
    if (line.seq !== seq) return err({ kind: 'damaged', line: seq, why: `it is numbered ${line.seq}` });
    records.push(recordOf(line));
    start = end + 1;
  }
  return ok({ records, wholeBytes: start });
}

/** In a piece that ends where the file does. `cut`: it contains no whole line, so a longer piece is needed. */
export function decodeLastRecord(bytes: Buffer, piece: 'whole-file' | 'tail'): JournalRecord | 'cut' | null {
  let end = bytes.lastIndexOf(LINE_END);
  // One wrong line is a write that was cut off. A second one is damage, and the line before it is not the last record.
  for (let tries = 0; tries < 2; tries++) {
    if (end < 0) break;
    const before = end === 0 ? -1 : bytes.lastIndexOf(LINE_END, end - 1);
    if (before === -1 && piece === 'tail') break;
    const line = readLine(bytes, before + 1, end);
    if (line !== null && isSoundBefore(bytes, before, piece)) return recordOf(line);
    // After a hole this line may not count (journal/5). Only the whole file tells.
    if (line !== null) return piece === 'tail' ? 'cut' : lastOf(bytes);
    if (end + 1 < bytes.length) return null;
    end = before;
  }
  return piece === 'tail' ? 'cut' : null;
}

/** Whether the line that ends at `lineEnd` is whole, as far as the piece contains it. */
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

/** When the run began, from the first bytes of its journal. */
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

/** A line as it is written. `at` is ISO 8601. */
interface Line {
  readonly seq: number;
  readonly at: string;
  readonly durable: number;
  /** Only if ids are long. */
  readonly under?: string;
  readonly input: Input;
  readonly decisions: readonly Decision[];
}

/** Null if the line is not what was written. */
function readLine(bytes: Buffer, start: number, end: number): Line | null {
  const crcStart = end - CRC_LENGTH;
  if (crcStart <= start) return null;
  const crc = crcOfBody(crc32(bytes.subarray(start, crcStart)));
  if (bytes.toString('latin1', crcStart, end) !== seal(crc)) return null;
  const text = bytes.toString('utf8', start, end);
  // Text with a correct CRC that is not JSON was not written by us.
  const line = parseJson(text) as Line | null;
  if (line === null || Number.isNaN(Date.parse(line.at))) return null;
  return line.under === undefined ? line : (JSON.parse(text, lengthener(line.under)) as Line);
}

function recordOf({ seq, at, input, decisions }: Line): JournalRecord {
  return { seq, at: Date.parse(at), input, decisions };
}

/** Whether some later lines are whole, and all of those were written before the wrong one was durable (journal/5). */
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

/** Whether a whole record is at the start, without its line end after it: then the line end is damaged. */
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

/** The closing brace comes after the CRC in the line, and is part of the text that the CRC is computed from. */
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

// Compresses long ids in a record. If a workflow calls itself thousands of times, the id of a step is as long as the path to
// it, and a record names it a dozen times. So one of these ids is written once, as `under`, and every text with a common
// prefix is written as the length of the prefix and the rest: with `under` "a.b.c", "‥4‥x" is "a.b.x". A text that begins
// with the mark itself is written as "‥0‥" and the text.

const LONG = 240;
const BLOCK = 512;
const MARK = '‥';
const COMPRESSED = /^‥(\d+)‥/;

/** The id that the others are compared with; null if none is long. */
function longIdIn(input: Input, decisions: readonly Decision[]): string | null {
  if (input.kind === 'effect-finished') return ifLong(input.effect);
  if ('step' in input) return ifLong(input.step);
  const named = decisions.find((decision) => 'step' in decision);
  return named !== undefined && 'step' in named ? ifLong(named.step) : null;
}

function shortener(under: string): (key: string, value: unknown) => unknown {
  return (_key, value) => {
    if (typeof value !== 'string') return value;
    const shared = value.length < LONG ? 0 : commonPrefixLength(value, under);
    return shared >= LONG || value.startsWith(MARK) ? `${MARK}${shared}${MARK}${value.slice(shared)}` : value;
  };
}

function lengthener(under: string): (key: string, value: unknown) => unknown {
  return (_key, value) => {
    const compressed = typeof value === 'string' ? COMPRESSED.exec(value) : null;
    if (compressed === null || typeof value !== 'string') return value;
    return under.slice(0, Number(compressed[1])) + value.slice(compressed[0].length);
  };
}

function ifLong(id: string): string | null {
  return id.length >= LONG ? id : null;
}

function commonPrefixLength(one: string, other: string): number {
  const max = Math.min(one.length, other.length);
  let length = 0;
  // In blocks first: comparing a block is faster than comparing its characters.
  while (length + BLOCK <= max && one.startsWith(other.slice(length, length + BLOCK), length)) length += BLOCK;
  while (length < max && one.charCodeAt(length) === other.charCodeAt(length)) length += 1;
  return length;
}

/** Hash of the Program's JSON. Parsing and writing it again keeps the order of keys. */
export function hashProgram(program: Program): string {
  return createHash('sha256').update(JSON.stringify(program)).digest('hex');
}

/** The Program as it is stored with its run. The hash shows whether it was changed. */
export function encodeProgram(program: Program, hash: string): string {
  return `${JSON.stringify({ hash, program })}\n`;
}

/** The error says what is wrong, to be written after the path: `… is cut off`. */
export function decodeProgram(text: string): Result<Omit<StoredRun, 'records'>, string> {
  const stored = parseJson(text);
  if (!isJsonMap(stored) || typeof stored['hash'] !== 'string' || !isJsonMap(stored['program'])) {
    return err('is cut off or no longer a program');
  }
  const { hash, program } = stored;
  if (program['format'] !== 2) return err('was written by another version of meow');
  const trusted = program as unknown as Program;
  if (hashProgram(trusted) !== hash) return err('was changed after the run began');
  return ok({ program: trusted, programHash: hash });
}

/** From the first bytes of a stored Program, unchecked; null if they do not contain it. */
export function sourceOf(beginning: string): Source | null {
  const [, source = 'null'] = /"source":(\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})/.exec(beginning) ?? [];
  return parseJson(source) as Source | null;
}

/** Checks that records continue a sequence. Every store does so before an append. */
export function checkSequence(lastSeq: number, records: readonly JournalRecord[]): void {
  let expected = lastSeq + 1;
  for (const { seq, at } of records) {
    assert(seq === expected, `record ${seq} was appended instead of ${expected}`);
    assert(Number.isSafeInteger(at), `record ${seq} has the time ${at}`);
    expected++;
  }
}
