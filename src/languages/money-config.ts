// The sections of the configuration about money and limits: [budget], [prices], [accounts], [quiet].

import { type Hours, zoneProblem } from '../base/time-zone.ts';
import { ACCOUNTS, BUDGET, HOURS, PRICE_KEYS, PRICED, QUIET } from './config-keys.ts';
import { namesOf } from './keys.ts';
import { checkKeys, missing, type Report } from './report.ts';
import { countAt, durationAt, stringAt, tableAt, wrongType } from './toml-fields.ts';
import type { TomlTable } from './toml-tree.ts';

export interface MoneyConfig {
  /** Of each file that has one: all of them hold. */
  readonly budgets: readonly BudgetConfig[];
  /** By `ADAPTER/MODEL` or `ADAPTER/*`. */
  readonly prices: Readonly<Record<string, Price>>;
  /** Time over which turns start that have waited for the reset of a limit. */
  readonly spreadMs: number;
  /** Null: always loud. */
  readonly quiet: Hours | null;
}

/** Dollars for a million tokens. */
export interface Price {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
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
  /** Share of its reservation by which a turn may exceed it, and a budget with it. */
  readonly overrun: number;
}

export type ConfigScope = 'user' | 'project';

export const DEFAULT_MONEY: MoneyConfig = { budgets: [], prices: {}, spreadMs: 60_000, quiet: null };

const RESERVE_USD = 0.5;
const OVERRUN = 0.5;

export function readMoneyConfig(report: Report, root: TomlTable, base: MoneyConfig, scope: ConfigScope): MoneyConfig {
  const budget = readBudget(report, root, scope);
  return {
    budgets: budget === null ? base.budgets : [...base.budgets, budget],
    prices: { ...base.prices, ...readPrices(report, root) },
    spreadMs: readSpread(report, root) ?? base.spreadMs,
    quiet: readQuiet(report, root) ?? base.quiet,
  };
}

const PRICE_HINT =
  'For example "ADAPTER/MODEL" = { input = 5, cached = 0.5, output = 25 }; "ADAPTER/*" is for all its models.';

function readPrices(report: Report, root: TomlTable): Readonly<Record<string, Price>> {
  const table = tableAt(report, root, 'prices', `Write [prices] and below it a line for each model. ${PRICE_HINT}`);
  const prices: [string, Price][] = [];
  for (const { key, keyPlace, value } of table?.entries.values() ?? []) {
    if (!new RegExp(PRICED, 'u').test(key)) {
      report.error('invalid-name', keyPlace, `the price "${key}" names no model`, PRICE_HINT);
    } else if (value.kind !== 'table') {
      wrongType(report, value, `the price of "${key}" must be a table`, PRICE_HINT);
    } else {
      checkKeys(report, value, namesOf(PRICE_KEYS), `the price of "${key}"`, 'warning');
      for (const name of ['input', 'output'])
        if (!value.entries.has(name)) missing(report, value.place, `the price of "${key}"`, name, PRICE_HINT);
      const [input, cached, output] = ['input', 'cached', 'output'].map((name) => amountAt(report, value, name));
      if (typeof input === 'number' && typeof output === 'number')
        prices.push([key, { input, cached: cached ?? input, output }]);
    }
  }
  return Object.fromEntries(prices);
}

function readSpread(report: Report, root: TomlTable): number | null {
  const table = tableAt(report, root, 'accounts', 'Write [accounts] and below it spread = "60s".');
  if (table === null) return null;
  checkKeys(report, table, namesOf(ACCOUNTS.keys), '[accounts]', 'warning');
  return durationAt(report, table, 'spread');
}

const HOURS_HINT = 'For example hours = "08:00-18:00"; "00:00-24:00" for always.';

function readQuiet(report: Report, root: TomlTable): Hours | null {
  const table = tableAt(report, root, 'quiet', `Write [quiet] and below it the hours. ${HOURS_HINT}`);
  if (table === null) return null;
  checkKeys(report, table, namesOf(QUIET.keys), '[quiet]', 'warning');
  const hours = stringAt(report, table, 'hours', HOURS_HINT);
  if (!table.entries.has('hours')) missing(report, table.place, '[quiet]', 'hours', HOURS_HINT);
  const zone = stringAt(report, table, 'timezone', 'For example timezone = "Europe/Berlin".');
  const problem = zone === null ? null : zoneProblem(zone.value);
  if (zone !== null && problem !== null)
    report.error('unknown-timezone', zone.place, problem, 'For example timezone = "Europe/Berlin" or "UTC".');
  if (hours === null) return null;
  if (!new RegExp(HOURS, 'u').test(hours.value)) {
    const message = `"hours" must be two times, got ${JSON.stringify(hours.value)}`;
    return report.error('invalid-value', hours.place, message, HOURS_HINT);
  }
  const [from = 0, to = 0] = hours.value.split('-').map((time) => {
    const [hour = 0, minute = 0] = time.split(':').map(Number);
    return hour * 60 + minute;
  });
  return { from, to, timezone: zone?.value ?? null };
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
    overrun: amountAt(report, table, 'overrun') ?? OVERRUN,
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
