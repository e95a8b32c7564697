// What the run cost: in all, and by step, agent, lane and day.

import { CostEntries, costsBy } from '../../view/cost-entries.ts';
import { numeral, tokens } from '../shown-text.ts';
import { CostTable, priceText } from './cost-table.tsx';
import { useRunShown } from './run-shown.ts';
import { useFold } from './use-fold.ts';

export function CostView() {
  const { state, records, seq } = useRunShown();
  const costs = useFold(records, () => new CostEntries());
  const entries = costs.until(seq);
  if (entries.length === 0) return <p class="empty">No agent of this run has reported a cost.</p>;
  const { cost, allowance } = state;
  const lanes = costsBy(entries, ({ lane }) => lane);
  const days = costsBy(entries, ({ at }) => new Date(at).toLocaleDateString('en-CA'));
  return (
    <div class="scroll details costview">
      <p class="sum">
        <b class="num">{priceText(cost)}</b>
        {allowance.usd !== null && <span> of ${allowance.usd.toFixed(2)}</span>}
        {cost.tokens > 0 && <span class="num"> · {tokens(cost.tokens)} tokens</span>}
        <span class="dim">
          {' '}
          · {numeral(entries.length)} {entries.length === 1 ? 'turn' : 'turns'}
        </span>
        {cost.unpriced > 0 && (
          <span class="dim">
            {' '}
            · {numeral(cost.unpriced)} {cost.unpriced === 1 ? 'turn' : 'turns'} without a price
          </span>
        )}
      </p>
      <CostTable title="By step" sums={costsBy(entries, ({ step }) => step)} link="step" />
      <CostTable title="By agent" sums={costsBy(entries, ({ agent }) => agent ?? '(no named agent)')} link={null} />
      {lanes.length > 1 && <CostTable title="By lane" sums={lanes} link={null} />}
      {days.length > 1 && <CostTable title="By day" sums={days} link={null} />}
    </div>
  );
}
