// Fields of test files that other TOML files do not have: lists of tables, and comparisons.

import { parseDuration } from '../base/time.ts';
import type { Report } from '../languages/report.ts';
import { listAt } from '../languages/toml-fields.ts';
import { describeToml, type TomlTable } from '../languages/toml-tree.ts';

/** Tables of a list; anything else in it is reported. */
export function tablesIn(report: Report, table: TomlTable, key: string, hint: string): readonly TomlTable[] {
  return (listAt(report, table, key, hint)?.items ?? []).flatMap((item) => {
    if (item.kind === 'table') return [item];
    report.error('wrong-type', item.place, `"${key}" must be a list of tables, got ${describeToml(item)}`, hint);
    return [];
  });
}

/** `< 40h`, `<= 2.50`, or a bare value: equal. Null if it is neither. */
export function parseComparison(text: string, unit: 'number' | 'duration'): Comparison | null {
  const [, operator = '=', value = ''] = /^\s*(<=|>=|<|>|=)?\s*(.*?)\s*$/s.exec(text) ?? [];
  const amount =
    unit === 'duration'
      ? parseDuration(value)
      : /^\$?\d+(?:\.\d+)?$/.test(value)
        ? Number(value.replace('$', ''))
        : null;
  return amount === null ? null : { operator: operator as Comparison['operator'], amount };
}

export interface Comparison {
  readonly operator: '<' | '<=' | '>' | '>=' | '=';
  readonly amount: number;
}

export function holds({ operator, amount }: Comparison, value: number): boolean {
  switch (operator) {
    case '<':
      return value < amount;
    case '<=':
      return value <= amount;
    case '>':
      return value > amount;
    case '>=':
      return value >= amount;
    case '=':
      return value === amount;
  }
}
