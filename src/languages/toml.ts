// Reads TOML with positions, for workflows and configuration. Empty, huge or binary texts are reported before parsing.

import type { Place } from '../base/source.ts';
import type { Report } from './report.ts';
import { readString } from './toml-string.ts';
import type { TomlEntry, TomlList, TomlTable, TomlValue } from './toml-tree.ts';

/** Limit on the size of a file. */
const TOML_LENGTH_MAX = 10_000_000;

/** Null if an error is reported. */
export function readToml(report: Report): TomlTable | null {
  const { text } = report.source;
  if (text.length > TOML_LENGTH_MAX) {
    const size = `${(text.length / 1_000_000).toFixed(1)} MB`;
    report.error(
      'file-too-large',
      START,
      `the file has ${size}; at most 10 MB are read`,
      'Keep data in files of their own, and read them in a step.',
    );
    return null;
  }
  const nul = text.indexOf('\0');
  if (nul !== -1) {
    const hint = 'Is this a text file? TOML is UTF-8 text without NUL bytes.';
    report.error('nul-byte', { from: nul, to: nul + 1 }, 'the file contains a NUL byte', hint);
    return null;
  }
  return parseToml(report);
}

const START = { from: 0, to: 1 };

// Parses TOML 1.1. Our own parser, because authors want every mistake at once: it continues after a broken statement,
// accepts strings of any length, and knows the source of every character of a string.
//
//   - A broken statement is reported, and the text up to the next line that looks like a statement is skipped. The tree
//   counts as damaged: conclusions from it would be noise.
//   - A duplicate key is reported, the first definition wins, and the tree is valid.

/** Null if the text is damaged; that is reported. */
function parseToml(report: Report): TomlTable | null {
  const { text } = report.source;
  const root = makeTable({ from: 0, to: 1 });
  const parser: Parser = {
    text,
    report,
    at: 0,
    root,
    current: root,
    origins: new Map([[root, 'header']]),
    headerLists: new Set(),
    open: [],
    damaged: false,
  };
  for (;;) {
    skipBlankLines(parser);
    if (parser.at >= text.length) return parser.damaged ? null : root;
    const start = parser.at;
    const fine = text[parser.at] === '[' ? readHeader(parser) : readAssignment(parser, parser.current);
    if (!fine || !readLineEnd(parser)) recover(parser, start);
  }
}

interface Parser {
  readonly text: string;
  readonly report: Report;
  at: number;
  readonly root: GrowingTable;
  /** Target of assignments: the table of the last header. */
  current: GrowingTable;
  /** The origin of a table decides who may add to it. */
  readonly origins: Map<TomlTable, 'implied' | 'header' | 'dotted' | 'inline'>;
  /** Lists made by `[[…]]`, which a later `[[…]]` may extend. */
  readonly headerLists: Set<TomlList>;
  /** Open brackets and braces around the current value. */
  readonly open: ('[' | '{')[];
  damaged: boolean;
}

interface GrowingTable extends TomlTable {
  place: Place;
  readonly entries: Map<string, TomlEntry>;
}

interface KeyPart {
  readonly name: string;
  readonly place: Place;
}

const DEPTH_MAX = 100;

function makeTable(place: Place): GrowingTable {
  return { kind: 'table', place, entries: new Map() };
}

// ── Statements ──────────────────────────────────────────────────────────────────────────────────────────────────────

function readHeader(p: Parser): boolean {
  const start = p.at;
  const isList = p.text.startsWith('[[', p.at);
  p.at += isList ? 2 : 1;
  skipSpace(p);
  const path = readKey(p);
  if (path === null) return false;
  skipSpace(p);
  const close = isList ? ']]' : ']';
  if (!p.text.startsWith(close, p.at)) {
    return broken(
      p,
      here(p),
      `expected ${close} at the end of this header`,
      `Write ${isList ? '[[name]]' : '[name]'}, alone on its line.`,
    );
  }
  p.at += close.length;
  openTable(p, path, isList, { from: start, to: p.at });
  return true;
}

