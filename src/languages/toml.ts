// Reads TOML 1.1 with positions, for workflows and configuration. Our own parser, because authors want every mistake at
// once: it continues after a broken statement, accepts strings of any length, and knows the source of every character
// of a string.
//
//   - A broken statement is reported, and the text up to the next line that looks like a statement is skipped. The tree
//     counts as damaged: conclusions from it would be noise.
//   - A duplicate key is reported, the first definition wins, and the tree is valid.

import type { Place } from '../base/source.ts';
import { type Report, START } from './report.ts';
import { readString } from './toml-string.ts';
import type { Scalar, TomlEntry, TomlList, TomlTable, TomlValue } from './toml-tree.ts';

const TOML_LENGTH_MAX = 10_000_000;
const DEPTH_MAX = 100;

/** Null if the text is huge, binary or damaged; that is reported. */
export function readToml(report: Report): TomlTable | null {
  const tree = readPartialToml(report);
  return tree?.isDamaged === false ? tree.root : null;
}

/** For editors: what can be read of a text that somebody is still writing. Null if the text is huge or binary. */
export function readPartialToml(report: Report): { readonly root: TomlTable; readonly isDamaged: boolean } | null {
  const { text } = report.source;
  if (text.length > TOML_LENGTH_MAX) {
    const message = `the file has ${(text.length / 1_000_000).toFixed(1)} MB; at most 10 MB are read`;
    return report.error('file-too-large', START, message, 'Keep data in files of their own, and read them in a step.');
  }
  const nul = text.indexOf('\0');
  if (nul !== -1) {
    const hint = 'Is this a text file? TOML is UTF-8 text without NUL bytes.';
    return report.error('nul-byte', { from: nul, to: nul + 1 }, 'the file contains a NUL byte', hint);
  }
  return new Parser(report).read();
}

interface GrowingTable extends TomlTable {
  place: Place;
  readonly entries: Map<string, TomlEntry>;
  /** Decides who may add to it. */
  origin: 'implied' | 'header' | 'dotted' | 'inline';
}

function makeTable(place: Place, origin: GrowingTable['origin']): GrowingTable {
  return { kind: 'table', place, entries: new Map(), origin };
}

function isGrowing(value: TomlValue): value is GrowingTable {
  return value.kind === 'table';
}

interface KeyPart {
  readonly name: string;
  readonly place: Place;
}

/** `a.b.c`: the tables that contain the value, and its own name. */
interface Key {
  readonly tables: readonly KeyPart[];
  readonly last: KeyPart;
}

function define<V extends TomlValue>(table: GrowingTable, { name, place }: KeyPart, value: V): V {
  table.entries.set(name, { key: name, keyPlace: place, value });
  return value;
}

/** Methods that read return null after a mistake, which is reported. */
class Parser {
  readonly #report: Report;
  readonly #text: string;
  #at = 0;
  readonly #root = makeTable(START, 'header');
  /** Target of assignments: the table of the last header. */
  #current = this.#root;
  /** Lists made by `[[…]]`, which a later `[[…]]` may extend. */
  readonly #headerLists = new Map<TomlValue, GrowingTable[]>();
  /** Open brackets and braces around the current value. */
  readonly #open: ('[' | '{')[] = [];
  #isDamaged = false;

  constructor(report: Report) {
    this.#report = report;
    this.#text = report.source.text;
  }

