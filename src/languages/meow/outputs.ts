// Outputs of steps, and their types. `outputs` of a command: which values are captured, and under which names.
// `shell_outputs` is the same key. `name = { source = "stdout", … }`, or short `name = "stdout"`.

import { own } from '../../base/json.ts';
import type { Capture, Expectation, ValueType } from '../../ir/output.ts';
import type { Text } from '../../ir/text.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, listed, missing, type Report, suggest } from '../report.ts';
import { booleanAt, checkName, entriesOf, stringAt, tableAt, valueOf, wrongType } from '../toml-fields.ts';
import { type TomlEntry, type TomlString, type TomlTable } from '../toml-tree.ts';
import { CAPTURE, EXPECTATION, type EXPECTED_TYPES, type TYPES as TYPE_NAMES } from './keys.ts';
import type { Scope } from './scope.ts';
import type { OutputType, VariableSyntax } from './syntax.ts';
import { lowerTail } from './text.ts';

/** Outputs that every command has. */
const IMPLICIT: readonly (readonly [string, OutputType])[] = [
  ['outcome', 'string'],
  ['exit_code', 'integer'],
];
const OUTPUT_KEYS = ['outputs', 'shell_outputs'] as const;
const SOURCES = ['stdout', 'stderr', 'exit_code', 'file:PATH'] as const;
const EXAMPLE = 'For example: path = { source = "stdout" }.';

/** Names and types as far as readable; errors are reported during lowering. */
export function commandOutputs(step: TomlTable): ReadonlyMap<string, OutputType> {
  const declared = OUTPUT_KEYS.flatMap((key) => entriesOf(step, key));
  return new Map([...IMPLICIT, ...declared.map((entry) => [entry.key, typeOf(entry)] as const)]);
}

function typeOf({ value }: TomlEntry): OutputType {
  const textAt = (key: string): string | null =>
    value.kind === 'table' ? (valueOf(value, key, 'string')?.value ?? null) : null;
  const type = textAt('type');
  if (type !== null) return own(TYPES, type) ?? 'any';
  const source = value.kind === 'string' ? value.value : textAt('source');
  return source === 'exit_code' ? 'integer' : 'any';
}

export function lowerOutputs(scope: Scope, step: TomlTable): readonly Capture<Text>[] {
  const { report } = scope;
  const captures = new Map<string, Capture<Text>>();
  for (const key of OUTPUT_KEYS) {
    const table = tableAt(report, step, key, EXAMPLE);
    for (const entry of table?.entries.values() ?? []) {
      const capture = lowerOutput(scope, entry);
      if (capture === null) continue;
      if (captures.has(entry.key)) {
        const message = `the output "${entry.key}" is defined twice`;
        report.error('duplicate-key', entry.keyPlace, message, 'Keep one of the two.');
      }
      captures.set(entry.key, capture);
    }
  }
  return [...captures.values()];
}

function lowerOutput(scope: Scope, { key, keyPlace, value }: TomlEntry): Capture<Text> | null {
  const { report } = scope;
  checkName(report, keyPlace, key, 'output');
  if (value.kind === 'string') {
    const from = lowerSource(scope, value);
    return from === null ? null : { name: key, from, type: 'any', required: true, ...trimOf(from, true) };
  }
  if (value.kind !== 'table') return wrongType(report, value, `the output "${key}" must be a table`, EXAMPLE);
  checkKeys(report, value, namesOf(CAPTURE.keys), `the output "${key}"`, 'error');
  stringAt(report, value, 'description');
  const type = readType(report, stringAt(report, value, 'type'));
  const required = booleanAt(report, value, 'required') ?? true;
  const source = stringAt(report, value, 'source');
  if (source === null) {
    if (!value.entries.has('source')) missing(report, keyPlace, `the output "${key}"`, 'source', EXAMPLE);
    return null;
  }
  const from = lowerSource(scope, source);
  const trim = booleanAt(report, value, 'trim') ?? true;
  return from === null ? null : { name: key, from, type, required, ...trimOf(from, trim) };
}

/** Said only if it is not what an absent `trim` means. */
function trimOf({ kind }: Capture<Text>['from'], trim: boolean): Pick<Capture<Text>, 'trim'> {
  return trim === (kind === 'file') ? { trim } : {};
}

