// Sums of what agents used, by day, run and adapter.

import type { UsageRow } from '../web/protocol.ts';
import { type Amount, NOTHING_SPENT, sum } from './money.tsx';

/** `2026-11-19`, in the time zone of the browser. */
export function dayOf(at: number): string {
  const date = new Date(at);
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The last days up to this one, oldest first. */
export function lastDays(at: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => {
    const date = new Date(at);
    date.setHours(12, 0, 0, 0);
    date.setDate(date.getDate() - (count - 1 - index));
    return dayOf(date.getTime());
  });
}

export interface UsageSum extends Amount {
  readonly turns: number;
  readonly rows: readonly UsageRow[];
}

export function sumOf(rows: readonly UsageRow[]): UsageSum {
  const amount = rows.reduce(sum, NOTHING_SPENT);
  return { ...amount, turns: rows.reduce((all, { turns }) => all + turns, 0), rows };
}

/** In the order in which the keys occur. */
export function sumsBy(rows: readonly UsageRow[], keyOf: (row: UsageRow) => string): ReadonlyMap<string, UsageSum> {
  const groups = new Map<string, UsageRow[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return new Map([...groups].map(([key, group]) => [key, sumOf(group)]));
}
