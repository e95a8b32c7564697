// Lowers strings with {{…}} to Text of the IR: checks references, and adds quoting for their position in scripts.

import type { Text, ValueTemplate } from '../../ir/text.ts';
import { listed } from '../report.ts';
import { type Hole, parseTemplate, readTemplate, scriptText, verbatimText } from '../template.ts';
import { countAt, readEnvironment, stringAt, tableAt } from '../toml-fields.ts';
import { placeWithin, type TomlString, type TomlTable, tomlToJson, type TomlValue } from '../toml-tree.ts';
import { ARTICLED, checkReference, type Scope, typeOfReference } from './scope.ts';

/** A path, a name, a value: references are inserted unchanged. */
export function lowerText(scope: Scope, string: TomlString): Text {
  return verbatimText(readParts(scope, string));
}

/** A number from 1, or a text that becomes one. Null if the key is absent or wrong. */
export function lowerCountAt(scope: Scope, table: TomlTable, key: string): ValueTemplate | null {
  const value = table.entries.get(key)?.value;
  if (value?.kind === 'string') {
    const template = lowerValue(scope, value);
    if (template.kind === 'text') return template;
    if (/^[1-9]\d{0,8}$/.test(value.value)) return { kind: 'literal', value: Number(value.value) };
  }
  const count = countAt(scope.report, table, key, 1);
  return count === null ? null : { kind: 'literal', value: count };
}

/** Null if the key is absent. */
export function lowerTextAt(scope: Scope, table: TomlTable, key: string): Text | null {
  const string = stringAt(scope.report, table, key);
  return string === null ? null : lowerText(scope, string);
}

/** A passed value: a reference that is the whole text keeps its type. */
export function lowerValue(scope: Scope, value: TomlValue): ValueTemplate {
  switch (value.kind) {
    case 'string': {
      const text = lowerText(scope, value);
      return typeof text === 'string' ? { kind: 'literal', value: text } : { kind: 'text', text };
    }
    case 'list': {
      const items = value.items.map((item) => lowerValue(scope, item));
      return items.every(isLiteral)
        ? { kind: 'literal', value: items.map((item) => item.value) }
        : { kind: 'list', items };
    }
    case 'table': {
      const entries = [...value.entries.values()].map(
        ({ key, value: inner }) => [key, lowerValue(scope, inner)] as const,
      );
      const literals = entries.flatMap(([key, inner]) => (isLiteral(inner) ? [[key, inner.value] as const] : []));
      return literals.length === entries.length
        ? { kind: 'literal', value: Object.fromEntries(literals) }
        : { kind: 'map', entries: Object.fromEntries(entries) };
    }
    default:
      return { kind: 'literal', value: tomlToJson(value) };
  }
}

function isLiteral(template: ValueTemplate): template is Extract<ValueTemplate, { kind: 'literal' }> {
  return template.kind === 'literal';
}

/** Default of a variable. `before`: variables that have a value by then. */
export function lowerDefault(scope: Scope, before: ReadonlySet<string>, string: TomlString): Text {
  const { report, builtins, declared } = scope;
  const later = new Set<string>();
  for (const part of parseTemplate(string.value).parts) {
    if (typeof part === 'string') continue;
    const [name = ''] = part.path;
    if (before.has(name) || !declared.some((variable) => variable.name === name)) continue;
    later.add(name);
    const message = `a default cannot refer to "${name}", which has no value yet`;
    const hint = `A default may use ${listed([...builtins, ...before])}: variables that are declared before it.`;
    report.error('unknown-variable', placeWithin(string, part.from, part.to), message, hint);
  }
  return lowerText({ ...scope, variables: new Set([...before, ...later]) }, string);
}

/** Like `lowerText`, without the first characters. */
export function lowerTail(scope: Scope, string: TomlString, from: number): Text {
  const [first, ...rest] = readParts(scope, string);
  const tail = typeof first === 'string' ? [first.slice(from), ...rest].filter((part) => part !== '') : [];
  return verbatimText(tail);
}

/** A shell script: each value is quoted so that it arrives as data. */
export function lowerScript(scope: Scope, string: TomlString): Text {
  return scriptText(scope.report, string, readParts(scope, string), {
    placed: (hole, layers) => {
      if (layers.some(({ kind }) => kind === 'integer')) checkInteger(scope, string, hole);
    },
    cure: (hole) => environmentHint(scope, hole),
  });
}

/** In shell arithmetic only an integer is valid; a value that can never be one is an error. */
function checkInteger(scope: Scope, string: TomlString, { path, from, to }: Hole): void {
  const type = typeOfReference(scope, path);
  if (type !== 'boolean' && type !== 'json' && type !== 'file_path') return;
  const message = `{{${path.join('.')}}} is ${ARTICLED[type]}, and only an integer can be calculated with`;
  const hint = {
    json: 'Name a part of it that is a number, or give it the type "number".',
    boolean: `Compare it as a text: [ {{${path.join('.')}}} = true ].`,
    file_path: 'Refer to something of the type "number".',
  }[type];
  scope.report.error('output-type', placeWithin(string, from, to), message, hint);
}

function environmentHint({ variables }: Scope, { path }: Hole): string {
  const environmentName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_]/g, '_').toUpperCase();
  const [only] = path;
  if (only !== undefined && path.length === 1 && variables.has(only)) {
    return `The script finds it in its environment: "$MEOW_VAR_${environmentName(only)}".`;
  }
  const name = environmentName(`value_${path.at(-1) ?? ''}`);
  return `Pass it by the environment: env = { ${name} = "{{${path.join('.')}}}" }, and write "$${name}" in the script.`;
}

function readParts(scope: Scope, string: TomlString): readonly (string | Hole)[] {
  const parts = readTemplate(scope.report, string);
  for (const part of parts) {
    if (typeof part !== 'string') checkReference(scope, part.path, placeWithin(string, part.from, part.to));
  }
  return parts;
}

export function lowerEnvironment(scope: Scope, step: TomlTable): Readonly<Record<string, Text>> {
  const table = tableAt(scope.report, step, 'env', 'Write env = { NAME = "value" }.');
  return readEnvironment(scope.report, table, (string) => lowerText(scope, string));
}
