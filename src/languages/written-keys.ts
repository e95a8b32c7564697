// The key or word at a position of a document, and what may be written there, by the tables of its keys. For editors.

import type { Place } from '../base/source.ts';
import { type Key, keyAt, type Path, type Table, tablesAt, type TextAt, wordsAt } from './keys.ts';
import { type Suggestion, toItems, type WrittenKey } from './symbols.ts';
import type { Cursor } from './toml-cursor.ts';

/** A value of TOML or YAML. */
interface Tree {
  readonly kind: string;
  readonly place: Place;
  readonly items?: readonly Tree[];
  readonly entries?: ReadonlyMap<string, { readonly key: string; readonly keyPlace: Place; readonly value: Tree }>;
  /** Of a scalar of TOML, and of YAML. */
  readonly value?: unknown;
  readonly text?: string;
}

/** What the tables say about the key at an offset, or about the word that is the value of a key. Null if nothing. */
export function explainAt(root: Tree, table: Table, offset: number): WrittenKey | null {
  const found = search(root, [], offset);
  const textAt = textsOf(root);
  const key = found === null ? null : keyAt(table, found.path, textAt);
  if (found === null || key === null) return null;
  if (found.isKey) return { place: found.place, about: aboutKey(key) };
  const word = textAt(found.path) ?? '';
  const variants = tablesAt(table, found.path.slice(0, -1), textAt).flatMap(({ table: { variants: each } }) =>
    each !== undefined && each.key === key.name ? each : [],
  );
  const chosen = variants.flatMap(({ tables }) => (Object.hasOwn(tables, word) ? (tables[word] ?? []) : []));
  const [first] = chosen;
  return first === undefined ? null : { place: found.place, about: `\`${word}\`: ${first.doc}` };
}

export function textsOf(root: Tree): TextAt {
  return (path) => {
    let value: Tree | undefined = root;
    for (const step of path) value = typeof step === 'number' ? value?.items?.[step] : value?.entries?.get(step)?.value;
    const text = value?.text ?? value?.value;
    return typeof text === 'string' ? text : null;
  };
}

/** Keys that may be written at a cursor, without those that are there. */
export function keysAt(
  root: Table,
  { path, key, isItem }: Cursor,
  textAt: TextAt,
  isWritten: IsWritten,
): readonly Suggestion[] {
  if (key !== null || isItem) return [];
  const keys = tablesAt(root, path, textAt).flatMap((found) => found.keys);
  const missing = keys.filter(({ name }) => !isWritten([...path, name]));
  return missing.map(({ name, doc }) => ({ label: name, kind: 'key', detail: doc }));
}

type IsWritten = (path: Path) => boolean;

/** Words that the value at a cursor may be. */
export function valuesAt(root: Table, cursor: Cursor, textAt: TextAt): readonly Suggestion[] {
  const path = cursor.key === null ? cursor.path : [...cursor.path, cursor.key];
  return toItems('value', wordsAt(root, path, textAt), String(path.findLast((each) => typeof each === 'string')));
}

/** The key that the value at a cursor belongs to, also as an item of its list. */
export function keyOf({ path, key }: Cursor): string | null {
  if (key !== null) return key;
  const [list, item] = path.slice(-2);
  return typeof item === 'number' && typeof list === 'string' ? list : null;
}

function aboutKey({ name, doc }: Key): string {
  return `\`${name}\`: ${doc}`;
}

interface Found {
  readonly path: Path;
  readonly place: Place;
  readonly isKey: boolean;
}

function search({ items, entries, place }: Tree, path: Path, offset: number): Found | null {
  for (const [index, item] of (items ?? []).entries()) {
    const found = search(item, [...path, index], offset);
    if (found !== null) return found;
  }
  for (const { key, keyPlace, value } of entries?.values() ?? []) {
    const below = [...path, key];
    if (keyPlace.from <= offset && offset <= keyPlace.to) return { path: below, place: keyPlace, isKey: true };
    const found = search(value, below, offset);
    if (found !== null) return found;
  }
  const isScalar = items === undefined && entries === undefined;
  return isScalar && place.from <= offset && offset <= place.to ? { path, place, isKey: false } : null;
}
