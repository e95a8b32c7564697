// Symbols of a Conductor workflow: its steps, and every route, input and list that names one; its prompts and the
// workflows that it enters. It reads what is readable of a damaged text.

import { makeSource, type Place } from '../../base/source.ts';
import { AGENT_PREFIX } from '../../ir/approvers.ts';
import type { Path, TextAt } from '../keys.ts';
import { createReport, START } from '../report.ts';
import {
  type Definition,
  lineBefore,
  type NamedPart,
  type Suggestion,
  suggestions,
  type Suggestions,
  type Symbols,
  toItems,
  type Use,
} from '../symbols.ts';
import { explainAt, keyOf, keysAt, valuesAt } from '../written-keys.ts';
import { pathKey, yamlCursorAt, yamlTexts } from '../yaml-cursor.ts';
import { isScalar, NO_KEYS, readPartialYaml, type YamlMap, type YamlScalar, type YamlValue } from '../yaml-tree.ts';
import { RUN_WORDS } from './fields.ts';
import { CONDUCTOR, OPCODE_TABLES, ROUTES } from './keys.ts';
import { isWorkflowPath } from './routes.ts';
import { INPUT_WORDS, OUTPUTS, splitInput } from './step.ts';
import { type Opcode, OPCODES, STOP } from './syntax.ts';

/** What a workflow may name besides its own steps. */
export interface Nameable {
  readonly adapters: readonly string[];
  readonly policies: readonly string[];
  readonly validators: readonly string[];
  /** Path of the file of a prompt, and of another workflow; null if it is not a file. */
  readonly promptFile: (id: string) => string | null;
  readonly workflowFile: (path: string) => string | null;
}

interface FoundStep {
  readonly definition: Definition;
  readonly map: YamlMap;
  readonly opcode: Opcode | null;
}

export function conductorSymbols(file: string, written: string, nameable: Nameable): Symbols {
  const report = createReport(makeSource(file, written));
  const { text } = report.source;
  const value = readPartialYaml(report, { from: 0, to: text.length })?.value;
  const root = value?.kind === 'map' ? value : NO_KEYS;
  const steps = itemsOf(root, 'steps').flatMap((item) => findStep(file, text, item) ?? []);
  const byId = new Map(steps.map((step) => [step.definition.name, step.definition]));
  const definitions = steps.map(({ definition }) => definition);
  return {
    definitions,
    uses: usesIn(file, text, { root, steps, byId }, nameable),
    suggest: (_, offset) => suggestAt(text, offset, steps, nameable),
    keyAt: (_, offset) => explainAt(root, CONDUCTOR.root, offset),
    // A gate has the id of its step.
    namedIn: ({ text: id }) => namedBy(id, byId),
  };
}

