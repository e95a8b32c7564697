// Reads the files of a compilation as syntax: properties, variables, steps and inline steps of workflows. Lowering
// reads what the steps do. Each file is parsed once; its workflows are read only if something refers to them, so errors
// in others do not matter.

import { hasErrors, makeSource, type Place } from '../../base/source.ts';
import { coerce, typeError, type ValueType } from '../../ir/output.ts';
import { namesOf } from '../keys.ts';
import {
  checkKeys,
  checkSimilarKeys,
  createReport,
  listed,
  missing,
  type Report,
  reportUnknownKey,
  START,
  suggest,
} from '../report.ts';
import { booleanAt, checkName, durationAt, listAt, NAME, stringAt, tableAt, valueOf } from '../toml-fields.ts';
import {
  describeToml,
  type TomlEntry,
  type TomlList,
  type TomlTable,
  tomlToJson,
  type TomlValue,
} from '../toml-tree.ts';
import { readToml } from '../toml.ts';
import { VARIABLE, WORKFLOW_KEYS as KEYS_OF_WORKFLOW } from './keys.ts';
import { readVariableType } from './outputs.ts';
import { checkNotBuiltin } from './scope.ts';
import { readStep } from './step.ts';
import {
  type BlockSyntax,
  placeholderId,
  type StepSyntax,
  type VariableSyntax,
  type WorkflowSyntax,
} from './syntax.ts';

/** A file and its text; its name, used in messages, is unique. */
export interface MeowFile {
  readonly file: string;
  readonly text: string;
}

export interface Module {
  readonly file: string;
  readonly report: Report;
  readonly sections: readonly Section[];
  /** It could not be read at all, so missing sections are not reported. */
  readonly isBroken: boolean;
  /** Its workflow of that name; null if there is none. */
  readonly block: (name: string) => BlockSyntax | null;
}

/** `prefix`: prefix of the names of its blocks. `read`: how much of a damaged text is read; by default nothing. */
export function openModule(
  { file, text }: MeowFile,
  prefix: string,
  read: (report: Report) => TomlTable | null = readToml,
): Module {
  const report = createReport(makeSource(file, text));
  const tree = read(report);
  const sections = tree === null ? [] : readModule(report, tree);
  const byName = new Map(sections.map((section) => [section.name, section]));
  const blocks = new Map<string, BlockSyntax>();
  return {
    file,
    report,
    sections,
    isBroken: sections.length === 0 && hasErrors(report.diagnostics()),
    block: (name) => {
      const section = byName.get(name);
      if (section === undefined) return null;
      const block = blocks.get(name) ?? readWorkflow(report, section, `${prefix}${name}`);
      blocks.set(name, block);
      return block;
    },
  };
}

// A file has `[name]` tables, or the older form of a single workflow with `[[steps]]` at the top.

const EXAMPLE = 'A workflow begins with [main], its steps with [[main.steps]].';

function readModule(report: Report, root: TomlTable): readonly Section[] {
  const sections = new Map<string, Section>();
  const single = root.entries.has('steps');
  if (single) sections.set('main', singleWorkflow(root));
  for (const entry of root.entries.values()) {
    if (isPartOfSingle(entry, single)) continue;
    const section = readSection(report, entry);
    if (section === null) continue;
    const first = sections.get(section.name);
    if (first === undefined) sections.set(section.name, section);
    else {
      const related = [{ message: 'first defined here', place: first.place }];
      const hint =
        single && section.name === 'main'
          ? 'Steps at the top of a file are its workflow "main"; move them under [[main.steps]].'
          : 'Rename one of the two.';
      const message = `the workflow "${section.name}" is defined twice`;
      report.error('duplicate-workflow', entry.keyPlace, message, hint, related);
    }
  }
  if (sections.size === 0 && !hasErrors(report.diagnostics())) {
    report.error('no-workflow', START, 'there is no workflow in this file', EXAMPLE);
  }
  return [...sections.values()];
}

/** The workflow named by `#name`, or `main`. Null is reported. */
export function findBlock({ report, sections, block }: Module, wanted: string | null): BlockSyntax | null {
  const name = (wanted ?? 'main').replace(/^\./, '');
  const found = block(name);
  const [first] = sections;
  if (found !== null || first === undefined) return found;
  const names = sections.map((section) => section.name);
  const others = `It has ${listed(names)}: ${report.source.file}#${first.name} names one.`;
  const hint = wanted === null ? others : suggest(name, names, others);
  return report.error('unknown-workflow', first.place, `this file has no workflow "${name}"`, hint);
}

