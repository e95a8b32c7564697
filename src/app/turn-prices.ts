// Prices of turns that report tokens and no dollars, from the configuration.

import { own } from '../base/json.ts';
import type { Usage } from '../ir/output.ts';
import type { Price } from '../languages/money-config.ts';

const MILLION = 1_000_000;

/** Of `ADAPTER/MODEL`, else of `ADAPTER/*`; null if the configuration has neither. */
function priceFor(prices: Readonly<Record<string, Price>>, adapter: string, model: string | null): Price | null {
  const exact = model === null ? undefined : own(prices, `${adapter}/${model}`);
  return exact ?? own(prices, `${adapter}/*`) ?? null;
}

/** Dollars of a turn without a price; null if they cannot be computed. `model`: as its step names it. */
export function computedPrice(
  { usd, parts, model: reported }: Usage,
  prices: Readonly<Record<string, Price>>,
  adapter: string,
  model: string | null,
): number | null {
  if (usd !== null || parts === undefined) return null;
  const price = priceFor(prices, adapter, model ?? reported ?? null);
  if (price === null) return null;
  const { input, cached, output } = parts;
  const total = (input * price.input + cached * price.cached + output * price.output) / MILLION;
  return Math.round(total * 1e9) / 1e9;
}

export function withComputedPrice(
  usage: Usage,
  prices: Readonly<Record<string, Price>>,
  adapter: string,
  model: string | null,
): Usage {
  const computedUsd = computedPrice(usage, prices, adapter, model);
  return computedUsd === null ? usage : { ...usage, computedUsd };
}
