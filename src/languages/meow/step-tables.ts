// The steps of a workflow as bare tables, those inline within others included. For looking around in a file before
// anything of it is read: nothing is checked, and nothing reported.

import type { TomlList, TomlTable } from '../toml-tree.ts';
import type { Section } from './module.ts';

const WAYS = ['on_true', 'on_false', 'on_timeout'];

export function stepTables({ table }: Section): readonly TomlTable[] {
  const found: TomlTable[] = [];
  const open: TomlList[] = [];
  const add = (from: TomlTable, key: string): void => {
    const value = from.entries.get(key)?.value;
    if (value?.kind === 'list') open.push(value);
  };
  add(table, 'steps');
  for (let list = open.pop(); list !== undefined; list = open.pop()) {
    for (const step of list.items) {
      if (step.kind !== 'table') continue;
      found.push(step);
      for (const way of waysOf(step)) add(way, 'inline');
    }
  }
  return found;
}

/** The tables of a step that can hold `template` and `variables`: its own, and those below `on_…`. */
export function targetTables(step: TomlTable): readonly TomlTable[] {
  return [step, ...waysOf(step)];
}

function waysOf(step: TomlTable): readonly TomlTable[] {
  return WAYS.flatMap((key) => {
    const value = step.entries.get(key)?.value;
    return value?.kind === 'table' ? [value] : [];
  });
}
