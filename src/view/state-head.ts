// Reads back what a list of runs needs from the beginning of a state file (state-yaml.ts), so that a run that has ended
// need not be folded. Only lines in the form that we write count.

import { isJsonMap, type Json, parseJson } from '../base/json.ts';
import type { Counts } from './status.ts';

export interface StateHead {
  readonly endedAt: string | null;
  readonly counts: Counts;
  /** Why the run failed. */
  readonly error: { readonly step: string | null; readonly message: string } | null;
  readonly hasOpenGates: boolean;
}

/** Null if the text is not the whole head of a state file, or of one that an earlier version wrote. */
export function readStateHead(text: string): StateHead | null {
  const end = /^steps:/m.exec(text)?.index;
  if (end === undefined) return null;
  const head = text.slice(0, end);
  const counts = parseJson(valueOf(head, 'counts') ?? '');
  if (!isJsonMap(counts)) return null;
  const [, error = null] = /^error:\n((?: {2}.*\n)+)/m.exec(head) ?? [];
  const message = error === null ? null : scalarIn(error, '  message');
  return {
    endedAt: valueOf(head, 'ended_at'),
    counts: counts as unknown as Counts,
    error: typeof message === 'string' ? { step: textOrNull(scalarIn(error ?? '', '  step')), message } : null,
    hasOpenGates: valueOf(head, 'gates') !== null,
  };
}

function valueOf(text: string, key: string): string | null {
  const [, value = null] = new RegExp(`^${key}: (.*)$`, 'm').exec(text) ?? [];
  return value;
}

/** Bare words are texts; everything else is JSON. */
function scalarIn(text: string, key: string): Json {
  const value = valueOf(text, key);
  if (value === null || value === 'null') return null;
  return value.startsWith('"') ? parseJson(value) : value;
}

function textOrNull(value: Json): string | null {
  return typeof value === 'string' ? value : null;
}
