// Reads a section of a module as syntax: properties, variables, steps and inline steps. Lowering reads what the steps
// do.

import type { Place } from '../../base/source.ts';
import { coerce, typeError, type ValueType } from '../../ir/output.ts';
import { checkKeys, type Report } from '../report.ts';
import { booleanAt, checkName, durationAt, listAt, missing, stringAt, tableAt } from '../toml-fields.ts';
import type { TomlEntry, TomlList, TomlTable, TomlValue } from '../toml-tree.ts';
import { describeToml, tomlToJson } from '../toml-tree.ts';
import { checkOwnKeys } from './keys.ts';
import { readVariableType } from './outputs.ts';
import { checkNotBuiltin } from './scope.ts';
import { readStep } from './step.ts';
import type { BlockSyntax, StepSyntax, VariableSyntax, WorkflowSyntax } from './syntax.ts';
import { placeholderId } from './syntax.ts';

export interface Section {
  readonly name: string;
  readonly place: Place;
  readonly table: TomlTable;
}

/** Keys of a workflow; at the top of a file they make it a single one, with the name `main`. */
export const WORKFLOW_KEYS: readonly string[] = [
  'name',
  'description',
  'internal',
  'variables',
  'steps',
  'cleanup_on_success',
  'cleanup_on_failure',
  'cleanup_on_stop',
  'drain',
  'default_adapter',
];

/** `name`: the block's name in the Program. */
export function readWorkflow(report: Report, section: Section, name: string): BlockSyntax {
  const { place, table } = section;
  checkOwnKeys(report, table, WORKFLOW_KEYS, `the workflow "${section.name}"`);
  stringAt(report, table, 'name');
  stringAt(report, table, 'description');
  const internal = booleanAt(report, table, 'internal') ?? false;
  const workflow: WorkflowSyntax = {
    name: section.name,
    place,
    internal: internal ? (table.entries.get('internal')?.keyPlace ?? place) : null,
    cleanup: {
      success: stringAt(report, table, 'cleanup_on_success'),
      failure: stringAt(report, table, 'cleanup_on_failure'),
      stop: stringAt(report, table, 'cleanup_on_stop'),
    },
    drainMs: durationAt(report, table, 'drain'),
    defaultAdapter: stringAt(report, table, 'default_adapter'),
  };
  const variables = readVariables(report, section);
  const header = `Each step begins with [[${section.name}.steps]], in double brackets.`;
  const list = listAt(report, table, 'steps', header);
  if (!table.entries.has('steps')) missing(report, place, `the workflow "${section.name}"`, 'steps', header);
  return readSteps({ name, key: null, report, workflow, place, variables }, list, header);
}

function readSteps(block: Omit<BlockSyntax, 'steps' | 'byId'>, list: TomlList | null, hint: string): BlockSyntax {
  const { report, workflow } = block;
  const steps = new Map<string, StepSyntax>();
  for (const item of list?.items ?? []) {
    if (item.kind !== 'table') {
      report.error('wrong-type', item.place, 'a step must be a table', hint);
      continue;
    }
    // A step with a duplicate id is checked too, under a name that cannot be referenced.
    const own = (id: string): string => (steps.has(id) ? placeholderId(steps.size) : id);
    const step = readStep(report, item, steps.size, (id, key, inline): BlockSyntax => {
      const name = `${block.name}/${own(id)}.${key}`;
      const inner = { name, key, report, workflow, place: inline.place, variables: [] };
      return readSteps(inner, inline, 'Write each as { id = "…", executor = "…", … }.');
    });
    const first = steps.get(step.id);
    const id = own(step.id);
    steps.set(id, { ...step, id });
    if (first !== undefined) {
      const related = [{ message: 'first used here', place: first.place }];
      const message = `two steps have the id "${step.id}"`;
      report.error('duplicate-id', step.place, message, 'Give each step an id of its own.', related);
    }
  }
  return { ...block, steps: [...steps.values()], byId: steps };
}

// `[name.variables]`: variables of a workflow. `x = { required = true, … }`, or short `x = "default"`.

const KEYS = ['required', 'default', 'type', 'description'] as const;

function readVariables(report: Report, { name, table: workflow }: Section): readonly VariableSyntax[] {
  const hint = 'Write [main.variables] and one line for each: name = "default".';
  const table = tableAt(report, workflow, 'variables', hint);
  const variables: VariableSyntax[] = [];
  for (const entry of table?.entries.values() ?? []) {
    if (entry.key.startsWith('cleanup_') && WORKFLOW_KEYS.includes(entry.key)) {
      const message = `"${entry.key}" is among the variables, where it has no effect`;
      const hint = `It belongs below [${name}], before [${name}.variables].`;
      report.warning('misplaced-key', entry.keyPlace, message, hint);
    } else if (checkName(report, entry.keyPlace, entry.key, 'variable')) {
      checkNotBuiltin(report, entry.keyPlace, entry.key);
      variables.push(readVariable(report, entry));
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
function readFallback(report: Report, value: TomlValue, type: ValueType): VariableSyntax['fallback'] {
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
  if (value.kind === 'list') return value.items.every(isData);
  if (value.kind === 'table') return [...value.entries.values()].every((entry) => isData(entry.value));
  if (value.kind === 'integer') return Number.isSafeInteger(value.value);
  return value.kind !== 'float' || Number.isFinite(value.value);
}