/** Makes the table of a header the current one. */
function openTable(p: Parser, path: readonly KeyPart[], isList: boolean, place: Place): void {
  const last = path.at(-1);
  if (last === undefined) return;
  let table = p.root;
  for (const part of path.slice(0, -1)) {
    const inner = stepInto(p, table, part);
    if (inner === null) {
      // The following assignments belong to no table; they are read only for their own mistakes.
      p.current = makeTable(place);
      return;
    }
    table = inner;
  }
  const known = table.entries.get(last.name);
  const made = makeTable(place);
  if (known === undefined) {
    p.origins.set(made, 'header');
    define(table, last, isList ? headerList(p, made, place) : made);
    p.current = made;
  } else if (isList && known.value.kind === 'list' && p.headerLists.has(known.value)) {
    p.origins.set(made, 'header');
    (known.value.items as TomlValue[]).push(made);
    p.current = made;
  } else if (!isList && isGrowing(known.value) && p.origins.get(known.value) === 'implied') {
    known.value.place = place;
    p.origins.set(known.value, 'header');
    p.current = known.value;
  } else {
    duplicate(p, last, known);
    const mergeable = !isList && isGrowing(known.value) && p.origins.get(known.value) !== 'inline';
    p.current = mergeable ? known.value : made;
  }
}

/** The table under an inner part of a header; null if something else is there. */
function stepInto(p: Parser, table: GrowingTable, part: KeyPart): GrowingTable | null {
  const known = table.entries.get(part.name);
  if (known === undefined) {
    const made = makeTable(part.place);
    p.origins.set(made, 'implied');
    define(table, part, made);
    return made;
  }
  const value = known.value.kind === 'list' && p.headerLists.has(known.value) ? known.value.items.at(-1) : known.value;
  if (value !== undefined && isGrowing(value) && p.origins.get(value) !== 'inline') return value;
  duplicate(p, part, known);
  return null;
}

function headerList(p: Parser, first: GrowingTable, place: Place): TomlList {
  const list: TomlList = { kind: 'list', place, items: [first] };
  p.headerLists.add(list);
  return list;
}

function readAssignment(p: Parser, into: GrowingTable): boolean {
  const path = readKey(p);
  if (path === null) return false;
  skipSpace(p);
  if (p.text[p.at] !== '=') {
    return broken(
      p,
      here(p),
      `expected = after ${JSON.stringify(path.map(({ name }) => name).join('.'))}`,
      'An assignment is written key = value, on one line.',
    );
  }
  p.at += 1;
  skipSpace(p);
  const value = readValue(p);
  if (value === null) return false;
  assign(p, into, path, value);
  return true;
}

function assign(p: Parser, into: GrowingTable, path: readonly KeyPart[], value: TomlValue): void {
  let table = into;
  for (const [index, part] of path.entries()) {
    const known = table.entries.get(part.name);
    if (index === path.length - 1) {
      if (known === undefined) define(table, part, value);
      else duplicate(p, part, known);
    } else if (known === undefined) {
      const made = makeTable(part.place);
      p.origins.set(made, 'dotted');
      define(table, part, made);
      table = made;
    } else {
      const origin = p.origins.get(known.value as TomlTable);
      if (!isGrowing(known.value) || origin === 'header' || origin === 'inline') return duplicate(p, part, known);
      p.origins.set(known.value, 'dotted');
      table = known.value;
    }
  }
}

function define(table: GrowingTable, part: KeyPart, value: TomlValue): void {
  table.entries.set(part.name, { key: part.name, keyPlace: part.place, value });
}

function duplicate(p: Parser, part: KeyPart, first: TomlEntry): void {
  p.report.error('duplicate-key', part.place, `"${part.name}" is defined twice`, 'Keep one of the two.', [
    { message: 'first defined here', place: first.keyPlace },
  ]);
}

function isGrowing(value: TomlValue): value is GrowingTable {
  return value.kind === 'table';
}

