// The names of types in MEOW, and the types they stand for.

import type { ValueType } from '../../ir/output.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import type { TomlString } from '../toml-tree.ts';

const TYPES: Readonly<Record<string, ValueType>> = {
  string: 'string',
  int: 'integer',
  number: 'number',
  bool: 'boolean',
  boolean: 'boolean',
  json: 'json',
  object: 'json',
};

/** `any` where none is named, or none that we know; the latter is reported. */
export function readType(report: Report, name: TomlString | null): ValueType {
  if (name === null) return 'any';
  const type = Object.hasOwn(TYPES, name.value) ? TYPES[name.value] : undefined;
  if (type !== undefined) return type;
  if (name.value === 'file') {
    const hint = 'Pass the path as a string, and read the file in a step.';
    report.error('not-available', name.place, 'variables of type "file" are not available in this version', hint);
  } else {
    const known = Object.keys(TYPES);
    report.error(
      'unknown-type',
      name.place,
      `there is no type "${name.value}"`,
      suggest(name.value, known, `Types are ${listed(known)}.`),
    );
  }
  return 'any';
}
