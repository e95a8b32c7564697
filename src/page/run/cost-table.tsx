// Sums of costs with a bar each. `≥` if the price of a turn is unknown.

import type { Cost } from '../../kernel/decision.ts';
import type { CostSum } from '../../view/cost-entries.ts';
import { runAddress } from '../addresses.ts';
import { dollars, line, numeral, tokens } from '../shown-text.ts';
import { useRunShown } from './run-shown.ts';

const ROWS_MAX = 50;

/** `link`: what the names name, so that they can be links; null for plain text. */
export function CostTable({
  title,
  sums,
  link,
}: {
  readonly title: string;
  readonly sums: readonly CostSum[];
  readonly link: 'step' | 'agent' | null;
}) {
  const { of, selection } = useRunShown();
  const most = sums.reduce((max, { cost }) => Math.max(max, weightOf(cost, sums)), 0);
  return (
    <section class="costs">
      <h3>{title}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">{title.replace('By ', '')}</th>
            <th scope="col" class="r">
              cost
            </th>
            <th scope="col" class="r">
              tokens
            </th>
            <th scope="col" class="r">
              turns
            </th>
          </tr>
        </thead>
        <tbody>
          {sums.slice(0, ROWS_MAX).map(({ name, cost, turns }) => (
            <tr key={name}>
              <td>
                <span class="costbar" style={{ width: `${most === 0 ? 0 : (weightOf(cost, sums) / most) * 100}%` }} />
                {link === null ? (
                  line(name)
                ) : (
                  <a
                    class="m"
                    href={
                      link === 'step'
                        ? runAddress(of, 'cost', { ...selection, step: name })
                        : runAddress(of, 'agents', { ...selection, agent: name })
                    }
                  >
                    {line(name)}
                  </a>
                )}
              </td>
              <td class="r num">{priceText(cost)}</td>
              <td class="r num">{cost.tokens === 0 ? '–' : tokens(cost.tokens)}</td>
              <td class="r num">{numeral(turns)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {sums.length > ROWS_MAX && <p class="dim">and {numeral(sums.length - ROWS_MAX)} more</p>}
    </section>
  );
}

/** By price, or by tokens if nothing has a price. */
function weightOf({ usd, tokens: used }: Cost, sums: readonly CostSum[]): number {
  return sums.some(({ cost }) => cost.usd > 0) ? usd : used;
}

export function priceText({ usd, unpriced }: Cost): string {
  if (unpriced > 0) return usd > 0 ? `≥ ${dollars(usd)}` : 'unknown';
  return dollars(usd);
}
