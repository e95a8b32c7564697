// What of a record the page gets: the decisions, in which long texts are references (web/4). Only values that the fold keeps
// as they are can be replaced: names, ids and items decide which steps a run has.

import type { Json } from '../base/json.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { type PageRecord, TEXT_BYTES, textReference } from './protocol.ts';

/** Values below these keys are texts for people and agents, wherever they are in a decision. */
const TEXTS = new Set([
  'variables',
  'outputs',
  'value',
  'result',
  'data',
  'env',
  'prompt',
  'script',
  'text',
  'notes',
  'answer',
  'message',
  'output',
  'reason',
  'reprompt',
]);

/** Parts that must stay as they are: kept results are compared, and the page draws the graph of a workflow. */
const WHOLE = new Set(['fork', 'part', 'definition', 'proof']);

const HEAD_CHARACTERS = 400;

export function pageRecord({ seq, at, decisions }: JournalRecord): PageRecord {
  return { seq, at, decisions: shortened(decisions, { seq, path: '', isText: false }) };
}

interface Place {
  readonly seq: number;
  /** A JSON pointer. */
  readonly path: string;
  readonly isText: boolean;
}

/** The value itself if nothing in it is replaced. */
function shortened<T>(value: T, place: Place): T {
  if (typeof value === 'string') return (place.isText ? shortenedText(value, place) : value) as T;
  if (typeof value !== 'object' || value === null) return value;
  let changed: Record<string, unknown> | null = null;
  for (const [key, item] of Object.entries(value)) {
    if (WHOLE.has(key)) continue;
    const inner = { ...place, path: `${place.path}/${escapedKey(key)}`, isText: place.isText || TEXTS.has(key) };
    const now: unknown = shortened(item, inner);
    if (now === item) continue;
    changed ??= copyOf(value);
    changed[key] = now;
  }
  return (changed ?? value) as T;
}

/** A list has its items under the keys `0`, `1` …. */
function copyOf(value: object): Record<string, unknown> {
  const copy: unknown = Array.isArray(value) ? [...(value as readonly unknown[])] : { ...value };
  return copy as Record<string, unknown>;
}

function shortenedText(text: string, { seq, path }: Place): string {
  // A character has at most three bytes in UTF-8 for each of its UTF-16 units.
  const mayBeLong = text.length * 3 > TEXT_BYTES;
  const isMarked = text.startsWith('\u0001');
  if (!mayBeLong && !isMarked) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes <= TEXT_BYTES && !isMarked) return text;
  return textReference({ seq, at: path, bytes, head: text.slice(0, HEAD_CHARACTERS) });
}

function escapedKey(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** What is at a JSON pointer; undefined if nothing is. */
export function valueAtPointer(value: unknown, pointer: string): Json | undefined {
  const keys = pointer.split('/').slice(1);
  let at: unknown = value;
  for (const escaped of keys) {
    const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at as Json;
}
