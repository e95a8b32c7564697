// What all runs have cost today, and the budgets of active runs.

import { type FleetRun, hasEnded } from '../view/fleet.ts';
import type { SchedulesDocument, UsageDocument } from '../web/protocol.ts';
import { useDocument } from './document-store.ts';
import { fleet } from './fleet-store.ts';
import { amountText, Meter, NOTHING_SPENT, sum } from './money.tsx';
import { NextTime } from './next-time.tsx';
import { dollars, line, moment } from './shown-text.ts';
import { dayOf } from './usage-sums.ts';
import { now } from './clock.ts';

/** Budgets that are closest to their end. */
const BUDGETS_MAX = 4;

export function FleetUsage() {
  const runs = fleet.value?.runs ?? [];
  const spent = runs.reduce((all, { cost }) => all + (cost?.tokens ?? 0) + (cost?.known_usd ?? 0), 0);
  const usage = useDocument<UsageDocument>('/data/usage', spent);
  const today = dayOf(now.peek());
  const rows = usage.kind === 'loaded' ? usage.document.rows.filter(({ day }) => day === today) : [];
  const total = rows.reduce(sum, NOTHING_SPENT);
  const budgets = runs
    .filter(({ status }) => !hasEnded(status))
    .flatMap(({ id, project, cost, budget }) => {
      const limit = budget?.usd ?? null;
      return limit === null
        ? []
        : [{ id, project, usd: cost?.known_usd ?? 0, isLeast: (cost?.unknown_turns ?? 0) > 0, limit }];
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
        <Limits runs={runs} />
        <NextScheduled />
        {budgets.slice(0, BUDGETS_MAX).map(({ id, project, usd, isLeast, limit }) => (
          <div key={`${project}/${id}`}>
            <div class="l">
              <span>{line(id, 60)}</span>
              <span class="num">
                {isLeast && '≥ '}
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

/** Windows of usage that are full: agents do not tell how full the others are. */
function Limits({ runs }: { readonly runs: readonly FleetRun[] }) {
  const full = new Map<string, string | null>();
  for (const { limit } of runs) {
    if (limit === null) continue;
    const name = limit.adapter ?? 'an agent';
    const known = full.get(name) ?? null;
    full.set(name, known === null || (limit.until ?? '') > known ? limit.until : known);
  }
  return (
    <>
      {[...full].map(([adapter, until]) => (
        <div key={adapter}>
          <div class="l">
            <span>{line(adapter, 60)} · usage window</span>
            <span class="num">full{until !== null && ` · resets ${moment(Date.parse(until), now.value)}`}</span>
          </div>
          <Meter share={1} />
        </div>
      ))}
    </>
  );
}

function NextScheduled() {
  const listed = useDocument<SchedulesDocument>('/data/schedules');
  const schedules = listed.kind === 'loaded' ? listed.document.schedules : [];
  const [first] = schedules
    .filter(({ next }) => next !== null)
    .toSorted((a, b) => ((a.next ?? '') < (b.next ?? '') ? -1 : 1));
  if (first === undefined) return null;
  return (
    <div class="l">
      <a href="/schedule">Next on schedule</a>
      <span class="num">
        {line(first.name, 40)} · <NextTime at={first.next} />
      </span>
    </div>
  );
}
