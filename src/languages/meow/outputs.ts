// `outputs` of a command: which values are captured, and under which names. `shell_outputs` is the same key. `name = {
// source = "stdout", … }`, or short `name = "stdout"`.

import type { Capture } from '../../ir/output.ts';
import type { Text } from '../../ir/text.ts';
import type { Report } from '../report.ts';
import { suggest } from '../report.ts';
import type { TomlEntry, TomlString, TomlTable } from '../toml-tree.ts';
import { describeToml } from '../toml-tree.ts';
import { booleanAt, checkKeys, missing, stringAt, tableAt } from '../toml-fields.ts';
import type { Scope } from './scope.ts';
import type { OutputType } from './syntax.ts';
import { lowerTail } from './text.ts';
import { findType, readType } from './value-type.ts';

/** Outputs that every command has. */
const IMPLICIT: readonly (readonly [string, OutputType])[] = [
  ['outcome', 'string'],
  ['exit_code', 'integer'],
];
const KEYS = ['source', 'type', 'required', 'description'] as const;
const SOURCES = ['stdout', 'stderr', 'exit_code', 'file:PATH'] as const;
const EXAMPLE = 'For example: path = { source = "stdout" }.';
const NAME = /^[A-Za-z0-9_-]+$/;

/** Names and types as far as readable; errors are reported during lowering. */
export function commandOutputs(step: TomlTable): ReadonlyMap<string, OutputType> {
  const declared = ['outputs', 'shell_outputs'].flatMap((key) => {
    const value = step.entries.get(key)?.value;
    return value?.kind === 'table' ? [...value.entries.values()] : [];
  });
  return new Map([...IMPLICIT, ...declared.map((entry) => [entry.key, typeOf(entry)] as const)]);
}

function typeOf({ value }: TomlEntry): OutputType {
  const said = (key: string): string | null => {
    const inside = value.kind === 'table' ? value.entries.get(key)?.value : null;
    return inside?.kind === 'string' ? inside.value : null;
  };
  const type = said('type');
  if (type !== null) return findType(type) ?? 'any';
  const source = value.kind === 'string' ? value.value : said('source');
  return source === 'exit_code' ? 'integer' : 'any';
}

export function lowerOutputs(scope: Scope, step: TomlTable): readonly Capture<Text>[] {
  const { report } = scope;
  const captures = new Map<string, Capture<Text>>();
  for (const key of ['outputs', 'shell_outputs']) {
    const table = tableAt(report, step, key, EXAMPLE);
    for (const entry of table?.entries.values() ?? []) {
      const capture = lowerOutput(scope, entry);
      if (capture === null) continue;
      if (captures.has(entry.key)) {
        report.error(
          'duplicate-key',
          entry.keyPlace,
          `the output "${entry.key}" is defined twice`,
          'Keep one of the two.',
        );
      }
      captures.set(entry.key, capture);
    }
  }
  return [...captures.values()];
}

function lowerOutput(scope: Scope, { key, keyPlace, value }: TomlEntry): Capture<Text> | null {
  const { report } = scope;
  if (!NAME.test(key)) {
    const hint = 'Names of outputs are made of letters, digits, - and _.';
    report.error('invalid-name', keyPlace, `"${key}" is not a valid name for an output`, hint);
  }
  if (value.kind === 'string') {
    const from = lowerSource(scope, value);
    return from === null ? null : { name: key, from, type: 'any', required: true };
  }
  if (value.kind !== 'table') {
    report.error('wrong-type', value.place, `the output "${key}" must be a table, got ${describeToml(value)}`, EXAMPLE);
    return null;
  }
  checkKeys(report, value, KEYS, `the output "${key}"`, 'error');
  stringAt(report, value, 'description');
  const type = readType(report, stringAt(report, value, 'type'));
  const required = booleanAt(report, value, 'required') ?? true;
  const source = stringAt(report, value, 'source');
  if (source === null) {
    if (!value.entries.has('source')) missing(report, keyPlace, `the output "${key}"`, 'source', EXAMPLE);
    return null;
  }
  const from = lowerSource(scope, source);
  return from === null ? null : { name: key, from, type, required };
}

function lowerSource(scope: Scope, source: TomlString): Capture<Text>['from'] | null {
  switch (source.value) {
    case 'stdout':
    case 'stderr':
      return { kind: source.value };
    case 'exit_code':
      return { kind: 'exit-code' };
    default:
      return source.value.startsWith('file:') ? lowerFile(scope, source) : unknownSource(scope.report, source);
  }
}

function lowerFile(scope: Scope, source: TomlString): Capture<Text>['from'] | null {
  const path = lowerTail(scope, source, 'file:'.length);
  if (path !== '') return { kind: 'file', path };
  scope.report.error(
    'unknown-source',
    source.place,
    'the path after file: is missing',
    'For example source = "file:build/report.json".',
  );
  return null;
}

function unknownSource(report: Report, source: TomlString): null {
  const hint = suggest(source.value, SOURCES, `Sources are stdout, stderr, exit_code and file:PATH.`);
  report.error('unknown-source', source.place, `an output cannot be taken from "${source.value}"`, hint);
  return null;
}