/** `fix`, `fix#2`, `fix.result`. */
function namedBy(id: string, byId: ReadonlyMap<string, Definition>): readonly NamedPart[] {
  const [name = ''] = id.split(/[#.]/, 1);
  const to = byId.get(name);
  return to === undefined ? [] : [{ place: { from: 0, to: name.length }, to: [to], spelling: 'name' }];
}

interface Tree {
  readonly root: YamlMap;
  readonly steps: readonly FoundStep[];
  readonly byId: ReadonlyMap<string, Definition>;
}

function usesIn(file: string, text: string, { root, steps, byId }: Tree, nameable: Nameable): readonly Use[] {
  const uses: Use[] = [];
  const useFile = (value: YamlScalar, path: string | null): void => {
    if (path !== null) uses.push({ file, place: insideOf(text, value), to: [wholeFile(path)], spelling: 'other' });
  };
  const useStep = (value: YamlValue | undefined, prefix = ''): void => {
    if (value === undefined || !isScalar(value) || !value.text.startsWith(prefix)) return;
    if (isWorkflowPath(value.text) && prefix === '' && !byId.has(splitInput(value.text)[0] ?? '')) {
      useFile(value, nameable.workflowFile(value.text));
      return;
    }
    const from = insideOf(text, value).from + prefix.length;
    for (const { place, to, spelling } of namedBy(value.text.slice(prefix.length), byId))
      uses.push({ file, place: { from: from + place.from, to: from + place.to }, to, spelling });
  };
  const usePrompt = (map: YamlMap, key: string): void => {
    const value = map.entries.get(key)?.value;
    if (value !== undefined && isScalar(value)) useFile(value, nameable.promptFile(value.text));
  };
  useStep(root.entries.get('entry_step')?.value);
  const defaults = root.entries.get('defaults')?.value;
  if (defaults?.kind === 'map') usePrompt(defaults, 'policy');
  for (const { map } of steps) {
    const routes = map.entries.get('routes')?.value;
    for (const { value } of routes?.kind === 'map' ? routes.entries.values() : []) {
      useStep(value);
      if (value.kind === 'map') for (const key of ['to', 'return']) useStep(value.entries.get(key)?.value);
    }
    for (const key of ['allowed_next_steps', 'inputs']) for (const item of itemsOf(map, key)) useStep(item);
    for (const item of itemsOf(map, 'approvers')) useStep(item, AGENT_PREFIX);
    for (const key of ['prompt', 'policy']) usePrompt(map, key);
  }
  return uses;
}

function findStep(file: string, text: string, item: YamlValue): FoundStep | null {
  const id = item.kind === 'map' ? item.entries.get('id')?.value : undefined;
  if (item.kind !== 'map' || id === undefined || !isScalar(id) || id.text === '') return null;
  const written = item.entries.get('opcode')?.value;
  const name = written !== undefined && isScalar(written) ? written.text : '';
  const opcode = OPCODES.find((each) => each === name) ?? null;
  const definition = {
    kind: 'step',
    name: id.text,
    file,
    place: insideOf(text, id),
    extent: item.place,
    about: aboutStep(id.text, name, opcode, item),
    parent: null,
    isFile: false,
  } as const;
  return { definition, map: item, opcode };
}

function aboutStep(id: string, written: string, opcode: Opcode | null, map: YamlMap): string {
  const title = `step \`${id}\` (${written || 'no opcode'})`;
  if (opcode === null) return title;
  const routes = map.entries.get('routes')?.value;
  const lines = (routes?.kind === 'map' ? [...routes.entries.values()] : []).map(({ key, value }) => {
    const to = value.kind === 'map' ? value.entries.get('to')?.value : value;
    return `- \`${key}\` → ${to !== undefined && isScalar(to) ? `\`${to.text}\`` : '?'}`;
  });
  const outputs = OUTPUTS[opcode].map((each) => `\`${each}\``);
  return [
    title,
    OPCODE_TABLES[opcode].doc,
    ...(lines.length === 0 ? [] : [`Routes:\n\n${lines.join('\n')}`]),
    ...(outputs.length === 0 ? [] : [`Outputs: ${outputs.join(', ')}`]),
  ].join('\n\n');
}

/** It is not renamed from here. */
function wholeFile(path: string): Definition {
  const name = path.replace(/^.*\//, '');
  const common = { kind: 'file', name, file: path, parent: null, isFile: false } as const;
  return { ...common, place: START, extent: START, about: `file \`${name}\`` };
}

function suggestAt(text: string, offset: number, steps: readonly FoundStep[], nameable: Nameable): Suggestions | null {
  const line = lineBefore(text, offset);
  const texts = yamlTexts(text);
  const textAt: TextAt = (path) => texts.get(pathKey(path)) ?? null;
  if (/\{\{\s*[\w.-]*$/.test(line)) {
    const step = steps.findLast(({ map }) => map.place.from <= offset);
    const given = (step === undefined ? [] : itemsOf(step.map, 'inputs')).flatMap((item) =>
      isScalar(item) ? item.text : [],
    );
    const items = [...toItems('variable', given, 'input'), ...toItems('variable', RUN_WORDS, 'built in')];
    return suggestions(text, offset, items, { name: /[\w.-]*$/ });
  }
  const cursor = yamlCursorAt(text, offset);
  if (cursor === null) return null;
  const isWritten = (path: Path): boolean => texts.has(pathKey(path));
  const keys = keysAt(CONDUCTOR.root, cursor, textAt, isWritten);
  const key = keyOf(cursor);
  const input = key === 'inputs' ? (/([\w-]+)\.\w*$/.exec(line)?.[1] ?? null) : null;
  const named = key === null ? [] : namesFor(key, input, cursor.path, steps, nameable);
  // An item of a list may be a table or a name.
  const items = [...keys, ...valuesAt(CONDUCTOR.root, cursor, textAt), ...named];
  return items.length === 0 ? null : suggestions(text, offset, items);
}

/** Names that the value of a key may be. `input`: the step whose output is being written. */
function namesFor(
  key: string,
  input: string | null,
  path: Path,
  steps: readonly FoundStep[],
  { adapters, policies, validators }: Nameable,
): readonly Suggestion[] {
  const ids = toItems(
    'step',
    steps.map(({ definition }) => definition.name),
  );
  const stop = toItems('value', [STOP], 'end of the run');
  switch (key) {
    case 'agent':
      return toItems('value', adapters, 'adapter');
    case 'policy':
      return toItems('value', policies, 'policy');
    case 'run':
      return toItems('value', validators, 'validator');
    case 'entry_step':
      return ids;
    case 'allowed_next_steps':
    case 'to':
    case 'return':
      return [...ids, ...stop];
    case 'inputs': {
      const opcode = steps.find(({ definition }) => definition.name === input)?.opcode ?? null;
      if (input !== null) return opcode === null ? [] : toItems('output', OUTPUTS[opcode]);
      return [...toItems('value', INPUT_WORDS, 'input'), ...ids];
    }
    default: {
      const isRoute =
        path.at(-1) === 'routes' && Object.values(ROUTES).some(({ keys }) => keys.some(({ name }) => name === key));
      return isRoute ? [...ids, ...stop] : [];
    }
  }
}

function itemsOf(map: YamlMap, key: string): readonly YamlValue[] {
  const value = map.entries.get(key)?.value;
  return value?.kind === 'list' ? value.items : [];
}

/** Without quotes. */
function insideOf(text: string, { place }: YamlScalar): Place {
  const quoted = /^["']/.test(text.slice(place.from, place.from + 1));
  return quoted ? { from: place.from + 1, to: place.to - 1 } : place;
}