// ── Keys and values ─────────────────────────────────────────────────────────────────────────────────────────────────

function readKey(p: Parser): readonly KeyPart[] | null {
  const parts: KeyPart[] = [];
  for (;;) {
    const part = readKeyPart(p);
    if (part === null) return null;
    parts.push(part);
    skipSpace(p);
    if (p.text[p.at] !== '.') return parts;
    p.at += 1;
    skipSpace(p);
  }
}

function readKeyPart(p: Parser): KeyPart | null {
  const start = p.at;
  const first = p.text[start];
  if (first === '"' || first === "'") {
    const read = readString(p.text, start, false);
    if (!read.ok) {
      broken(p, read.place, read.message, read.hint);
      return null;
    }
    p.at = read.end;
    return { name: read.value, place: { from: start, to: p.at } };
  }
  const name = matchHere(p, /[A-Za-z0-9_-]+/y);
  if (name === '') {
    broken(
      p,
      here(p),
      `expected a key, found ${found(p)}`,
      'A key is made of letters, digits, - and _, or stands in quotes.',
    );
    return null;
  }
  return { name, place: { from: start, to: p.at } };
}

function readValue(p: Parser): TomlValue | null {
  const start = p.at;
  const first = p.text[start];
  if (first === '[' || first === '{') {
    if (p.open.length >= DEPTH_MAX) {
      broken(p, here(p), 'brackets are nested too deeply', `At most ${String(DEPTH_MAX)} levels are read.`);
      return null;
    }
    p.open.push(first);
    p.at += 1;
    const value = first === '[' ? readList(p, start) : readInlineTable(p, start);
    // After a mistake they stay open, and tell `recover` its position.
    if (value !== null) p.open.pop();
    return value;
  }
  if (first === '"' || first === "'") {
    const read = readString(p.text, start, true);
    if (!read.ok) {
      broken(p, read.place, read.message, read.hint);
      // Without its end, the start of the next statement is unknown.
      if (p.text.startsWith((first ?? '').repeat(3), start)) p.at = p.text.length;
      return null;
    }
    for (const { place, message, hint } of read.literal) p.report.warning('odd-escape', place, message, hint);
    p.at = read.end;
    return { kind: 'string', place: { from: start, to: p.at }, value: read.value, seams: read.seams };
  }
  return readBareValue(p);
}

