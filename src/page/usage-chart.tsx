// What each of the last days cost, as bars with a part for each adapter. A bar is a button that chooses its day.

import type { UsageRow } from '../web/protocol.ts';
import { amountText } from './money.tsx';
import { line } from './shown-text.ts';
import { sumOf, sumsBy } from './usage-sums.ts';

/** Shades of the parts; the last one stands for all others. */
const SHADES = 4;
const OTHERS = 'others';

interface UsageChartProps {
  readonly days: readonly string[];
  readonly rows: readonly UsageRow[];
  readonly chosen: string | null;
  readonly choose: (day: string | null) => void;
}

export function UsageChart({ days, rows, chosen, choose }: UsageChartProps) {
  const byAdapter = [...sumsBy(rows, adapterOf)].toSorted(([, a], [, b]) => b.usd - a.usd);
  const named = byAdapter.slice(0, byAdapter.length > SHADES ? SHADES - 1 : SHADES).map(([name]) => name);
  const shadeOf = (row: UsageRow): string => (named.includes(adapterOf(row)) ? adapterOf(row) : OTHERS);
  const shades = [...named, ...(byAdapter.length > named.length ? [OTHERS] : [])];
  const byDay = sumsBy(rows, ({ day }) => day);
  const highest = Math.max(0.01, ...[...byDay.values()].map(({ usd }) => usd));
  return (
    <>
      <ol class="bars">
        {days.map((day, index) => {
          const sum = byDay.get(day) ?? sumOf([]);
          const parts = sumsBy(sum.rows, shadeOf);
          const name = index === days.length - 1 ? 'Today' : weekday(day);
          return (
            <li key={day}>
              <button
                type="button"
                aria-pressed={chosen === day}
                aria-label={`${name}, ${day}: ${amountText(sum)}`}
                onClick={() => choose(chosen === day ? null : day)}
              >
                <b class="num">{sum.usd > 0 ? amountText(sum) : ''}</b>
                <span class="column">
                  {shades.map((shade, at) => {
                    const height = `${(100 * (parts.get(shade)?.usd ?? 0)) / highest}%`;
                    return <i key={shade} class={`shade${at}`} style={{ height }} />;
                  })}
                </span>
                <span class="dim">{name}</span>
              </button>
            </li>
          );
        })}
      </ol>
      <div class="dim legend">
        {shades.map((shade, at) => (
          <span key={shade}>
            <i class={`shade${at}`} /> {line(shade, 40)}
          </span>
        ))}
      </div>
    </>
  );
}

function adapterOf({ adapter }: UsageRow): string {
  return adapter ?? 'unknown agents';
}

function weekday(day: string): string {
  return new Date(`${day}T12:00:00`).toLocaleDateString('en-GB', { weekday: 'short' });
}