  read(): { readonly root: TomlTable; readonly isDamaged: boolean } {
    for (;;) {
      this.#skipBlankLines();
      if (this.#isAtEnd()) return { root: this.#root, isDamaged: this.#isDamaged };
      const start = this.#at;
      const statement = this.#next() === '[' ? this.#readHeader() : this.#readAssignment(this.#current);
      if (statement === null || !this.#readLineEnd()) this.#recover(start);
    }
  }

  // ── Statements ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Makes the table of a header the current one. */
  #readHeader(): TomlTable | null {
    const start = this.#at;
    const isList = this.#text.startsWith('[[', this.#at);
    const close = isList ? ']]' : ']';
    this.#at += close.length;
    this.#skipSpace();
    const key = this.#readKey();
    if (key === null) return null;
    this.#skipSpace();
    if (!this.#text.startsWith(close, this.#at)) {
      const hint = `Write ${isList ? '[[name]]' : '[name]'}, alone on its line.`;
      return this.#broken(`expected ${close} at the end of this header`, hint);
    }
    this.#at += close.length;
    this.#current = this.#openTable(key, isList, { from: start, to: this.#at });
    return this.#current;
  }

  /** If something else has its name, a table that belongs to none: assignments are read for their own mistakes. */
  #openTable({ tables, last }: Key, isList: boolean, place: Place): GrowingTable {
    const made = makeTable(place, 'header');
    const parent = this.#tableAt(this.#root, tables, 'implied');
    if (parent === null) return made;
    const known = parent.entries.get(last.name);
    if (known === undefined) {
      if (!isList) return define(parent, last, made);
      const items = [made];
      this.#headerLists.set(define<TomlList>(parent, last, { kind: 'list', place, items }), items);
      return made;
    }
    const { value } = known;
    const items = this.#headerLists.get(value);
    if (isList && items !== undefined) {
      items.push(made);
      return made;
    }
    if (!isList && isGrowing(value) && value.origin === 'implied') {
      value.place = place;
      value.origin = 'header';
      return value;
    }
    this.#duplicate(last, known);
    return !isList && isGrowing(value) && value.origin !== 'inline' ? value : made;
  }

