// JSON that others have written, read as data that says the same. What cannot be kept as it stands is refused rather than
// changed: a number with more digits than there is room for would be another number. Halves of characters, which texts
// have where something has cut them, are replaced, as bytes are that are no UTF-8: no other program could read them.

import { err, ok } from './result.ts';
import type { Result } from './result.ts';
import { isJsonMap } from './json.ts';
import type { Json } from './json.ts';

/** An error is a sentence. */
export function readJsonText(text: string): Result<Json, string> {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return err(error.message);
  }
  const large = inexactNumber(text);
  if (large !== null) return err(`the number ${large} is too large to be kept as it is; write it as a string`);
  return ok(MAYBE_HALF.test(text) ? wellFormed(value) : value);
}

/** Null where there is none. */
function inexactNumber(text: string): string | null {
  if (!MANY_DIGITS.test(text)) return null;
  for (const [piece] of text.matchAll(STRING_OR_NUMBER)) {
    // With a point or an exponent it is not exact anyway.
    if (/^-?\d+$/.test(piece) && !Number.isSafeInteger(Number(piece))) return piece;
  }
  return null;
}

const MANY_DIGITS = /\d{16}/;
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** As an escape, or as it is; most have their other half beside them. */
const MAYBE_HALF = /\\u[dD][89a-fA-F]|[\uD800-\uDFFF]/;
const HALF = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

function wellFormed(value: Json): Json {
  if (typeof value === 'string') return wholeCharacters(value);
  if (Array.isArray(value)) return (value as readonly Json[]).map(wellFormed);
  if (!isJsonMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [wholeCharacters(key), wellFormed(each)]));
}

function wholeCharacters(text: string): string {
  return text.replaceAll(HALF, '\uFFFD');
}
