// `foreach`: a workflow for each item of a list, concurrently or one after another.

import { coerce } from '../../../ir/output.ts';
import type { Each } from '../../../ir/program.ts';
import type { ValueTemplate } from '../../../ir/text.ts';
import type { Report } from '../../report.ts';
import { parseTemplate } from '../../template.ts';
import { booleanAt, countAt, missing, stringAt } from '../../toml-fields.ts';
import type { TomlString, TomlTable, TomlValue } from '../../toml-tree.ts';
import { describeToml, placeWithin } from '../../toml-tree.ts';
import type { Scope } from '../scope.ts';
import { articled, typeOfReference } from '../scope.ts';
import { lowerTarget, readStepTarget } from '../target.ts';
import { lowerText, lowerValue } from '../text.ts';
import type { Executor } from './executor.ts';
import { NO_OUTPUTS } from './executor.ts';

const ITEM = 'item';
const EXAMPLE = 'For example items = ["a", "b"], or items = "{{plan.outputs.tasks}}".';

export const foreach: Executor = {
  name: 'foreach',
  keys: [
    'items',
    'items_file',
    'item_var',
    'index_var',
    'key',
    'template',
    'variables',
    'parallel',
    'max_concurrent',
    'join',
  ],
  canGrow: true,
  timeout: 'none',
  outputs: () => NO_OUTPUTS,
  targets: (report, step) => readStepTarget(report, step, 'each', namesOf(step)),
  lower: (scope, { table, targets }) => {
    const { report } = scope;
    const [itemName, indexName] = [readName(report, table, 'item_var'), readName(report, table, 'index_var')];
    if (indexName !== null && indexName === (itemName ?? ITEM)) {
      const place = table.entries.get('index_var')?.value.place ?? table.place;
      report.error('invalid-name', place, '"index_var" and "item_var" are the same name', 'Rename one of the two.');
    }
    const items = lowerItems(scope, table);
    const inside: Scope = { ...scope, variables: new Set([...scope.variables, ...namesOf(table)]) };
    const key = stringAt(report, table, 'key');
    const rest = {
      itemName: itemName ?? ITEM,
      indexName,
      key: key === null ? null : lowerText(inside, key),
      parallel: lowerParallel(scope, table),
      width: lowerWidth(scope, table),
      join: booleanAt(report, table, 'join') ?? true,
    };
    const target = targets.find(({ kind }) => kind === 'each');
    const lowered = target === undefined ? null : lowerTarget(scope, target);
    if (lowered === null || items === null) return null;
    return { act: { kind: 'each', items, target: lowered, ...rest } };
  },
};

/** Variables of each iteration, as far as readable. */
function namesOf(step: TomlTable): readonly string[] {
  const [item, index] = ['item_var', 'index_var'].map((key) => step.entries.get(key)?.value);
  return [item?.kind === 'string' ? item.value : ITEM, ...(index?.kind === 'string' ? [index.value] : [])];
}

function readName(report: Report, step: TomlTable, key: string): string | null {
  const name = stringAt(report, step, key);
  if (name === null || /^[A-Za-z0-9_-]+$/.test(name.value)) return name?.value ?? null;
  const hint = 'Names of variables are made of letters, digits, - and _.';
  report.error('invalid-name', name.place, `"${name.value}" is not a valid name for a variable`, hint);
  return null;
}

function lowerItems(scope: Scope, step: TomlTable): Each['items'] | null {
  const { report } = scope;
  const items = step.entries.get('items');
  const file = stringAt(report, step, 'items_file');
  if (items !== undefined && step.entries.has('items_file')) {
    const place = step.entries.get('items_file')?.keyPlace ?? items.keyPlace;
    report.error('invalid-value', place, 'the step has both "items" and "items_file"', 'Keep one of the two.');
  } else if (items === undefined && !step.entries.has('items_file')) {
    missing(report, step.place, 'this step', 'items', `Say what it is for each of. ${EXAMPLE}`);
  }
  const path = file === null ? null : lowerText(scope, file);
  if (items !== undefined) return lowerList(scope, items.value);
  return path === null ? null : { kind: 'file', path };
}

function lowerList(scope: Scope, value: TomlValue): Each['items'] | null {
  if (value.kind === 'list') return { kind: 'value', value: lowerValue(scope, value) };
  if (value.kind !== 'string') {
    const message = `"items" must be a list, got ${describeToml(value)}`;
    scope.report.error('wrong-type', value.place, message, EXAMPLE);
    return null;
  }
  const template = lowerValue(scope, value);
  if (template.kind === 'text') {
    checkItemsType(scope, value);
    return { kind: 'value', value: template };
  }
  const list = coerce(value.value, 'json');
  if (list.ok && Array.isArray(list.value)) return { kind: 'value', value: { kind: 'literal', value: list.value } };
  scope.report.error('wrong-type', value.place, '"items" is a string, but not a JSON list', EXAMPLE);
  return null;
}

/** Reports values that cannot be a list. A text may contain one as JSON. */
function checkItemsType(scope: Scope, items: TomlString): void {
  const [only, ...more] = parseTemplate(items.value).parts;
  if (only === undefined || typeof only === 'string' || more.length > 0) return;
  const type = typeOfReference(scope, only.path);
  if (type === null || type === 'json' || type === 'any' || type === 'string') return;
  const message = `{{${only.path.join('.')}}} is ${articled(type)}, and "items" must be a list`;
  const hint = 'Give it the type "json", or refer to something that is a list.';
  scope.report.error('output-type', placeWithin(items, only.from, only.to), message, hint);
}

function lowerParallel(scope: Scope, step: TomlTable): ValueTemplate {
  const value = step.entries.get('parallel')?.value;
  if (value?.kind === 'string') {
    const template = lowerValue(scope, value);
    if (template.kind === 'text') return template;
    if (value.value === 'true' || value.value === 'false') return { kind: 'literal', value: value.value === 'true' };
  }
  return { kind: 'literal', value: booleanAt(scope.report, step, 'parallel') ?? true };
}

function lowerWidth(scope: Scope, step: TomlTable): ValueTemplate | null {
  const value = step.entries.get('max_concurrent')?.value;
  if (value?.kind === 'string') {
    const template = lowerValue(scope, value);
    if (template.kind === 'text') return template;
    if (/^[1-9]\d{0,8}$/.test(value.value)) return { kind: 'literal', value: Number(value.value) };
  }
  const width = countAt(scope.report, step, 'max_concurrent', 1);
  return width === null ? null : { kind: 'literal', value: width };
}
