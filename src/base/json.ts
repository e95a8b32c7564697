// JSON values: the only data that crosses a boundary, is stored in a journal, or reaches a command.

import { err, ok, type Result } from './errors.ts';

export type Json = null | boolean | number | string | readonly Json[] | JsonMap;
export interface JsonMap {
  readonly [key: string]: Json;
}

export function isJsonMap(value: Json | undefined): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An own property, never an inherited one: keys come from outside. */
export function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** Null if the text is not JSON. */
export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/**
 * Reads JSON from outside without changing its meaning. Integers that would lose digits are refused. Lone surrogates
 * are replaced, like bytes that are not UTF-8, because no other program could read them. The error is a sentence.
 */
export function readJsonText(text: string): Result<Json, string> {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return err(error.message);
  }
  const large = inexactNumber(text);
  if (large !== null) return err(`the number ${large} is too large to store exactly; write it as a string`);
  return ok(MAYBE_LONE_SURROGATE.test(text) ? wellFormed(value) : value);
}

function inexactNumber(text: string): string | null {
  if (!MANY_DIGITS.test(text)) return null;
  for (const [piece] of text.matchAll(STRING_OR_NUMBER)) {
    // Decimals and exponents are inexact anyway.
    if (/^-?\d+$/.test(piece) && !Number.isSafeInteger(Number(piece))) return piece;
  }
  return null;
}

const MANY_DIGITS = /\d{16}/;
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** A surrogate, escaped or not. Most belong to a pair. */
const MAYBE_LONE_SURROGATE = /\\u[dD][89a-fA-F]|[\uD800-\uDFFF]/;
const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

function wellFormed(value: Json): Json {
  if (typeof value === 'string') return replaceLoneSurrogates(value);
  if (Array.isArray(value)) return (value as readonly Json[]).map(wellFormed);
  if (!isJsonMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [replaceLoneSurrogates(key), wellFormed(each)]));
}

function replaceLoneSurrogates(text: string): string {
  return text.replaceAll(LONE_SURROGATE, '\uFFFD');
}

/** Position of the first error, or the length of a text that ends too early; null for JSON. */
export function jsonErrorPosition(text: string): number | null {
  const open: ('[' | '{')[] = [];
  let expected: Expected = 'value';
  let at = 0;
  for (;;) {
    SPACE.lastIndex = at;
    at += SPACE.exec(text)?.[0].length ?? 0;
    if (at >= text.length) return expected === 'end' && open.length === 0 ? null : text.length;
    PIECE.lastIndex = at;
    const piece = PIECE.exec(text)?.[0];
    const next: Expected | null = piece === undefined ? null : after(piece, expected, open);
    if (piece === undefined || next === null) return at;
    expected = next;
    at += piece.length;
  }
}

/** `end`: what follows a value; a comma, a closing bracket, or nothing more. */
type Expected = 'value' | 'item' | 'key' | 'member' | 'colon' | 'end';

const SPACE = /[ \t\r\n]*/y;
/** Unescaped characters of a string: no quote, no backslash, no control character. */
const PLAIN = String.raw`[ !#-\x5B\x5D-\uFFFF]*`;
const STRING = String.raw`"${PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})${PLAIN})*"`;
const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`;
const PIECE = new RegExp(String.raw`${STRING}|${NUMBER}|true|false|null|[[\]{},:]`, 'y');

/** What is expected after a piece; null if the piece is not expected. Updates `open`. */
function after(piece: string, expected: Expected, open: ('[' | '{')[]): Expected | null {
  switch (piece) {
    case '[':
    case '{':
      if (expected !== 'value' && expected !== 'item') return null;
      open.push(piece);
      return piece === '[' ? 'item' : 'member';
    case ']':
      return (expected === 'end' || expected === 'item') && open.pop() === '[' ? 'end' : null;
    case '}':
      return (expected === 'end' || expected === 'member') && open.pop() === '{' ? 'end' : null;
    case ',':
      if (expected !== 'end' || open.length === 0) return null;
      return open.at(-1) === '[' ? 'value' : 'key';
    case ':':
      return expected === 'colon' ? 'value' : null;
    default:
      if (expected === 'value' || expected === 'item') return 'end';
      return (expected === 'key' || expected === 'member') && piece.startsWith('"') ? 'colon' : null;
  }
}

/** Whether two values are equal; the order of keys does not matter. */
export function isSameJson(a: Json, b: Json): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    const [one, other] = [a as readonly Json[], b as readonly Json[]];
    return one.length === other.length && one.every((item, index) => isSameJson(item, other[index] ?? null));
  }
  if (!isJsonMap(a) || !isJsonMap(b)) return a === b;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isSameJson(a[key] ?? null, b[key] ?? null))
  );
}
