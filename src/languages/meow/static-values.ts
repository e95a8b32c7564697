// Values of variables known at compile time: those given to the run, defaults, and those passed to templates. Collected
// by name over all files: a value too many is harmless, since it only widens what a reference might mean.

import { isJsonMap, type Json, type JsonMap } from '../../base/json.ts';
import { type Template, wholeReference } from '../template.ts';
import { entriesOf, valueOf } from '../toml-fields.ts';
import { type TomlTable, tomlToJson, type TomlValue } from '../toml-tree.ts';
import type { Module } from './modules.ts';
import { BRANCH_KEYS } from './target.ts';
import type { Section } from './workflow.ts';

/** A value and the file that contains it; null if it was given to the run. */
interface StaticValue<V = Json> {
  readonly value: V;
  readonly file: string | null;
}

/** Every text that a text with placeholders may become, with the files of its values. */
export type PossibleTexts = (parts: Template['parts']) => readonly StaticValue<string>[];

/** Limit on combinations of a text with several placeholders. */
const TEXTS_MAX = 500;
/** Limit on variables that refer to other variables; more would be a cycle. */
const NAMES_MAX = 200;

export function collectStaticValues(modules: Iterable<Module>, given: JsonMap): PossibleTexts {
  const values = new Map<string, StaticValue[]>();
  const aliases = new Map<string, (readonly string[])[]>();
  for (const [name, value] of Object.entries(given)) push(values, name, { value, file: null });
  for (const { file, sections } of modules) {
    for (const [name, value] of sections.flatMap((section) => [...namedValues(section)])) {
      const alias = value.kind === 'string' ? wholeReference(value.value) : null;
      if (alias !== null) push(aliases, name, alias.path);
      else if (value.kind !== 'string' || !value.value.includes('{{')) {
        push(values, name, { value: tomlToJson(value), file });
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
  return (parts) => {
    let texts: readonly StaticValue<string>[] = [{ value: '', file: null }];
    for (const part of parts) {
      const found = typeof part === 'string' ? [{ value: part, file: null }] : valuesAt(part.path);
      const choices = found.flatMap(({ value, file }) =>
        typeof value === 'string' || typeof value === 'number' ? [{ value: String(value), file }] : [],
      );
      texts = texts
        .flatMap((text) => choices.map(({ value, file }) => ({ value: text.value + value, file: text.file ?? file })))
        .slice(0, TEXTS_MAX);
    }
    return texts;
  };
}

/** Defaults, passed variables, and the items of literal lists. */
function* namedValues(section: Section): Generator<readonly [string, TomlValue]> {
  for (const { key, value } of entriesOf(section.table, 'variables')) {
    const fallback = value.kind === 'table' ? value.entries.get('default')?.value : value;
    if (fallback !== undefined) yield [key, fallback];
  }
  for (const step of stepTables(section)) {
    for (const table of targetTables(step)) {
      for (const { key, value } of entriesOf(table, 'variables')) yield [key, value];
    }
    const itemName = valueOf(step, 'item_var', 'string')?.value ?? 'item';
    for (const item of valueOf(step, 'items', 'list')?.items ?? []) yield [itemName, item];
  }
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

// The steps of a workflow as raw tables, including inline steps. For a first look at a file: checks and reports
// nothing.

export function stepTables({ table }: Section): readonly TomlTable[] {
  const found: TomlTable[] = [];
  const open = [valueOf(table, 'steps', 'list')];
  for (let list = open.pop(); list !== undefined; list = open.pop()) {
    for (const step of list?.items ?? []) {
      if (step.kind !== 'table') continue;
      found.push(step);
      open.push(...targetTables(step).map((table) => valueOf(table, 'inline', 'list')));
    }
  }
  return found;
}

/** Tables of a step that may contain `template` and `variables`: its own, and those below `on_…`. */
export function targetTables(step: TomlTable): readonly TomlTable[] {
  return [step, ...[...BRANCH_KEYS, 'on_exhausted'].flatMap((key) => valueOf(step, key, 'table') ?? [])];
}