function readBareValue(p: Parser): TomlValue | null {
  const start = p.at;
  const word = matchHere(p, /\d{4}-\d\d-\d\d \d\d:[\d:.Zz+-]*|[^\s,\]}[{#="']+/y);
  const scalar = readScalar(word);
  const place = { from: start, to: p.at };
  if (scalar !== null) return { ...scalar, place };
  if (word === '') {
    broken(p, here(p), `expected a value, found ${found(p)}`, 'Text goes in quotes, lists in [ ], tables in { }.');
  } else {
    const cure = /^[0-9+-]/.test(word)
      ? `A number or a date is written otherwise; text goes in quotes`
      : 'Text goes in quotes';
    broken(p, place, `${JSON.stringify(word)} is not a TOML value`, `${cure}: "${word.replaceAll(/[“”‘’]/g, '')}".`);
  }
  return null;
}

function readList(p: Parser, start: number): TomlValue | null {
  const items: TomlValue[] = [];
  for (;;) {
    skipBlankLines(p);
    if (p.text[p.at] === ']') break;
    if (p.at >= p.text.length) return unclosed(p, start, 'list', ']');
    const item = readValue(p);
    if (item === null) return null;
    items.push(item);
    skipBlankLines(p);
    if (p.text[p.at] === ',') p.at += 1;
    else if (p.at >= p.text.length) return unclosed(p, start, 'list', ']');
    else if (p.text[p.at] !== ']') {
      broken(p, here(p), `expected , or ] in this list, found ${found(p)}`, 'Items of a list are separated by commas.');
      return null;
    }
  }
  p.at += 1;
  return { kind: 'list', place: { from: start, to: p.at }, items };
}

function readInlineTable(p: Parser, start: number): TomlValue | null {
  const table = makeTable({ from: start, to: start + 1 });
  for (;;) {
    skipBlankLines(p);
    if (p.text[p.at] === '}') break;
    if (p.at >= p.text.length) return unclosed(p, start, 'table', '}');
    if (!readAssignment(p, table)) return null;
    skipBlankLines(p);
    if (p.text[p.at] === ',') p.at += 1;
    else if (p.at >= p.text.length) return unclosed(p, start, 'table', '}');
    else if (p.text[p.at] !== '}') {
      broken(
        p,
        here(p),
        `expected , or } in this table, found ${found(p)}`,
        'Its assignments are separated by commas.',
      );
      return null;
    }
  }
  p.at += 1;
  table.place = { from: start, to: p.at };
  p.origins.set(table, 'inline');
  for (const { value } of table.entries.values()) sealed(p, value);
  return table;
}

/** Tables made by dotted keys inside braces are closed with the braces. */
function sealed(p: Parser, value: TomlValue): void {
  if (value.kind !== 'table' || p.origins.get(value) === 'inline') return;
  p.origins.set(value, 'inline');
  for (const entry of value.entries.values()) sealed(p, entry.value);
}

function unclosed(p: Parser, start: number, what: string, close: string): null {
  broken(p, { from: start, to: start + 1 }, `this ${what} is never closed`, `Close it with ${close}.`);
  return null;
}

// ── Space, line ends, and what to do after a mistake ────────────────────────────────────────────────────────────────

function skipSpace(p: Parser): void {
  matchHere(p, /[ \t]*/y);
}

/** Blanks, line ends and comments. */
function skipBlankLines(p: Parser): void {
  for (;;) {
    matchHere(p, /(?:[ \t\n]|\r\n)*/y);
    if (p.text[p.at] !== '#') return;
    skipComment(p);
  }
}

function skipComment(p: Parser): void {
  const start = p.at;
  const comment = matchHere(p, /[^\n]*/y);
  const control = /[^\t -~\u0080-\uffff]/.exec(comment.endsWith('\r') ? comment.slice(0, -1) : comment);
  if (control === null) return;
  const at = start + control.index;
  broken(p, { from: at, to: at + 1 }, 'a control character stands in this comment', 'Delete it.');
}

/** What may follow a statement on its line: blanks and a comment. */
function readLineEnd(p: Parser): boolean {
  skipSpace(p);
  if (p.text[p.at] === '#') skipComment(p);
  if (p.at >= p.text.length || p.text[p.at] === '\n' || p.text.startsWith('\r\n', p.at)) return true;
  return broken(
    p,
    here(p),
    `expected the end of the line, found ${found(p)}`,
    'Each assignment and each header has a line of its own.',
  );
}

const KEY = `(?:[A-Za-z0-9_-]+|"[^"\\n]*"|'[^'\\n]*')`;
const PATH = `${KEY}(?:[ \\t]*\\.[ \\t]*${KEY})*`;
const ASSIGNMENT = `${PATH}[ \\t]*=`;
const HEADER = `\\[{1,2}[ \\t]*${PATH}[ \\t]*\\]{1,2}[ \\t]*(?:#[^\\n]*)?\\r?(?:\\n|$)`;
/** How a line must look to count as a statement, depending on what is open: it may be part of the value too. */
const STATEMENT = { nothing: `\\[|${ASSIGNMENT}`, brackets: `${HEADER}|${ASSIGNMENT}`, braces: HEADER } as const;

/**
 * Skips to the next line that looks like a statement. That may be the current line, if a bracket is missing before it.
 */
function recover(p: Parser, start: number): void {
  const open = p.open.includes('{') ? 'braces' : p.open.length > 0 ? 'brackets' : 'nothing';
  p.open.length = 0;
  const statement = new RegExp(`\\n[ \\t]*(?=${STATEMENT[open]})`, 'g');
  const lineEnd = p.text.lastIndexOf('\n', p.at - 1);
  statement.lastIndex = lineEnd > start ? lineEnd : p.at;
  const next = statement.exec(p.text);
  p.at = next === null ? p.text.length : statement.lastIndex;
}

/** Always returns false, for a broken statement. */
function broken(p: Parser, place: Place, message: string, hint: string): false {
  p.damaged = true;
  p.report.error('syntax', place, message, hint);
  return false;
}

/**
 * The current character; at the end of a line or of the text the one before, so that there is something to underline.
 */
function here(p: Parser): Place {
  const atEnd = p.at >= p.text.length || p.text[p.at] === '\n' || p.text[p.at] === '\r';
  return atEnd && p.at > 0 && p.text[p.at - 1] !== '\n' ? { from: p.at - 1, to: p.at } : { from: p.at, to: p.at + 1 };
}

function found(p: Parser): string {
  const character = String.fromCodePoint(p.text.codePointAt(p.at) ?? 10);
  if (p.at >= p.text.length) return 'the end of the file';
  if (character === '\n' || character === '\r') return 'the end of the line';
  return character < ' ' ? `U+${character.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}` : character;
}

function matchHere(p: Parser, pattern: RegExp): string {
  pattern.lastIndex = p.at;
  const text = pattern.exec(p.text)?.[0] ?? '';
  p.at += text.length;
  return text;
}

type Scalar =
  | { readonly kind: 'integer' | 'float'; readonly value: number }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'moment'; readonly value: string };

const DECIMAL = /^[+-]?(0|[1-9](_?\d)*)$/;
const RADIX = /^0(x[0-9A-Fa-f](_?[0-9A-Fa-f])*|o[0-7](_?[0-7])*|b[01](_?[01])*)$/;
const FLOAT = /^[+-]?(0|[1-9](_?\d)*)(\.\d(_?\d)*)?([eE][+-]?\d(_?\d)*)?$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)/;
const MOMENT = /^(\d{4}-\d\d-\d\d)?([Tt ]?(\d\d):(\d\d)(:(\d\d)(\.\d+)?)?([Zz]|[+-](\d\d):(\d\d))?)?$/;

