// Names of types in MEOW.

import type { Expectation, ValueType } from '../../ir/output.ts';
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

const EXPECTED: readonly Expectation['type'][] = ['string', 'number', 'boolean', 'json', 'file_path'];

/** Null if unknown. */
export function findType(name: string): ValueType | null {
  return (Object.hasOwn(TYPES, name) ? TYPES[name] : undefined) ?? null;
}

/** Type of a command's output; `any` if absent or unknown, which is reported. */
export function readType(report: Report, name: TomlString | null): ValueType {
  if (name === null) return 'any';
  return findType(name.value) ?? unknownType(report, name, Object.keys(TYPES), 'any');
}

/** Type of a variable, which may be the text of a file that it names. */
export function readVariableType(
  report: Report,
  name: TomlString | null,
): { readonly type: ValueType; readonly isFile: boolean } {
  if (name?.value === 'file') return { type: 'string', isFile: true };
  if (name === null || findType(name.value) !== null) return { type: readType(report, name), isFile: false };
  return { type: unknownType(report, name, [...Object.keys(TYPES), 'file'], 'any'), isFile: false };
}

/** Type of an output expected from an agent. */
export function readExpectedType(report: Report, name: TomlString | null): Expectation['type'] {
  if (name === null) return 'string';
  return EXPECTED.find((type) => type === name.value) ?? unknownType(report, name, EXPECTED, 'string');
}

function unknownType<T>(report: Report, name: TomlString, known: readonly string[], instead: T): T {
  const hint = suggest(name.value, known, `Types: ${listed(known)}.`);
  report.error('unknown-type', name.place, `there is no type "${name.value}"`, hint);
  return instead;
}
