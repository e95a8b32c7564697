// `foreach`: a workflow for each item of a list, concurrently or one after another.

import { coerce } from '../../../ir/output.ts';
import type { Each } from '../../../ir/program.ts';
import type { ValueTemplate } from '../../../ir/text.ts';
import { namesOf } from '../../keys.ts';
import { missing, type Report } from '../../report.ts';
import { wholeReference } from '../../template.ts';
import { booleanAt, checkName, stringAt, valueOf, wrongType } from '../../toml-fields.ts';
import { placeWithin, type TomlTable, type TomlValue } from '../../toml-tree.ts';
import { EXECUTOR_TABLES } from '../keys.ts';
import { ARTICLED, checkNotBuiltin, type Scope, typeOfReference } from '../scope.ts';
import { lowerTarget, readStepTarget } from '../target.ts';
import { lowerCountAt, lowerTextAt, lowerValue } from '../text.ts';
import type { Executor } from './executor.ts';

const ITEM = 'item';
const EXAMPLE = 'For example items = ["a", "b"], or items = "{{plan.outputs.tasks}}".';

export const foreach: Executor = {
  keys: namesOf(EXECUTOR_TABLES.foreach.keys),
  timeout: 'none',
  outputs: () => new Map(),
  targets: (report, step) => readStepTarget(report, step, 'each', variablesOf(step)),
  lower: (scope, { table, targets }) => {
    const { report } = scope;
    const [itemName, indexName] = [readName(report, table, 'item_var'), readName(report, table, 'index_var')];
    if (indexName !== null && indexName === (itemName ?? ITEM)) {
      const place = table.entries.get('index_var')?.value.place ?? table.place;
      report.error('invalid-name', place, '"index_var" and "item_var" are the same name', 'Rename one of the two.');
    }
    const items = lowerItems(scope, table);
    const inside: Scope = { ...scope, variables: new Set([...scope.variables, ...variablesOf(table)]) };
    const rest = {
      itemName: itemName ?? ITEM,
      indexName,
      key: lowerTextAt(inside, table, 'key'),
      parallel: lowerParallel(scope, table),
      width: lowerCountAt(scope, table, 'max_concurrent'),
      join: booleanAt(report, table, 'join') ?? true,
    };
    const target = targets.find(({ kind }) => kind === 'each');
    const lowered = target === undefined ? null : lowerTarget(scope, target);
    if (lowered === null || items === null) return null;
    return { act: { kind: 'each', items, target: lowered, ...rest } };
  },
};

/** Variables of each iteration, as far as readable. */
function variablesOf(step: TomlTable): readonly string[] {
  const index = valueOf(step, 'index_var', 'string');
  return [valueOf(step, 'item_var', 'string')?.value ?? ITEM, ...(index === null ? [] : [index.value])];
}

function readName(report: Report, step: TomlTable, key: string): string | null {
  const name = stringAt(report, step, key);
  if (name === null || !checkName(report, name.place, name.value, 'variable')) return null;
  checkNotBuiltin(report, name.place, name.value);
  return name.value;
}

function lowerItems(scope: Scope, step: TomlTable): Each['items'] | null {
  const { report } = scope;
  const items = step.entries.get('items');
  const file = step.entries.get('items_file');
  if (items !== undefined && file !== undefined) {
    const message = 'the step has both "items" and "items_file"';
    report.error('invalid-value', file.keyPlace, message, 'Keep one of the two.');
  } else if (items === undefined && file === undefined) {
    missing(report, step.place, 'this step', 'items', `Say what it is for each of. ${EXAMPLE}`);
  }
  const path = lowerTextAt(scope, step, 'items_file');
  if (items !== undefined) return lowerList(scope, items.value);
  return path === null ? null : { kind: 'file', path };
}

function lowerList(scope: Scope, value: TomlValue): Each['items'] | null {
  if (value.kind === 'list') return { kind: 'value', value: lowerValue(scope, value) };
  if (value.kind !== 'string') return wrongType(scope.report, value, '"items" must be a list', EXAMPLE);
  const template = lowerValue(scope, value);
  if (template.kind === 'text') {
    // A text may contain a list as JSON.
    const only = wholeReference(value.value);
    const type = only === null ? null : typeOfReference(scope, only.path);
    if (only !== null && type !== null && type !== 'json' && type !== 'any' && type !== 'string') {
      const message = `{{${only.path.join('.')}}} is ${ARTICLED[type]}, and "items" must be a list`;
      const hint = 'Give it the type "json", or refer to something that is a list.';
      scope.report.error('output-type', placeWithin(value, only.from, only.to), message, hint);
    }
    return { kind: 'value', value: template };
  }
  const list = coerce(value.value, 'json');
  if (list.ok && Array.isArray(list.value)) return { kind: 'value', value: { kind: 'literal', value: list.value } };
  return scope.report.error('wrong-type', value.place, '"items" is a string, but not a JSON list', EXAMPLE);
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
