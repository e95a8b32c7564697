// The steps of a workflow as raw tables, including inline steps. For a first look at a file: checks and reports
// nothing.

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

/** Tables of a step that may contain `template` and `variables`: its own, and those below `on_…`. */
export function targetTables(step: TomlTable): readonly TomlTable[] {
  return [step, ...waysOf(step)];
}

function waysOf(step: TomlTable): readonly TomlTable[] {
  return WAYS.flatMap((key) => {
    const value = step.entries.get(key)?.value;
    return value?.kind === 'table' ? [value] : [];
  });
}