function isPartOfSingle({ key, value }: TomlEntry, single: boolean): boolean {
  if (key === 'meta' && value.kind === 'table' && !value.entries.has('steps')) return true;
  return single && WORKFLOW_KEYS.includes(key) && !(value.kind === 'table' && value.entries.has('steps'));
}

/** `[meta]` contains the keys of `[main]`. */
function singleWorkflow(root: TomlTable): Section {
  const meta = valueOf(root, 'meta', 'table');
  const own = WORKFLOW_KEYS.flatMap((key) => root.entries.get(key) ?? []);
  const entries = new Map([...(meta?.entries.values() ?? []), ...own].map((entry) => [entry.key, entry]));
  const place = meta?.place ?? root.entries.get('steps')?.value.place ?? root.place;
  return { name: 'main', place, table: { kind: 'table', place, entries } };
}

function readSection(report: Report, entry: TomlEntry): Section | null {
  const { key, keyPlace, value } = entry;
  const name = key.replace(/^\./, '');
  if (value.kind !== 'table') {
    const message = `"${key}" is at the top of the file, outside of any workflow`;
    if (WORKFLOW_KEYS.includes(key)) {
      report.error('misplaced-key', keyPlace, message, 'Move it below the header of a workflow: [main].');
    } else reportUnknownKey(report, entry, WORKFLOW_KEYS, message, EXAMPLE);
    return null;
  }
  if (!NAME.test(name)) {
    const hint = 'Names of workflows are made of letters, digits, - and _.';
    return report.error('invalid-name', keyPlace, `"${key}" is not a valid name for a workflow`, hint);
  }
  return { name, place: value.place, table: value };
}

export interface Section {
  readonly name: string;
  readonly place: Place;
  readonly table: TomlTable;
}

/** Keys of a workflow; at the top of a file they make it a single one, with the name `main`. */
const WORKFLOW_KEYS = namesOf(KEYS_OF_WORKFLOW);

/** `name`: the block's name in the Program. */
function readWorkflow(report: Report, section: Section, name: string): BlockSyntax {
  const { place, table } = section;
  checkSimilarKeys(report, table, WORKFLOW_KEYS, `the workflow "${section.name}"`);
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
  checkKeys(report, value, namesOf(VARIABLE.keys), `the variable "${key}"`, 'error');
  const { type, isFile } = readVariableType(report, stringAt(report, value, 'type'));
  const fallback = value.entries.get('default');
  const secret = readSecret(report, value, { key, type, fallback });
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
    ...(secret === undefined ? {} : { secret, fallback: null, hasDefault: secret !== null }),
  };
}

/** `secret = true`, with the environment variable that has the value. */
function readSecret(
  report: Report,
  table: TomlTable,
  { key, type, fallback }: { readonly key: string; readonly type: ValueType; readonly fallback: TomlEntry | undefined },
): string | null | undefined {
  const isSecret = booleanAt(report, table, 'secret') === true;
  const env = stringAt(report, table, 'env');
  const hint = `For example ${key} = { secret = true, env = "API_TOKEN" }.`;
  if (!isSecret) {
    if (env !== null)
      report.error('secret-variable', env.place, `"env" is for a secret, and "${key}" is not one`, hint);
    return undefined;
  }
  if (fallback !== undefined)
    report.error('secret-variable', fallback.keyPlace, `the secret "${key}" cannot have a default in the file`, hint);
  if (type !== 'any' && type !== 'string')
    report.error('secret-variable', table.place, `the secret "${key}" must be a string`, 'Leave out its type.');
  if (env !== null && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(env.value)) {
    const message = `${JSON.stringify(env.value)} is not the name of an environment variable`;
    report.error('secret-variable', env.place, message, hint);
    return null;
  }
  return env?.value ?? null;
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
  return report.error('wrong-type', value.place, `this default does not fit its variable: ${why}`, hint);
}

function isData(value: TomlValue): boolean {
  if (value.kind === 'list') return value.items.every(isData);
  if (value.kind === 'table') return [...value.entries.values()].every((entry) => isData(entry.value));
  if (value.kind === 'integer') return Number.isSafeInteger(value.value);
  return value.kind !== 'float' || Number.isFinite(value.value);
}
