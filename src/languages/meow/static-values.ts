// Values of variables known at compile time: those given to the run, defaults, and those passed to templates. Collected
// by name over all files: a value too many is harmless, since it only widens what a reference might mean.

import type { Json } from '../../base/json.ts';
import { isJsonMap } from '../../base/json.ts';
import type { Hole } from '../template.ts';
import { parseTemplate } from '../template.ts';
import type { TomlTable, TomlValue } from '../toml-tree.ts';
import { tomlToJson } from '../toml-tree.ts';
import type { Section } from './module.ts';
import { stepTables, targetTables } from './step-tables.ts';

/** A value and the file that contains it; null if it was given to the run. */
export interface StaticValue {
  readonly value: Json;
  readonly file: string | null;
}

export interface StaticValues {
  /** Every text that a text with placeholders may become, with the files of its values. */
  readonly textsOf: (
    parts: readonly (string | Hole)[],
  ) => readonly { readonly text: string; readonly file: string | null }[];
}

/** Limit on combinations of a text with several placeholders. */
const TEXTS_MAX = 500;
/** Limit on variables that refer to other variables; more would be a cycle. */
const NAMES_MAX = 200;

export function collectStaticValues(
  modules: Iterable<{ readonly file: string; readonly sections: readonly Section[] }>,
  given: Readonly<Record<string, Json>>,
): StaticValues {
  const values = new Map<string, StaticValue[]>();
  const aliases = new Map<string, (readonly string[])[]>();
  const add = (name: string, value: TomlValue, file: string): void => {
    const alias = value.kind === 'string' ? wholeReference(value.value) : null;
    if (alias !== null) push(aliases, name, alias);
    else if (value.kind !== 'string' || !value.value.includes('{{')) {
      push(values, name, { value: tomlToJson(value), file });
    }
  };
  for (const [name, value] of Object.entries(given)) push(values, name, { value, file: null });
  for (const { file, sections } of modules) {
    for (const section of sections) {
      for (const [name, value] of defaultsOf(section.table)) add(name, value, file);
      for (const step of stepTables(section)) {
        for (const [name, value] of [...passedBy(step), ...itemsOf(step)]) add(name, value, file);
      }
    }
  }
  // A variable is often passed under its own name, so each name is visited once.
  const valuesAt = (path: readonly string[]): readonly StaticValue[] => {
    const found: StaticValue[] = [];
    const seen = new Set<string>();
    const open = [path];
    for (let next = open.pop(); next !== undefined && seen.size < NAMES_MAX; next = open.pop()) {
      const [name = '', ...rest] = next;
      if (seen.has(next.join('.'))) continue;
      seen.add(next.join('.'));
      for (const { value, file } of values.get(name) ?? []) {
        const part = valueAt(value, rest);
        if (part !== undefined) found.push({ value: part, file });
      }
      for (const alias of aliases.get(name) ?? []) open.push([...alias, ...rest]);
    }
    return found.slice(0, TEXTS_MAX);
  };
  return { textsOf: (parts) => combine(parts, valuesAt) };
}

function combine(
  parts: readonly (string | Hole)[],
  valuesAt: (path: readonly string[]) => readonly StaticValue[],
): readonly { readonly text: string; readonly file: string | null }[] {
  let texts: readonly { readonly text: string; readonly file: string | null }[] = [{ text: '', file: null }];
  for (const part of parts) {
    const choices: readonly StaticValue[] =
      typeof part === 'string' ? [{ value: part, file: null }] : valuesAt(part.path);
    texts = texts
      .flatMap(({ text, file }) =>
        choices.flatMap((choice) =>
          typeof choice.value === 'string' || typeof choice.value === 'number'
            ? [{ text: text + String(choice.value), file: file ?? choice.file }]
            : [],
        ),
      )
      .slice(0, TEXTS_MAX);
  }
  return texts;
}

function* defaultsOf(workflow: TomlTable): Generator<readonly [string, TomlValue]> {
  const variables = workflow.entries.get('variables')?.value;
  if (variables?.kind !== 'table') return;
  for (const { key, value } of variables.entries.values()) {
    const fallback = value.kind === 'table' ? value.entries.get('default')?.value : value;
    if (fallback !== undefined) yield [key, fallback];
  }
}

function* passedBy(step: TomlTable): Generator<readonly [string, TomlValue]> {
  for (const table of targetTables(step)) {
    const variables = table.entries.get('variables')?.value;
    if (variables?.kind !== 'table') continue;
    for (const { key, value } of variables.entries.values()) yield [key, value];
  }
}

/** The items of a literal list are the possible values of its item variable. */
function* itemsOf(step: TomlTable): Generator<readonly [string, TomlValue]> {
  const items = step.entries.get('items')?.value;
  const name = step.entries.get('item_var')?.value;
  if (items?.kind !== 'list') return;
  for (const item of items.items) yield [name?.kind === 'string' ? name.value : 'item', item];
}

function wholeReference(text: string): readonly string[] | null {
  const [only, ...more] = parseTemplate(text).parts;
  return only === undefined || typeof only === 'string' || more.length > 0 ? null : only.path;
}

function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let now: Json | undefined = value;
  for (const segment of path) {
    if (Array.isArray(now)) now = (now as readonly Json[])[/^\d+$/.test(segment) ? Number(segment) : -1];
    else now = isJsonMap(now) && Object.hasOwn(now, segment) ? now[segment] : undefined;
    if (now === undefined) return undefined;
  }
  return now;
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
