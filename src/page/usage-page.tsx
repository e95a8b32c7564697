// What agents cost: by day, and by run and agent. `≥` where a price is unknown.

import { useState } from 'preact/hooks';
import type { UsageDocument, UsageRow } from '../web/protocol.ts';
import { runAddress } from './addresses.ts';
import { now } from './clock.ts';
import { useDocument } from './document-store.ts';
import { isFound } from './find.ts';
import { fleet, pageTitle } from './fleet-store.ts';
import { MessagePage } from './message-page.tsx';
import { amountText, Meter } from './money.tsx';
import { line, numeral, tokens } from './shown-text.ts';
import { UsageChart } from './usage-chart.tsx';
import { dayOf, lastDays, sumOf, sumsBy, type UsageSum } from './usage-sums.ts';

const DAYS = 7;
const ROWS_MAX = 300;

const GROUPINGS = {
  run: { name: 'Run', keyOf: ({ project, run }: UsageRow) => `${project}/${run}` },
  agent: { name: 'Agent', keyOf: ({ agent, adapter }: UsageRow) => agent ?? `turns of ${adapter ?? 'unknown agents'}` },
  project: { name: 'Project', keyOf: ({ project }: UsageRow) => project },
  day: { name: 'Day', keyOf: ({ day }: UsageRow) => day },
} as const;
type Grouping = keyof typeof GROUPINGS;

export function UsagePage() {
  pageTitle.value = 'Usage';
  const spent = (fleet.value?.runs ?? []).reduce((all, { cost }) => all + (cost?.tokens ?? 0) + (cost?.usd ?? 0), 0);
  const usage = useDocument<UsageDocument>('/data/usage', spent);
  const [day, setDay] = useState<string | null>(null);
  const [grouping, setGrouping] = useState<Grouping>('run');
  if (usage.kind === 'loading') return <main class="cmp usage-page" aria-busy="true" />;
  if (usage.kind === 'refused') {
    return (
      <MessagePage title="Usage cannot be shown">
        <p>{line(usage.refusal.message)}</p>
      </MessagePage>
    );
  }
  const { rows, unreadable } = usage.document;
  const days = lastDays(now.peek(), DAYS);
  const today = days.at(-1) ?? dayOf(now.peek());
  const recent = rows.filter((row) => days.includes(row.day));
  const chosen = rows
    .filter((row) => day === null || row.day === day)
    .filter(({ project, run, agent, adapter }) => isFound([project, run, agent, adapter]));
  return (
    <main class="cmp usage-page">
      <section class="card chart" aria-label="By day">
        <div class="head">
          <h1 class="num">{amountText(sumOf(rows.filter((row) => row.day === today)))}</h1>
          <span class="dim">today · {amountText(sumOf(recent))} in seven days</span>
        </div>
        <UsageChart days={days} rows={recent} chosen={day} choose={setDay} />
      </section>
      {unreadable.length > 0 && (
        <p class="dim">
          {unreadable.length} {unreadable.length === 1 ? 'run' : 'runs'} could not be read, and{' '}
          {unreadable.length === 1 ? 'is' : 'are'} left out: {line(unreadable.map(({ run }) => run).join(', '))}
        </p>
      )}
      <div class="choices">
        {Object.entries(GROUPINGS).map(([name, { name: title }]) => (
          <button
            key={name}
            type="button"
            class="b s"
            aria-pressed={name === grouping}
            onClick={() => setGrouping(name as Grouping)}
          >
            By {title.toLowerCase()}
          </button>
        ))}
        {day !== null && (
          <button type="button" class="b s" onClick={() => setDay(null)}>
            Only {day} ✕
          </button>
        )}
      </div>
      <SumTable rows={chosen} grouping={grouping} />
    </main>
  );
}

function SumTable({ rows, grouping }: { readonly rows: readonly UsageRow[]; readonly grouping: Grouping }) {
  const { name, keyOf } = GROUPINGS[grouping];
  const sums = [...sumsBy(rows, keyOf)].toSorted(([keyA, a], [keyB, b]) =>
    grouping === 'day' ? (keyA < keyB ? 1 : -1) : b.usd - a.usd || b.tokens - a.tokens,
  );
  const total = sumOf(rows);
  if (sums.length === 0) return <p class="card quiet">No agent has reported what it used.</p>;
  return (
    <div class="card">
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {[name, 'Agents', 'Spent', 'Tokens', 'Turns', 'Share'].map((title) => (
              <th key={title} role="columnheader" scope="col" class={RIGHT.has(title) ? 'r' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {sums.slice(0, ROWS_MAX).map(([key, sum]) => (
            <SumRow key={key} title={key} sum={sum} total={total} grouping={grouping} />
          ))}
        </tbody>
      </table>
      {sums.length > ROWS_MAX && <p class="quiet dim">{numeral(sums.length - ROWS_MAX)} more</p>}
    </div>
  );
}

const RIGHT: ReadonlySet<string> = new Set(['Spent', 'Tokens', 'Turns']);
const AGENTS_NAMED = 4;

interface SumRowProps {
  readonly title: string;
  readonly sum: UsageSum;
  readonly total: UsageSum;
  readonly grouping: Grouping;
}

function SumRow({ title, sum, total, grouping }: SumRowProps) {
  const [first] = sum.rows;
  const agents = [...new Set(sum.rows.map(({ agent, adapter }) => agent ?? adapter ?? 'unknown'))];
  const more = agents.length > AGENTS_NAMED ? ` and ${agents.length - AGENTS_NAMED} more` : '';
  const whole = total.usd > 0 ? total.usd : total.tokens;
  const part = total.usd > 0 ? sum.usd : sum.tokens;
  return (
    <tr role="row" data-item tabIndex={-1} aria-label={`${line(title)}, ${amountText(sum)}`}>
      <td role="cell" class="c-run">
        {grouping === 'run' && first !== undefined ? (
          <>
            <span class="chip">{line(first.project, 40)}</span>{' '}
            <a href={runAddress({ project: first.project, run: first.run }, 'cost')}>
              <b>{line(first.run)}</b>
            </a>
          </>
        ) : (
          <b>{line(title)}</b>
        )}
      </td>
      <td role="cell" class="dim c-now">
        {line(agents.slice(0, AGENTS_NAMED).join(', '))}
        {more}
      </td>
      <td role="cell" class="r num c-since">
        {amountText(sum)}
      </td>
      <td role="cell" class="r num dim c-proj">
        {sum.unpriced > 0 && sum.tokens > 0 && '≥ '}
        {tokens(sum.tokens)}
      </td>
      <td role="cell" class="r num dim c-proj">
        {numeral(sum.turns)}
        {sum.unpriced > 0 && `, ${numeral(sum.unpriced)} without a price`}
      </td>
      <td role="cell" class="c-bar">
        <Meter share={whole === 0 ? 0 : part / whole} />
      </td>
    </tr>
  );
}