function readScalar(word: string): Scalar | null {
  if (word === 'true' || word === 'false') return { kind: 'boolean', value: word === 'true' };
  if (DECIMAL.test(word) || RADIX.test(word)) {
    return { kind: 'integer', value: Number(word.replaceAll('_', '')) };
  }
  if (FLOAT.test(word)) return { kind: 'float', value: Number(word.replaceAll('_', '')) };
  if (/^[+-]?(inf|nan)$/.test(word)) {
    const size = word.endsWith('nan') ? Number.NaN : Number.POSITIVE_INFINITY;
    return { kind: 'float', value: word.startsWith('-') ? -size : size };
  }
  return isMoment(word) ? { kind: 'moment', value: word } : null;
}

function isMoment(word: string): boolean {
  const parts = MOMENT.exec(word);
  if (parts === null || word === '') return false;
  const [, date, time, hour, minute, , second, , zone, zoneHour, zoneMinute] = parts;
  if (date === undefined && (time === undefined || zone !== undefined || /^[Tt ]/.test(time))) return false;
  if (date !== undefined && time !== undefined && !/^[Tt ]/.test(time)) return false;
  const within = (digits: string | undefined, max: number): boolean => digits === undefined || Number(digits) <= max;
  if (
    !within(hour, 23) ||
    !within(minute, 59) ||
    !within(second, 60) ||
    !within(zoneHour, 23) ||
    !within(zoneMinute, 59)
  ) {
    return false;
  }
  return date === undefined || isDate(date);
}

function isDate(text: string): boolean {
  const [, year = '', month = '', day = ''] = DATE.exec(text) ?? [];
  const leap = Number(year) % 4 === 0 && (Number(year) % 100 !== 0 || Number(year) % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1];
  return days !== undefined && Number(day) >= 1 && Number(day) <= days;
}