function lowerSource(scope: Scope, source: TomlString): Capture<Text>['from'] | null {
  const { report } = scope;
  const { value, place } = source;
  if (value === 'stdout' || value === 'stderr') return { kind: value };
  if (value === 'exit_code') return { kind: 'exit-code' };
  if (!value.startsWith('file:')) {
    const hint = suggest(value, SOURCES, `Sources are stdout, stderr, exit_code and file:PATH.`);
    return report.error('unknown-source', place, `an output cannot be taken from "${value}"`, hint);
  }
  const path = lowerTail(scope, source, 'file:'.length);
  if (path !== '') return { kind: 'file', path };
  const hint = 'For example source = "file:build/report.json".';
  return report.error('unknown-source', place, 'the path after file: is missing', hint);
}

// `outputs` of an agent: what it must report.

const EXPECTED_EXAMPLE = 'For example: task_id = { required = true, type = "string" }.';

/** Names and types as far as readable; errors are reported during lowering. */
export function expectedOutputs(step: TomlTable): ReadonlyMap<string, OutputType> {
  return new Map(
    entriesOf(step, 'outputs').map(({ key, value }) => {
      const type = value.kind === 'table' ? valueOf(value, 'type', 'string') : null;
      return [key, own(EXPECTED, type?.value ?? 'string') ?? 'string'];
    }),
  );
}

export function lowerExpectations(report: Report, step: TomlTable): readonly Expectation[] {
  const table = tableAt(report, step, 'outputs', EXPECTED_EXAMPLE);
  return [...(table?.entries.values() ?? [])].flatMap((entry) => lowerExpectation(report, entry));
}

function lowerExpectation(report: Report, { key, keyPlace, value }: TomlEntry): Expectation | [] {
  checkName(report, keyPlace, key, 'output');
  if (value.kind !== 'table') {
    return wrongType(report, value, `the output "${key}" must be a table`, EXPECTED_EXAMPLE) ?? [];
  }
  checkKeys(report, value, namesOf(EXPECTATION.keys), `the output "${key}"`, 'error');
  return {
    name: key,
    type: readExpectedType(report, stringAt(report, value, 'type')),
    required: booleanAt(report, value, 'required') ?? false,
    description: stringAt(report, value, 'description')?.value ?? null,
  };
}

// Names of types in MEOW.

const TYPES: Readonly<Record<(typeof TYPE_NAMES)[number], ValueType>> = {
  string: 'string',
  int: 'integer',
  number: 'number',
  bool: 'boolean',
  boolean: 'boolean',
  json: 'json',
  object: 'json',
};

const EXPECTED: Readonly<Record<(typeof EXPECTED_TYPES)[number], Expectation['type']>> = {
  string: 'string',
  int: 'integer',
  number: 'number',
  bool: 'boolean',
  boolean: 'boolean',
  json: 'json',
  object: 'json',
  file_path: 'file_path',
};

/** Type of a command's output; `any` if absent or unknown, which is reported. */
function readType(report: Report, name: TomlString | null, known: readonly string[] = Object.keys(TYPES)): ValueType {
  if (name === null) return 'any';
  return own(TYPES, name.value) ?? unknownType(report, name, known, 'any');
}

/** Type of a variable, which may be the text of a file that it names. */
export function readVariableType(report: Report, name: TomlString | null): Pick<VariableSyntax, 'type' | 'isFile'> {
  if (name?.value === 'file') return { type: 'string', isFile: true };
  return { type: readType(report, name, [...Object.keys(TYPES), 'file']), isFile: false };
}

function readExpectedType(report: Report, name: TomlString | null): Expectation['type'] {
  if (name === null) return 'string';
  return own(EXPECTED, name.value) ?? unknownType(report, name, Object.keys(EXPECTED), 'string');
}

function unknownType<T>(report: Report, name: TomlString, known: readonly string[], instead: T): T {
  const hint = suggest(name.value, known, `Types: ${listed(known)}.`);
  report.error('unknown-type', name.place, `there is no type "${name.value}"`, hint);
  return instead;
}
