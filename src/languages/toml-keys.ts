// The key at a position of a TOML text, and what the tables of keys say about it.

import type { Place } from '../base/source.ts';
import { type Key, keyAt, type Path, type Table } from './keys.ts';
import type { TomlTable, TomlValue } from './toml-tree.ts';

/** `table`: the keys of the document. Null if no known key is written there. */
export function keyWrittenAt(
  root: TomlTable,
  table: Table,
  offset: number,
): { readonly key: Key; readonly place: Place } | null {
  const search = (value: TomlValue, path: Path): { readonly path: Path; readonly place: Place } | null => {
    if (value.kind === 'list') return firstOf(value.items.entries(), ([index, item]) => search(item, [...path, index]));
    if (value.kind !== 'table') return null;
    return firstOf(value.entries.values(), (entry) => {
      const { from, to } = entry.keyPlace;
      const below = [...path, entry.key];
      return from <= offset && offset <= to ? { path: below, place: entry.keyPlace } : search(entry.value, below);
    });
  };
  const found = search(root, []);
  const key = found === null ? null : keyAt(table, found.path, (path) => textAt(root, path));
  return found === null || key === null ? null : { key, place: found.place };
}

function firstOf<T, R>(items: Iterable<T>, find: (item: T) => R | null): R | null {
  for (const item of items) {
    const found = find(item);
    if (found !== null) return found;
  }
  return null;
}

function textAt(root: TomlTable, path: Path): string | null {
  let value: TomlValue | undefined = root;
  for (const step of path) {
    if (value?.kind === 'table') value = value.entries.get(String(step))?.value;
    else value = value?.kind === 'list' && typeof step === 'number' ? value.items[step] : undefined;
  }
  return value?.kind === 'string' ? value.value : null;
}
