// The four kinds of TOML strings, read from their opening quotes. Line ends become `\n`, so that a script written on
// Windows works in the shell. In a multi-line string, a backslash that starts no escape (the `\(` of a regular
// expression) is literal: TOML forbids it, but authors of scripts mean it so. It is a warning.

import { err, ok, type Result } from '../base/errors.ts';
import type { Place } from '../base/source.ts';
import type { Seam } from './toml-tree.ts';

interface StringRead {
  readonly text: string;
  readonly seams: readonly Seam[];
  readonly end: number;
  /** Literal backslashes. */
  readonly literal: readonly StringFault[];
}

interface StringFault {
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

/** Closing quotes, backslashes, and characters that are not copied. */
const SPECIAL = {
  short: { '"': /["\\]|[^\t -~\u0080-\uffff]/g, "'": /'|[^\t -~\u0080-\uffff]/g },
  long: { '"': /"{3,}|\\|[^\t\n -~\u0080-\uffff]/g, "'": /'{3,}|[^\t\n -~\u0080-\uffff]/g },
} as const;

/** `start` is the first quote. Keys cannot be multi-line strings: `multiline` says whether they are allowed. */
export function readString(text: string, start: number, multiline: boolean): Result<StringRead, StringFault> {
  const mark = text[start] === '"' ? '"' : "'";
  const isLong = multiline && text.startsWith(mark.repeat(3), start);
  const special = SPECIAL[isLong ? 'long' : 'short'][mark];
  // A line end right after the opening quotes is not part of the value.
  const opening = isLong ? /["']{3}(?:\r?\n)?/y : /["']/y;
  opening.lastIndex = start;
  opening.test(text);
  const built = new StringBuilder(text, opening.lastIndex);
  for (;;) {
    special.lastIndex = built.at;
    const found = special.exec(text);
    if (found === null && isLong) {
      return fault(start, start + 3, 'this string is never closed', `Close it with ${mark.repeat(3)}.`);
    }
    if (found === null || (!isLong && /[\r\n]/.test(found[0]))) {
      const hint = `Close it with ${mark}, or use ${mark.repeat(3)} for several lines.`;
      return fault(start, found?.index ?? text.length, 'this string has no closing quote', hint);
    }
    const [matched] = found;
    built.copyTo(found.index);
    const { at } = built;
    if (matched.startsWith(mark)) return isLong ? closeLong(built, matched) : built.finish(at + 1);
    if (matched === '\r' && text[at + 1] === '\n') built.replaceTo(at + 2, '\n');
    else if (matched !== '\\') return controlCharacter(text, at);
    else {
      const folded = /\\[ \t]*\r?\n[ \t\r\n]*/y;
      folded.lastIndex = at;
      const isFolded = isLong && folded.test(text);
      const escaped = isFolded ? ok({ text: '', end: folded.lastIndex }) : readEscape(text, at);
      if (escaped.ok) built.replaceTo(escaped.value.end, escaped.value.text);
      else if (!isLong || isEscape(text, at)) return escaped;
      else {
        built.literal.push({ ...escaped.error, message: `${escaped.error.message}; it is used literally` });
        built.copyTo(at + 1);
      }
    }
  }
}

/** Up to two quotes may precede the closing three. */
function closeLong(built: StringBuilder, quotes: string): Result<StringRead, StringFault> {
  const end = built.at + quotes.length;
  if (quotes.length > 5) {
    const hint = `Write ${quotes.startsWith('"') ? String.raw`\"` : 'some of them in a "…" string'}.`;
    return fault(built.at, end, 'too many quotes in a row', hint);
  }
  built.copyTo(end - 3);
  return built.finish(end);
}

/** Whether a letter follows for which TOML has an escape, even an invalid one. */
function isEscape(text: string, at: number): boolean {
  const letter = text[at + 1] ?? '';
  return ESCAPES[letter] !== undefined || HEX_DIGITS[letter] !== undefined;
}

function readEscape(text: string, at: number): Result<Pick<StringRead, 'text' | 'end'>, StringFault> {
  const letter = text[at + 1] ?? '';
  const plain = ESCAPES[letter];
  if (plain !== undefined) return ok({ text: plain, end: at + 2 });
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
  return ok({ text: String.fromCodePoint(code), end: at + 2 + width });
}

function controlCharacter(text: string, at: number): Result<never, StringFault> {
  const code = text.charCodeAt(at).toString(16).padStart(4, '0');
  const message = `the control character U+${code.toUpperCase()} may not stand in a string`;
  return fault(at, at + 1, message, `Write it as \\u${code}.`);
}

function fault(from: number, to: number, message: string, hint: string): Result<never, StringFault> {
  return err({ place: { from, to: Math.max(from + 1, to) }, message, hint });
}

/** A value under construction, with the source of its parts. */
class StringBuilder {
  /** End of the source read so far. */
  at: number;
  readonly literal: StringFault[] = [];
  readonly #source: string;
  readonly #seams: Seam[];
  #text = '';

  constructor(source: string, start: number) {
    this.#source = source;
    this.at = start;
    this.#seams = [{ value: 0, source: start }];
  }

  copyTo(end: number): void {
    this.#text += this.#source.slice(this.at, end);
    this.at = end;
  }

  /** The value differs from the source, which continues at `end`. */
  replaceTo(end: number, text: string): void {
    this.#text += text;
    this.#seams.push({ value: this.#text.length, source: end });
    this.at = end;
  }

  finish(end: number): Result<StringRead, StringFault> {
    return ok({ text: this.#text, seams: this.#seams, end, literal: this.literal });
  }
}
