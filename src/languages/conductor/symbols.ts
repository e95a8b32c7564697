// Symbols of a Conductor workflow: its steps, and every route, input and list that names one. It reads what is readable
// of a damaged text.

import { makeSource, type Place } from '../../base/source.ts';
import { AGENT_PREFIX } from '../../ir/approvers.ts';
import { createReport } from '../report.ts';
import {
  type Definition,
  lineBefore,
  suggestions,
  type Suggestions,
  type Symbols,
  toItems,
  type Use,
} from '../symbols.ts';
import { namesOf } from '../keys.ts';
import { isScalar, readPartialYaml, type YamlMap, type YamlScalar, type YamlValue } from '../yaml-tree.ts';
import { CONDUCTOR } from './keys.ts';
import { routeNames } from './routes.ts';
import { stepKeys } from './step.ts';
import { type Opcode, OPCODES, STOP } from './syntax.ts';

interface FoundStep {
  readonly definition: Definition;
  readonly map: YamlMap;
  readonly opcode: Opcode | null;
}

/** `agents`: names of adapters. */
export function conductorSymbols(file: string, text: string, agents: readonly string[]): Symbols {
  const report = createReport(makeSource(file, text));
  const { source } = report;
  const root = readPartialYaml(report, { from: 0, to: source.text.length })?.value;
  const steps =
    root?.kind === 'map' ? itemsOf(root, 'steps').flatMap((item) => findStep(file, source.text, item) ?? []) : [];
  const byId = new Map(steps.map((step) => [step.definition.name, step.definition]));
  const uses: Use[] = [];
  const use = (place: Place, name: string): void => {
    const to = byId.get(name);
    if (to !== undefined) uses.push({ file, place, to: [to], spelling: 'name' });
  };
  const useScalar = (value: YamlValue | undefined, prefix = ''): void => {
    if (value === undefined || !isScalar(value) || !value.text.startsWith(prefix)) return;
    const inner = insideOf(source.text, value);
    const [name = ''] = value.text.slice(prefix.length).split('.');
    const from = inner.from + prefix.length;
    use({ from, to: from + name.length }, name);
  };
  if (root?.kind === 'map') useScalar(root.entries.get('entry_step')?.value);
  for (const { map } of steps) {
    const routes = map.entries.get('routes')?.value;
    for (const { value } of routes?.kind === 'map' ? routes.entries.values() : []) {
      useScalar(value);
      if (value.kind === 'map') for (const key of ['to', 'return']) useScalar(value.entries.get(key)?.value);
    }
    for (const key of ['allowed_next_steps', 'inputs']) for (const item of itemsOf(map, key)) useScalar(item);
    for (const item of itemsOf(map, 'approvers')) useScalar(item, AGENT_PREFIX);
  }
  return {
    definitions: steps.map(({ definition }) => definition),
    uses,
    suggest: (_, offset) => suggestAt(source.text, offset, steps, agents),
  };
}

function findStep(file: string, text: string, item: YamlValue): FoundStep | null {
  const id = item.kind === 'map' ? item.entries.get('id')?.value : undefined;
  if (item.kind !== 'map' || id === undefined || !isScalar(id) || id.text === '') return null;
  const written = item.entries.get('opcode')?.value;
  const name = written !== undefined && isScalar(written) ? written.text : '';
  const opcode = OPCODES.find((each) => each === name) ?? null;
  const outcomes = opcode === null ? [] : routeNames(opcode);
  const about = [
    `step \`${id.text}\` (${name || 'no opcode'})`,
    ...(outcomes.length === 0 ? [] : [`Routes: ${outcomes.map((each) => `\`${each}\``).join(', ')}`]),
  ].join('\n\n');
  const place = insideOf(text, id);
  const definition = {
    kind: 'step',
    name: id.text,
    file,
    place,
    extent: item.place,
    about,
    parent: null,
    isFile: false,
  } as const;
  return { definition, map: item, opcode };
}

function suggestAt(
  text: string,
  offset: number,
  steps: readonly FoundStep[],
  agents: readonly string[],
): Suggestions | null {
  const line = lineBefore(text, offset);
  const step = steps.findLast(({ map }) => map.place.from <= offset);
  const targets = [
    ...toItems(
      'step',
      steps.map(({ definition }) => definition.name),
    ),
    ...toItems('value', [STOP], 'end of the run'),
  ];
  const key = /(?:^|[\s{,])([\w-]+):\s+\[?[^\]]*$/.exec(line)?.[1];
  const outcomes = step?.opcode ? routeNames(step.opcode) : [];
  if (key === 'opcode') return suggestions(text, offset, toItems('value', OPCODES, 'opcode'));
  if (key === 'agent') return suggestions(text, offset, toItems('value', agents, 'adapter'));
  if (key === 'entry_step' || key === 'allowed_next_steps' || key === 'to' || key === 'return')
    return suggestions(text, offset, targets);
  if (key !== undefined && outcomes.includes(key)) return suggestions(text, offset, targets);
  const written = text.slice(step?.map.place.from ?? 0, offset);
  if (/allowed_next_steps:\s*(?:\[[^\]]*|(?:\n\s*-\s*[\w-]*)+)$/.test(written))
    return suggestions(text, offset, targets);
  if (
    /routes:\s*(?:\{[^}]*[{,]\s*\w*|\{\s*\w*|(?:\n\s+\w+:.*)*\n\s+\w*)$/.test(written) &&
    indentOf(line) > keyIndent(written, 'routes')
  )
    return suggestions(text, offset, toItems('key', outcomes, 'route'));
  if (!/^\s*(?:-\s+)?[\w-]*$/.test(line)) return null;
  if (/^\w*$/.test(line)) return suggestions(text, offset, toItems('key', namesOf(CONDUCTOR.root.keys)));
  const known = stepKeys(step?.opcode ?? null).filter((each) => step?.map.entries.has(each) !== true);
  return suggestions(text, offset, toItems('key', known));
}

function indentOf(line: string): number {
  return /^\s*/.exec(line)?.[0].length ?? 0;
}

/** Column of a key in block style; in flow style its routes are always deeper. */
function keyIndent(text: string, key: string): number {
  const at = text.lastIndexOf(`${key}:`);
  return /\{\s*\S*$/.test(text.slice(at)) ? -1 : at - text.lastIndexOf('\n', at) - 1;
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
