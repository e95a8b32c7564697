// The sections of the configuration about money and limits: [budget], [prices], [accounts] and [quiet].

import { BUDGET, ACCOUNTS, PRICE, QUIET, QUIET_HOURS } from './config-keys.ts';
import { namesOf } from './keys.ts';
import { checkKeys, type Report } from './report.ts';
import { countAt, durationAt, filledStringAt, stringAt, tableAt, wrongType } from './toml-fields.ts';
import type { TomlTable } from './toml-tree.ts';

export interface MoneyConfig {
  /** Of each file that has one: all of them hold. */
  readonly budgets: readonly BudgetConfig[];
  /** By `ADAPTER/MODEL`, or `ADAPTER/*`. */
  readonly prices: Readonly<Record<string, Price>>;
  /** Time over which turns start after the reset of an account. */
  readonly spreadMs: number;
  readonly quiet: QuietConfig | null;
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
  readonly overrun: number;
}

export type ConfigScope = 'user' | 'project';

/** Dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** Minutes since midnight. If `from` is not before `to`, they go on over midnight. */
export interface QuietConfig {
  readonly from: number;
  readonly to: number;
  /** Null: that of this machine. */
  readonly timezone: string | null;
}

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

const PRICE_HINT = 'For example "codex/gpt-5" = { input = 1.25, cached = 0.125, output = 10.0 }, or "codex/*".';

function readPrices(report: Report, root: TomlTable): Readonly<Record<string, Price>> {
  const table = tableAt(report, root, 'prices', `Write [prices] and below it one line for each. ${PRICE_HINT}`);
  const prices: [string, Price][] = [];
  for (const { key, keyPlace, value } of table?.entries.values() ?? []) {
    if (!/^[^/\s]+\/\S+$/.test(key)) {
      const message = `the price "${key}" names no model`;
      report.error('invalid-name', keyPlace, message, `Write "ADAPTER/MODEL", or "ADAPTER/*" for all models. ${PRICE_HINT}`);
      continue;
    }
    if (value.kind !== 'table') {
      wrongType(report, value, `"${key}" must be a table`, PRICE_HINT);
      continue;
    }
    checkKeys(report, value, namesOf(PRICE.keys), `the price "${key}"`, 'warning');
    const [input, output] = ['input', 'output'].map((name) => {
      if (!value.entries.has(name)) report.error('missing-key', value.place, `the price "${key}" has no ${name}`, PRICE_HINT);
      return amountAt(report, value, name);
    });
    if (typeof input !== 'number' || typeof output !== 'number') continue;
    prices.push([key, { input, output, cached: amountAt(report, value, 'cached') ?? input }]);
  }
  return Object.fromEntries(prices);
}

function readSpread(report: Report, root: TomlTable): number | null {
  const table = tableAt(report, root, 'accounts', 'Write [accounts] and below it spread = "60s".');
  if (table === null) return null;
  checkKeys(report, table, namesOf(ACCOUNTS.keys), '[accounts]', 'warning');
  return durationAt(report, table, 'spread');
}

function readQuiet(report: Report, root: TomlTable): QuietConfig | null {
  const table = tableAt(report, root, 'quiet', 'Write [quiet] and below it hours = "08:00-18:00".');
  if (table === null) return null;
  checkKeys(report, table, namesOf(QUIET.keys), '[quiet]', 'warning');
  const timezone = readTimeZone(report, table);
  const hours = stringAt(report, table, 'hours', 'For example hours = "08:00-18:00".');
  if (hours === null) {
    if (!table.entries.has('hours'))
      report.error('missing-key', table.place, '[quiet] has no hours', 'For example hours = "08:00-18:00".');
    return null;
  }
  const [, ...parts] = new RegExp(QUIET_HOURS).exec(hours.value) ?? [];
  const [fromHour, fromMinute, toHour, toMinute] = parts.map(Number);
  if (fromHour !== undefined && fromMinute !== undefined && toHour !== undefined && toMinute !== undefined) {
    const [from, to] = [fromHour * 60 + fromMinute, toHour * 60 + toMinute];
    if (from < DAY_MINUTES && to <= DAY_MINUTES && from !== to) return { from, to, timezone };
  }
  const message = `"hours" must be two different times of the day, got ${JSON.stringify(hours.value)}`;
  const hint = 'For example "08:00-18:00", "22:00-06:00" over midnight, or "00:00-24:00" for always.';
  return report.error('invalid-value', hours.place, message, hint);
}

const DAY_MINUTES = 24 * 60;

function readTimeZone(report: Report, table: TomlTable): string | null {
  const hint = 'For example timezone = "Europe/Berlin"; leave it out for that of this machine.';
  const name = filledStringAt(report, table, 'timezone', hint);
  if (name === null || isTimeZone(name)) return name;
  const place = table.entries.get('timezone')?.value.place ?? table.place;
  return report.error('invalid-value', place, `there is no time zone ${JSON.stringify(name)}`, hint);
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return false;
  }
}
