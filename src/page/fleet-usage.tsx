// What all runs have cost today, and the budgets of active runs.

import { hasEnded } from '../view/fleet.ts';
import type { UsageDocument } from '../web/protocol.ts';
import { useDocument } from './document-store.ts';
import { fleet } from './fleet-store.ts';
import { amountText, Meter, NOTHING_SPENT, sum } from './money.tsx';
import { dollars, line } from './shown-text.ts';
import { dayOf } from './usage-sums.ts';
import { now } from './clock.ts';

/** Budgets that are closest to their end. */
const BUDGETS_MAX = 4;

export function FleetUsage() {
  const runs = fleet.value?.runs ?? [];
  const spent = runs.reduce((all, { cost }) => all + (cost?.tokens ?? 0) + (cost?.usd ?? 0), 0);
  const usage = useDocument<UsageDocument>('/data/usage', spent);
  const today = dayOf(now.peek());
  const rows = usage.kind === 'loaded' ? usage.document.rows.filter(({ day }) => day === today) : [];
  const total = rows.reduce(sum, NOTHING_SPENT);
  const budgets = runs
    .filter(({ status }) => !hasEnded(status))
    .flatMap(({ id, project, cost, budget }) => {
      const limit = budget?.usd ?? null;
      return limit === null ? [] : [{ id, project, usd: cost?.usd ?? 0, limit }];
    })
    .toSorted((a, b) => b.usd / b.limit - a.usd / a.limit);
  return (
    <section aria-label="Usage">
      <div class="sec">
        <h2>Usage</h2>
        <div class="side">
          <a href="/usage">by day ›</a>
        </div>
      </div>
      <div class="card usage">
        <div>
          <div class="l">
            <span>Today, all runs</span>
            <span class="num">{amountText(total)}</span>
          </div>
          {total.unpriced > 0 && (
            <div class="faint note">
              {total.unpriced} {total.unpriced === 1 ? 'turn' : 'turns'} told no price: the sum is a lower bound
            </div>
          )}
        </div>
        {budgets.slice(0, BUDGETS_MAX).map(({ id, project, usd, limit }) => (
          <div key={`${project}/${id}`}>
            <div class="l">
              <span>{line(id, 60)}</span>
              <span class="num">
                {dollars(usd)} of {dollars(limit)}
              </span>
            </div>
            <Meter share={limit === 0 ? 1 : usd / limit} />
          </div>
        ))}
      </div>
    </section>
  );
}
