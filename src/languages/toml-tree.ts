// A TOML text as values and keys, each with its position.

import type { Json } from '../base/json.ts';
import type { Place } from '../base/source.ts';

export type TomlValue = TomlString | (Scalar & { readonly place: Place }) | TomlList | TomlTable;

export type Scalar =
  | { readonly kind: 'integer' | 'float'; readonly value: number }
  | { readonly kind: 'boolean'; readonly value: boolean }
  /** A date, a time or both, as written. */
  | { readonly kind: 'moment'; readonly value: string };

export interface TomlString {
  readonly kind: 'string';
  readonly place: Place;
  readonly value: string;
  /** Where value and source are aligned: from each seam on, one character of the one is one of the other. */
  readonly seams: readonly Seam[];
}

export interface Seam {
  readonly value: number;
  readonly source: number;
}

export interface TomlList {
  readonly kind: 'list';
  readonly place: Place;
  readonly items: readonly TomlValue[];
}

export interface TomlTable {
  readonly kind: 'table';
  /** Its header, its braces, or the key that made it. */
  readonly place: Place;
  readonly entries: ReadonlyMap<string, TomlEntry>;
}

export interface TomlEntry {
  readonly key: string;
  readonly keyPlace: Place;
  readonly value: TomlValue;
}

/** Source range of a part of a string's value. */
export function placeWithin(text: TomlString, from: number, to: number): Place {
  const start = sourceOffset(text, from);
  return { from: start, to: Math.max(start + 1, sourceOffset(text, to)) };
}

/** Moments become text, since JSON has none. Null if a number has no JSON form. */
export function tomlToJson(value: TomlValue): Json {
  if (value.kind === 'list') return value.items.map(tomlToJson);
  if (value.kind === 'table')
    return Object.fromEntries([...value.entries.values()].map((entry) => [entry.key, tomlToJson(entry.value)]));
  if (typeof value.value !== 'number') return value.value;
  // JSON has no negative zero.
  return Number.isFinite(value.value) ? value.value + 0 : null;
}

/** For messages: `expected a string, got a list`. */
export function describeToml(value: TomlValue): string {
  if (value.kind === 'moment') return 'a date or time';
  const isShort = value.kind === 'integer' || value.kind === 'float' || value.kind === 'boolean';
  return isShort ? String(value.value) : `a ${value.kind}`;
}

function sourceOffset({ seams, place }: TomlString, offset: number): number {
  let low = 0;
  let high = seams.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((seams[middle]?.value ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  const seam = seams[low];
  return seam === undefined ? place.from : seam.source + (offset - seam.value);
}
