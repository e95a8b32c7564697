// What a step cost, attempt by attempt.

import type { StepState } from '../../kernel/state.ts';
import { CostEntries, costsBy } from '../../view/cost-entries.ts';
import { stepCost } from '../../view/usage.ts';
import { CostTable } from './cost-table.tsx';
import { useRunShown } from './run-shown.ts';
import { useFold } from './use-fold.ts';

export function CostTab({ step }: { readonly step: StepState }) {
  const { records, seq } = useRunShown();
  const costs = useFold(records, () => new CostEntries());
  const parts = partsOf(step);
  const entries = costs.until(seq).filter((entry) => parts.has(entry.step));
  if (entries.length === 0 && stepCost(step) === null) return <p class="empty">No agent has reported a cost of it.</p>;
  return (
    <div class="scroll details">
      <CostTable title="By attempt" sums={costsBy(entries, ({ attempt }) => `attempt ${attempt}`)} link={null} />
      {parts.size > 1 && <CostTable title="By part" sums={costsBy(entries, (entry) => entry.step)} link="step" />}
    </div>
  );
}

/** With the steps that perform it, and those that grew from it. */
function partsOf(step: StepState): ReadonlySet<string> {
  const ids = new Set([step.id]);
  const add = (parent: StepState): void => {
    for (const { steps } of parent.children) {
      for (const child of steps) {
        ids.add(child.id);
        add(child);
      }
    }
  };
  add(step);
  return ids;
}
