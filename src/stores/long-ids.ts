// How a record is written whose ids are very long. Where a workflow calls itself thousands of times, the id of a step is
// as long as the way to it, and a record names it a dozen times. So one of these ids is written once, as `under`, and
// every text that begins as it does says how far: with `under` "a.b.c", "‥4‥x" is "a.b.x". A text that begins with the
// mark by itself is written as "‥0‥" and the text.

import type { Decision } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';

const LONG = 240;
const STRETCH = 512;
const MARK = '‥';
const MARKED = /^‥(\d+)‥/;

/** The id that the others are written by; null where none is long. */
export function longIdIn(input: Input, decisions: readonly Decision[]): string | null {
  if (input.kind === 'effect-finished') return longer(input.effect);
  if ('step' in input) return longer(input.step);
  const named = decisions.find((decision) => 'step' in decision);
  return named !== undefined && 'step' in named ? longer(named.step) : null;
}

/** For `JSON.stringify`. */
export function shortener(under: string): (key: string, value: unknown) => unknown {
  return (_key, value) => {
    if (typeof value !== 'string') return value;
    const shared = value.length < LONG ? 0 : sharedLength(value, under);
    return shared >= LONG || value.startsWith(MARK) ? `${MARK}${shared}${MARK}${value.slice(shared)}` : value;
  };
}

/** For `JSON.parse`. */
export function lengthener(under: string): (key: string, value: unknown) => unknown {
  return (_key, value) => {
    const marked = typeof value === 'string' ? MARKED.exec(value) : null;
    if (marked === null || typeof value !== 'string') return value;
    return under.slice(0, Number(marked[1])) + value.slice(marked[0].length);
  };
}

function longer(id: string): string | null {
  return id.length >= LONG ? id : null;
}

function sharedLength(one: string, other: string): number {
  const max = Math.min(one.length, other.length);
  let length = 0;
  // By stretches first: they are compared as memory, not letter by letter.
  while (length + STRETCH <= max && one.startsWith(other.slice(length, length + STRETCH), length)) length += STRETCH;
  while (length < max && one.charCodeAt(length) === other.charCodeAt(length)) length += 1;
  return length;
}
