// `outputs` of an agent's step: what the agent is asked for, `name = { required = true, type = "…", description = "…" }`.

import type { Expectation } from '../../ir/output.ts';
import type { Report } from '../report.ts';
import { booleanAt, checkKeys, stringAt, tableAt } from '../toml-fields.ts';
import type { TomlEntry, TomlTable } from '../toml-tree.ts';
import { describeToml } from '../toml-tree.ts';
import type { OutputType } from './syntax.ts';
import { readExpectedType } from './value-type.ts';

const KEYS = ['required', 'type', 'description'] as const;
const EXAMPLE = 'For example: task_id = { required = true, type = "string" }.';
const TYPES: readonly string[] = ['number', 'boolean', 'json', 'file_path'] satisfies Expectation['type'][];

/** Names and types, as far as they can be read; what is wrong with them is said when they are lowered. */
export function expectedOutputs(step: TomlTable): ReadonlyMap<string, OutputType> {
  const outputs = step.entries.get('outputs')?.value;
  if (outputs?.kind !== 'table') return new Map();
  return new Map(
    [...outputs.entries.values()].map(({ key, value }) => {
      const type = value.kind === 'table' ? value.entries.get('type')?.value : undefined;
      const known = type?.kind === 'string' && TYPES.includes(type.value);
      return [key, known ? (type.value as OutputType) : 'string'];
    }),
  );
}

export function lowerExpectations(report: Report, step: TomlTable): readonly Expectation[] {
  const table = tableAt(report, step, 'outputs', EXAMPLE);
  return [...(table?.entries.values() ?? [])].flatMap((entry) => lowerExpectation(report, entry));
}

function lowerExpectation(report: Report, { key, keyPlace, value }: TomlEntry): Expectation | [] {
  if (!/^[A-Za-z0-9_-]+$/.test(key)) {
    const hint = 'Names of outputs are made of letters, digits, - and _.';
    report.error('invalid-name', keyPlace, `"${key}" is no name for an output`, hint);
  }
  if (value.kind !== 'table') {
    report.error('wrong-type', value.place, `the output "${key}" must be a table, got ${describeToml(value)}`, EXAMPLE);
    return [];
  }
  checkKeys(report, value, KEYS, `the output "${key}"`, 'error');
  return {
    name: key,
    type: readExpectedType(report, stringAt(report, value, 'type')),
    required: booleanAt(report, value, 'required') ?? false,
    description: stringAt(report, value, 'description')?.value ?? null,
  };
}