  #readAssignment(into: GrowingTable): TomlValue | null {
    const key = this.#readKey();
    if (key === null) return null;
    this.#skipSpace();
    if (this.#next() !== '=') {
      const path = [...key.tables, key.last].map(({ name }) => name).join('.');
      const hint = 'An assignment is written key = value, on one line.';
      return this.#broken(`expected = after ${JSON.stringify(path)}`, hint);
    }
    this.#at += 1;
    this.#skipSpace();
    const value = this.#readValue();
    const table = value === null ? null : this.#tableAt(into, key.tables, 'dotted');
    if (value === null || table === null) return value;
    const known = table.entries.get(key.last.name);
    if (known === undefined) define(table, key.last, value);
    else this.#duplicate(key.last, known);
    return value;
  }

  /** The table with these names, made if absent; null if something else has one of them. */
  #tableAt(from: GrowingTable, names: readonly KeyPart[], origin: 'implied' | 'dotted'): GrowingTable | null {
    let table = from;
    for (const part of names) {
      const known = table.entries.get(part.name);
      if (known === undefined) {
        table = define(table, part, makeTable(part.place, origin));
        continue;
      }
      const value = this.#headerLists.get(known.value)?.at(-1) ?? known.value;
      const isDotted = origin === 'dotted';
      if (!isGrowing(value) || value.origin === 'inline' || (isDotted && value.origin === 'header')) {
        this.#duplicate(part, known);
        return null;
      }
      if (isDotted) value.origin = 'dotted';
      table = value;
    }
    return table;
  }

  #duplicate({ name, place }: KeyPart, first: TomlEntry): void {
    const related = [{ message: 'first defined here', place: first.keyPlace }];
    this.#report.error('duplicate-key', place, `"${name}" is defined twice`, 'Keep one of the two.', related);
  }

  // ── Keys and values ───────────────────────────────────────────────────────────────────────────────────────────────

  #readKey(): Key | null {
    const tables: KeyPart[] = [];
    for (;;) {
      const part = this.#readKeyPart();
      if (part === null) return null;
      this.#skipSpace();
      if (this.#next() !== '.') return { tables, last: part };
      tables.push(part);
      this.#at += 1;
      this.#skipSpace();
    }
  }

  #readKeyPart(): KeyPart | null {
    const start = this.#at;
    const first = this.#next();
    if (first === '"' || first === "'") {
      const read = readString(this.#text, start, false);
      if (!read.ok) return this.#broken(read.error.message, read.error.hint, read.error.place);
      this.#at = read.value.end;
      return { name: read.value.text, place: this.#since(start) };
    }
    const name = this.#match(/[A-Za-z0-9_-]+/y);
    if (name !== '') return { name, place: this.#since(start) };
    const hint = 'A key is made of letters, digits, - and _, or is in quotes.';
    return this.#broken(`expected a key, found ${this.#found()}`, hint);
  }

  #readValue(): TomlValue | null {
    const first = this.#next();
    if (first === '"' || first === "'") return this.#readStringValue(first);
    if (first !== '[' && first !== '{') return this.#readBareValue();
    if (this.#open.length >= DEPTH_MAX) {
      return this.#broken('brackets are nested too deeply', `At most ${String(DEPTH_MAX)} levels are read.`);
    }
    this.#open.push(first);
    const value = first === '[' ? this.#readList() : this.#readInlineTable();
    // After a mistake they stay open, and tell `recover` its position.
    if (value !== null) this.#open.pop();
    return value;
  }

  #readStringValue(mark: string): TomlValue | null {
    const start = this.#at;
    const read = readString(this.#text, start, true);
    if (!read.ok) {
      // Without its end, the start of the next statement is unknown.
      if (this.#text.startsWith(mark.repeat(3), start)) this.#at = this.#text.length;
      return this.#broken(read.error.message, read.error.hint, read.error.place);
    }
    const { text, seams, end, literal } = read.value;
    for (const { place, message, hint } of literal) this.#report.warning('odd-escape', place, message, hint);
    this.#at = end;
    return { kind: 'string', place: this.#since(start), value: text, seams };
  }

  #readBareValue(): TomlValue | null {
    const start = this.#at;
    const word = this.#match(/\d{4}-\d\d-\d\d \d\d:[\d:.Zz+-]*|[^\s,\]}[{#="']+/y);
    const scalar = readScalar(word);
    if (scalar !== null) return { ...scalar, place: this.#since(start) };
    if (word === '') {
      const hint = 'Text goes in quotes, lists in [ ], tables in { }.';
      return this.#broken(`expected a value, found ${this.#found()}`, hint);
    }
    const otherwise = /^[0-9+-]/.test(word) ? 'A number or a date is written otherwise; text' : 'Text';
    const hint = `${otherwise} goes in quotes: "${word.replaceAll(/[“”‘’]/g, '')}".`;
    return this.#broken(`${JSON.stringify(word)} is not a TOML value`, hint, this.#since(start));
  }

  #readList(): TomlList | null {
    const items: TomlValue[] = [];
    const place = this.#readItems('list', ']', 'Items of a list are separated by commas.', () => {
      const item = this.#readValue();
      if (item !== null) items.push(item);
      return item;
    });
    return place === null ? null : { kind: 'list', place, items };
  }

  #readInlineTable(): TomlTable | null {
    const table = makeTable(START, 'inline');
    const hint = 'Its assignments are separated by commas.';
    const place = this.#readItems('table', '}', hint, () => this.#readAssignment(table));
    if (place === null) return null;
    table.place = place;
    for (const { value } of table.entries.values()) seal(value);
    return table;
  }

  /** From one bracket to the other. */
  #readItems(what: string, close: ']' | '}', hint: string, readItem: () => TomlValue | null): Place | null {
    const start = this.#at;
    this.#at += 1;
    for (;;) {
      this.#skipBlankLines();
      if (this.#isAtEnd()) {
        return this.#broken(`this ${what} is never closed`, `Close it with ${close}.`, { from: start, to: start + 1 });
      }
      if (this.#next() === close) break;
      if (readItem() === null) return null;
      this.#skipBlankLines();
      if (this.#next() === ',') this.#at += 1;
      else if (this.#next() !== close && !this.#isAtEnd()) {
        return this.#broken(`expected , or ${close} in this ${what}, found ${this.#found()}`, hint);
      }
    }
    this.#at += 1;
    return this.#since(start);
  }

  // ── Space, line ends, and what to do after a mistake ──────────────────────────────────────────────────────────────

  #skipSpace(): void {
    this.#match(/[ \t]*/y);
  }

  /** Blanks, line ends and comments. */
  #skipBlankLines(): void {
    for (;;) {
      this.#match(/(?:[ \t\n]|\r\n)*/y);
      if (this.#next() !== '#') return;
      this.#skipComment();
    }
  }

  #skipComment(): void {
    const start = this.#at;
    const comment = this.#match(/[^\n]*/y);
    const control = /[^\t -~\u0080-\uffff]/.exec(comment.endsWith('\r') ? comment.slice(0, -1) : comment);
    if (control === null) return;
    const at = start + control.index;
    this.#broken('this comment contains a control character', 'Delete it.', { from: at, to: at + 1 });
  }

  /** What may follow a statement on its line: blanks and a comment. */
  #readLineEnd(): boolean {
    this.#skipSpace();
    if (this.#next() === '#') this.#skipComment();
    if (this.#isAtEnd() || this.#next() === '\n' || this.#text.startsWith('\r\n', this.#at)) return true;
    const hint = 'Each assignment and each header has a line of its own.';
    this.#broken(`expected the end of the line, found ${this.#found()}`, hint);
    return false;
  }

  /** Skips to the next line that looks like a statement; the current one, if a bracket is missing before it. */
  #recover(start: number): void {
    const open = this.#open.includes('{') ? 'braces' : this.#open.length > 0 ? 'brackets' : 'nothing';
    this.#open.length = 0;
    const statement = new RegExp(`\\n[ \\t]*(?=${STATEMENT[open]})`, 'g');
    const lineEnd = this.#text.lastIndexOf('\n', this.#at - 1);
    statement.lastIndex = lineEnd > start ? lineEnd : this.#at;
    this.#at = statement.test(this.#text) ? statement.lastIndex : this.#text.length;
  }

  #broken(message: string, hint: string, place: Place = this.#here()): null {
    this.#isDamaged = true;
    return this.#report.error('syntax', place, message, hint);
  }

  /** The current character; at the end of a line or of the text the one before, so that a character is underlined. */
  #here(): Place {
    const atEnd = this.#isAtEnd() || this.#next() === '\n' || this.#next() === '\r';
    const from = atEnd && this.#at > 0 && this.#text[this.#at - 1] !== '\n' ? this.#at - 1 : this.#at;
    return { from, to: from + 1 };
  }

  #found(): string {
    const character = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 10);
    if (this.#isAtEnd()) return 'the end of the file';
    if (character === '\n' || character === '\r') return 'the end of the line';
    return character < ' ' ? `U+${character.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}` : character;
  }

  #isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  #next(): string | undefined {
    return this.#text[this.#at];
  }

  #since(start: number): Place {
    return { from: start, to: this.#at };
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += text.length;
    return text;
  }
}

