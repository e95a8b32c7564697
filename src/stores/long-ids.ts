// Compresses long ids in a record. If a workflow calls itself thousands of times, the id of a step is as long as the path to
// it, and a record names it a dozen times. So one of these ids is written once, as `under`, and every text with a common
// prefix is written as the length of the prefix and the rest: with `under` "a.b.c", "‥4‥x" is "a.b.x". A text that begins
// with the mark itself is written as "‥0‥" and the text.

import type { Decision } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';

const LONG = 240;
const BLOCK = 512;
const MARK = '‥';
const COMPRESSED = /^‥(\d+)‥/;

/** The id that the others are compared with; null if none is long. */
export function longIdIn(input: Input, decisions: readonly Decision[]): string | null {
  if (input.kind === 'effect-finished') return ifLong(input.effect);
  if ('step' in input) return ifLong(input.step);
  const named = decisions.find((decision) => 'step' in decision);
  return named !== undefined && 'step' in named ? ifLong(named.step) : null;
}

/** For `JSON.stringify`. */
export function shortener(under: string): (key: string, value: unknown) => unknown {
  return (_key, value) => {
    if (typeof value !== 'string') return value;
    const shared = value.length < LONG ? 0 : commonPrefixLength(value, under);
    return shared >= LONG || value.startsWith(MARK) ? `${MARK}${shared}${MARK}${value.slice(shared)}` : value;
  };
}

/** For `JSON.parse`. */
export function lengthener(under: string): (key: string, value: unknown) => unknown {
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
