// Reads JSON from outside without changing its meaning. Integers that would lose digits are refused. Lone surrogates
// are replaced, like bytes that are not UTF-8, because no other program could read them.

import { err, ok } from './result.ts';
import type { Result } from './result.ts';
import { isJsonMap } from './json.ts';
import type { Json } from './json.ts';

/** The error is a sentence. */
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

/** The first integer that would lose digits. */
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