/** Tables made by dotted keys inside braces are closed with the braces. */
function seal(value: TomlValue): void {
  if (!isGrowing(value) || value.origin === 'inline') return;
  value.origin = 'inline';
  for (const entry of value.entries.values()) seal(entry.value);
}

const KEY = `(?:[A-Za-z0-9_-]+|"[^"\\n]*"|'[^'\\n]*')`;
const PATH = `${KEY}(?:[ \\t]*\\.[ \\t]*${KEY})*`;
const ASSIGNMENT = `${PATH}[ \\t]*=`;
const HEADER = `\\[{1,2}[ \\t]*${PATH}[ \\t]*\\]{1,2}[ \\t]*(?:#[^\\n]*)?\\r?(?:\\n|$)`;
/** How a line must look to count as a statement, depending on what is open: it may be part of the value too. */
const STATEMENT = { nothing: `\\[|${ASSIGNMENT}`, brackets: `${HEADER}|${ASSIGNMENT}`, braces: HEADER } as const;

// ── Scalars ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const INTEGER = /^(?:[+-]?(0|[1-9](_?\d)*)|0x[0-9A-Fa-f](_?[0-9A-Fa-f])*|0o[0-7](_?[0-7])*|0b[01](_?[01])*)$/;
const FLOAT = /^[+-]?(0|[1-9](_?\d)*)(\.\d(_?\d)*)?([eE][+-]?\d(_?\d)*)?$/;
const CLOCK = String.raw`(?:[01]\d|2[0-3]):[0-5]\d`;
const TIME = String.raw`${CLOCK}(?::(?:[0-5]\d|60)(?:\.\d+)?)?`;
const MOMENT = new RegExp(String.raw`^(?:(\d{4})-(\d\d)-(\d\d)(?:[Tt ]${TIME}(?:[Zz]|[+-]${CLOCK})?)?|${TIME})$`);

function readScalar(word: string): Scalar | null {
  if (word === 'true' || word === 'false') return { kind: 'boolean', value: word === 'true' };
  if (INTEGER.test(word)) return { kind: 'integer', value: Number(word.replaceAll('_', '')) };
  if (FLOAT.test(word)) return { kind: 'float', value: Number(word.replaceAll('_', '')) };
  if (/^[+-]?(inf|nan)$/.test(word)) {
    const size = word.endsWith('nan') ? Number.NaN : Number.POSITIVE_INFINITY;
    return { kind: 'float', value: word.startsWith('-') ? -size : size };
  }
  return isMoment(word) ? { kind: 'moment', value: word } : null;
}

function isMoment(word: string): boolean {
  const parts = MOMENT.exec(word);
  if (parts?.[1] === undefined) return parts !== null;
  const [, year = 0, month = 0, day = 0] = parts.map(Number);
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
  return day >= 1 && day <= days;
}
