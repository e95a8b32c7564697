// Where a test file or a simulation script names steps of its workflow, for editors. It reads what is readable of a
// damaged text.

import { makeSource, type Place } from '../../base/source.ts';
import { createReport } from '../report.ts';
import { placeWithin, type TomlEntry, type TomlValue } from '../toml-tree.ts';
import { readPartialToml } from '../toml.ts';

/** An id or a pattern: `each.*.build`, `main.3.REVIEW`, `fix#2`. Of an output: `build.tag`. */
export interface NamedStep {
  readonly kind: 'step' | 'gate' | 'output';
  readonly text: string;
  /** Position of a part of the text. */
  readonly placeOf: (from: number, to: number) => Place;
}

export interface TestNames {
  /** Path of the workflow, if the file has one. */
  readonly workflow: string | null;
  readonly steps: readonly NamedStep[];
}

/** Paths below a test, or the defaults; `*` is an item of a list. */
const TEXTS: Readonly<Record<string, NamedStep['kind']>> = {
  'run.*': 'step',
  'on.*.step': 'step',
  'command.*.step': 'step',
  'gate.*.gate': 'gate',
  'event.*.after_step': 'step',
  'engine.*.dies_after': 'step',
  'stop.*.after_step': 'step',
  'expect.error.step': 'step',
  'expect.order.*': 'step',
  'expect.never.*': 'step',
  'expect.prompts.*.step': 'step',
};
/** Tables below a test whose keys are ids. */
const KEYS: Readonly<Record<string, NamedStep['kind']>> = {
  'expect.steps': 'step',
  'expect.outcomes': 'step',
  'expect.visits': 'step',
  'expect.outputs': 'output',
};
/** Below the root; of a simulation script too. */
const ROOT_TEXTS: Readonly<Record<string, NamedStep['kind']>> = {
  'on.*.step': 'step',
  'claim.*.never': 'step',
  'claim.*.always': 'step',
  'claim.*.alone': 'step',
  'claim.*.unless': 'step',
  'claim.*.unless_gate': 'gate',
};
const ROOT_KEYS: Readonly<Record<string, NamedStep['kind']>> = { 'claim.*.at_most.visits': 'step' };

export function stepNamesIn(text: string): TestNames {
  const source = makeSource('', text);
  const root = readPartialToml(createReport(source))?.root;
  const steps: NamedStep[] = [];
  const kindOf = (
    path: readonly string[],
    below: Readonly<Record<string, NamedStep['kind']>>,
    atRoot: Readonly<Record<string, NamedStep['kind']>>,
  ): NamedStep['kind'] | undefined => {
    const inner = path[0] === 'defaults' ? path.slice(1) : path[0] === 'test' ? path.slice(2) : null;
    return (inner === null ? atRoot : below)[(inner ?? path).join('.')];
  };
  const visit = (value: TomlValue, path: readonly string[]): void => {
    if (value.kind === 'list') for (const item of value.items) visit(item, [...path, '*']);
    else if (value.kind === 'table') {
      const keys = kindOf(path, KEYS, ROOT_KEYS);
      for (const entry of value.entries.values()) {
        if (keys !== undefined) steps.push(namedByKey(source.text, entry, keys));
        visit(entry.value, [...path, entry.key]);
      }
    } else if (value.kind === 'string') {
      const kind = kindOf(path, TEXTS, ROOT_TEXTS);
      if (kind === undefined) return;
      // `A < B` names two.
      for (const { 0: named, index } of value.value.matchAll(/[^\s<]+/g))
        steps.push({ kind, text: named, placeOf: (from, to) => placeWithin(value, index + from, index + to) });
    }
  };
  if (root !== undefined) visit(root, []);
  const workflow = root?.entries.get('workflow')?.value;
  return { workflow: workflow?.kind === 'string' ? workflow.value : null, steps };
}

function namedByKey(source: string, { key, keyPlace }: TomlEntry, kind: NamedStep['kind']): NamedStep {
  const start = keyPlace.from + (/["']/.test(source.charAt(keyPlace.from)) ? 1 : 0);
  return { kind, text: key, placeOf: (from, to) => ({ from: start + from, to: start + to }) };
}
