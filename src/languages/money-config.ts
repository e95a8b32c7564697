// The sections of the configuration about money: [budget].

import { BUDGET } from './config-keys.ts';
import { namesOf } from './keys.ts';
import { checkKeys, type Report } from './report.ts';
import { countAt, tableAt, wrongType } from './toml-fields.ts';
import type { TomlTable } from './toml-tree.ts';

export interface MoneyConfig {
  /** Of each file that has one: all of them hold. */
  readonly budgets: readonly BudgetConfig[];
}

/** Dollars and tokens; null is unlimited. */
export interface BudgetConfig {
  /** Whose runs count: all of the user, or those of the project. */
  readonly scope: ConfigScope;
  readonly runUsd: number | null;
  readonly dayUsd: number | null;
  readonly dayTokens: number | null;
  readonly agentUsd: number | null;
  readonly reserveUsd: number;
}

export type ConfigScope = 'user' | 'project';

export const DEFAULT_MONEY: MoneyConfig = { budgets: [] };

const RESERVE_USD = 0.5;

export function readMoneyConfig(report: Report, root: TomlTable, base: MoneyConfig, scope: ConfigScope): MoneyConfig {
  const budget = readBudget(report, root, scope);
  return budget === null ? base : { budgets: [...base.budgets, budget] };
}

function readBudget(report: Report, root: TomlTable, scope: ConfigScope): BudgetConfig | null {
  const table = tableAt(report, root, 'budget', 'Write [budget] and below it day_usd = 20.0.');
  if (table === null) return null;
  checkKeys(report, table, namesOf(BUDGET.keys), '[budget]', 'warning');
  return {
    scope,
    runUsd: amountAt(report, table, 'run_usd', true),
    dayUsd: amountAt(report, table, 'day_usd', true),
    dayTokens: countAt(report, table, 'day_tokens', 1),
    agentUsd: amountAt(report, table, 'agent_usd', true),
    reserveUsd: amountAt(report, table, 'reserve_usd') ?? RESERVE_USD,
  };
}

/** `above`: it must be more than 0. */
function amountAt(report: Report, table: TomlTable, key: string, above = false): number | null {
  const value = table.entries.get(key)?.value;
  if (value === undefined) return null;
  const isNumber = value.kind === 'integer' || value.kind === 'float';
  if (!isNumber)
    return wrongType(report, value, `"${key}" must be a number`, `For example ${key} = 2.5, without quotes.`);
  if (Number.isFinite(value.value) && (above ? value.value > 0 : value.value >= 0)) return value.value;
  const message = `"${key}" must be ${above ? 'above 0' : '0 or more'}, got ${value.value}`;
  return report.error('invalid-value', value.place, message, `For example ${key} = 2.5; leave it out for no limit.`);
}
