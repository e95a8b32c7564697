// The four kinds of TOML strings, read from their opening quotes. Line ends become `\n`, so that a script written on
// Windows works in the shell. In a multi-line string, a backslash that starts no escape (the `\(` of a regular
// expression) is literal: TOML forbids it, but authors of scripts mean it so. It is a warning.

import type { Place } from '../base/source.ts';
import type { Seam } from './toml-tree.ts';

export type StringRead =
  | {
      readonly ok: true;
      readonly value: string;
      readonly seams: readonly Seam[];
      readonly end: number;
      /** Literal backslashes. */
      readonly literal: readonly StringFault[];
    }
  | ({ readonly ok: false } & StringFault);

export interface StringFault {
  readonly place: Place;
  readonly message: string;
  readonly hint: string;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  b: '\b',
  e: '\u001b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** `at` is the first quote. Keys cannot be multi-line strings: `multiline` says whether they are allowed. */
export function readString(text: string, at: number, multiline: boolean): StringRead {
  const mark = text[at] === '"' ? '"' : "'";
  const long = multiline && text.startsWith(mark.repeat(3), at);
  return long ? readLong(text, at, mark) : readShort(text, at, mark);
}

function readShort(text: string, start: number, mark: '"' | "'"): StringRead {
  const built = new Built(start + 1);
  const special = mark === '"' ? /["\\]|[^\t -~\u0080-\uffff]/g : /'|[^\t -~\u0080-\uffff]/g;
  let at = start + 1;
  for (;;) {
    special.lastIndex = at;
    const found = special.exec(text);
    const character = found?.[0];
    if (found === null || character === '\n' || character === '\r') {
      const end = found?.index ?? text.length;
      return fault(
        start,
        end,
        'this string has no closing quote',
        `Close it with ${mark}, or use ${mark.repeat(3)} for several lines.`,
      );
    }
    built.copy(text, at, found.index);
    at = found.index;
    if (character === mark) return built.done(at + 1);
    if (character !== '\\') return controlCharacter(text, at);
    const escaped = readEscape(text, at);
    if (!escaped.ok) return escaped;
    built.replace(escaped.value, escaped.end);
    at = escaped.end;
  }
}

function readLong(text: string, start: number, mark: '"' | "'"): StringRead {
  let at = start + 3;
  // A line end right after the opening quotes is not part of the value.
  if (text.startsWith('\r\n', at)) at += 2;
  else if (text[at] === '\n') at += 1;
  const built = new Built(at);
  const special = mark === '"' ? /"{3,}|\\|[^\t\n -~\u0080-\uffff]/g : /'{3,}|[^\t\n -~\u0080-\uffff]/g;
  for (;;) {
    special.lastIndex = at;
    const found = special.exec(text);
    if (found === null) {
      const hint = `Close it with ${mark.repeat(3)}.`;
      return fault(start, start + 3, 'this string is never closed', hint);
    }
    built.copy(text, at, found.index);
    at = found.index;
    const matched = found[0];
    if (matched.startsWith(mark)) {
      // Up to two quotes may precede the closing three.
      if (matched.length > 5)
        return fault(
          at,
          at + matched.length,
          'too many quotes in a row',
          `Write ${mark === '"' ? String.raw`\"` : 'some of them in a "…" string'}.`,
        );
      built.copy(text, at, at + matched.length - 3);
      return built.done(at + matched.length);
    }
    if (matched === '\r' && text[at + 1] === '\n') {
      built.replace('\n', at + 2);
      at += 2;
    } else if (matched === '\\') {
      const folded = /\\[ \t]*\r?\n[ \t\r\n]*/y;
      folded.lastIndex = at;
      const fold = folded.exec(text);
      const escaped = fold === null ? readEscape(text, at) : { ok: true as const, value: '', end: folded.lastIndex };
      if (!escaped.ok && !isEscape(text, at)) {
        built.literal.push({ ...escaped, message: `${escaped.message}; it is used literally` });
        built.copy(text, at, at + 1);
        at += 1;
        continue;
      }
      if (!escaped.ok) return escaped;
      built.replace(escaped.value, escaped.end);
      at = escaped.end;
    } else return controlCharacter(text, at);
  }
}

type EscapeRead =
  | { readonly ok: true; readonly value: string; readonly end: number }
  | Extract<StringRead, { ok: false }>;

/** Whether a letter follows for which TOML has an escape, even an invalid one. */
function isEscape(text: string, at: number): boolean {
  const letter = text[at + 1] ?? '';
  return ESCAPES[letter] !== undefined || HEX_DIGITS[letter] !== undefined;
}

function readEscape(text: string, at: number): EscapeRead {
  const letter = text[at + 1] ?? '';
  const plain = ESCAPES[letter];
  if (plain !== undefined) return { ok: true, value: plain, end: at + 2 };
  const width = HEX_DIGITS[letter];
  if (width === undefined) {
    const hint = "A backslash itself is written \\\\; in '…' and '''…''' strings backslashes need no care.";
    return fault(at, at + 2, `\\${letter} is not a TOML escape`, hint);
  }
  const digits = text.slice(at + 2, at + 2 + width);
  const code = /^[0-9A-Fa-f]+$/.test(digits) && digits.length === width ? Number.parseInt(digits, 16) : -1;
  if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    const message = `\\${letter} must be followed by ${String(width)} hexadecimal digits of a character`;
    return fault(at, at + 2 + digits.length, message, 'For example \\u00e9 for é.');
  }
  return { ok: true, value: String.fromCodePoint(code), end: at + 2 + width };
}

function controlCharacter(text: string, at: number): StringRead {
  const code = text.charCodeAt(at).toString(16).padStart(4, '0');
  return fault(
    at,
    at + 1,
    `the control character U+${code.toUpperCase()} may not stand in a string`,
    `Write it as \\u${code}.`,
  );
}

function fault(from: number, to: number, message: string, hint: string): Extract<StringRead, { ok: false }> {
  return { ok: false, place: { from, to: Math.max(from + 1, to) }, message, hint };
}

/** A value under construction, with the source of its parts. */
class Built {
  readonly #parts: string[] = [];
  readonly #seams: Seam[] = [];
  readonly literal: StringFault[] = [];
  #length = 0;

  constructor(start: number) {
    this.#seams.push({ value: 0, source: start });
  }

  copy(text: string, from: number, to: number): void {
    this.#parts.push(text.slice(from, to));
    this.#length += to - from;
  }

  /** The value differs from the source, which continues at `sourceEnd`. */
  replace(value: string, sourceEnd: number): void {
    this.#parts.push(value);
    this.#length += value.length;
    this.#seams.push({ value: this.#length, source: sourceEnd });
  }

  done(end: number): StringRead {
    return { ok: true, value: this.#parts.join(''), seams: this.#seams, end, literal: this.literal };
  }
}
