// `[name.variables]`: variables of a workflow. `x = { required = true, … }`, or short `x = "default"`.

import type { ValueType } from '../../ir/output.ts';
import { coerce, typeError } from '../../ir/output.ts';
import type { Report } from '../report.ts';
import type { TomlEntry, TomlTable, TomlValue } from '../toml-tree.ts';
import { describeToml, tomlToJson } from '../toml-tree.ts';
import { booleanAt, checkKeys, stringAt, tableAt } from '../toml-fields.ts';
import type { FallbackSyntax, VariableSyntax } from './syntax.ts';
import { readVariableType } from './value-type.ts';

const KEYS = ['required', 'default', 'type', 'description'] as const;
const NAME = /^[A-Za-z0-9_-]+$/;

export function readVariables(report: Report, workflow: TomlTable): readonly VariableSyntax[] {
  const table = tableAt(
    report,
    workflow,
    'variables',
    'Write [main.variables] and one line for each: name = "default".',
  );
  const variables: VariableSyntax[] = [];
  for (const entry of table?.entries.values() ?? []) {
    if (entry.key.startsWith('cleanup_')) {
      const message = `"${entry.key}" is among the variables, where it has no effect`;
      report.error('misplaced-key', entry.keyPlace, message, 'Move it up, before the header of the variables.');
    } else if (NAME.test(entry.key)) variables.push(readVariable(report, entry));
    else {
      const hint = 'Names of variables are made of letters, digits, - and _.';
      report.error('invalid-name', entry.keyPlace, `"${entry.key}" is not a valid name for a variable`, hint);
    }
  }
  return variables;
}

function readVariable(report: Report, { key, keyPlace, value }: TomlEntry): VariableSyntax {
  const none = { name: key, place: keyPlace, type: 'any', isFile: false, required: false, description: null } as const;
  if (value.kind !== 'table') return { ...none, hasDefault: true, fallback: readFallback(report, value, 'any') };
  checkKeys(report, value, KEYS, `the variable "${key}"`, 'error');
  const { type, isFile } = readVariableType(report, stringAt(report, value, 'type'));
  const fallback = value.entries.get('default');
  const required = booleanAt(report, value, 'required');
  if (required === true && fallback !== undefined) {
    const message = `"${key}" has a default, so it is not required`;
    report.warning('required-default', fallback.keyPlace, message, 'Remove one of the two.');
  }
  return {
    ...none,
    type,
    isFile,
    required: required ?? false,
    hasDefault: fallback !== undefined,
    fallback: fallback === undefined ? null : readFallback(report, fallback.value, type),
    description: stringAt(report, value, 'description')?.value ?? null,
  };
}

/** A quoted default is read like `--var`; other data must have the type. */
function readFallback(report: Report, value: TomlValue, type: ValueType): FallbackSyntax | null {
  if (value.kind === 'string') {
    if (value.value.includes('{{')) return { kind: 'text', text: value };
    const read = coerce(value.value, type);
    if (read.ok) return { kind: 'literal', value: read.value };
    return wrongDefault(report, value, `expected ${EXPECTED[type]}, got ${JSON.stringify(value.value)}`);
  }
  if (!isData(value))
    return wrongDefault(report, value, 'it has no JSON form: numbers are finite, integers below 2^53');
  const data = tomlToJson(value);
  return typeError(data, type) === null
    ? { kind: 'literal', value: data }
    : wrongDefault(report, value, `expected ${EXPECTED[type]}, got ${describeToml(value)}`);
}

const EXPECTED: Readonly<Record<ValueType, string>> = {
  any: 'a value',
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  json: 'JSON',
};

function wrongDefault(report: Report, value: TomlValue, why: string): null {
  const hint = 'Change the default, or the type of the variable.';
  report.error('wrong-type', value.place, `this default does not fit its variable: ${why}`, hint);
  return null;
}

function isData(value: TomlValue): boolean {
  switch (value.kind) {
    case 'list':
      return value.items.every(isData);
    case 'table':
      return [...value.entries.values()].every((entry) => isData(entry.value));
    case 'integer':
      return Number.isSafeInteger(value.value);
    case 'float':
      return Number.isFinite(value.value);
    case 'string':
    case 'boolean':
    case 'moment':
      return true;
  }
}
