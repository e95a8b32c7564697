// What became of the steps of a run, as a bar. Its parts always have the same order.

import { statusWord, toneOf } from './icons.tsx';
import { numeral } from './shown-text.ts';

/** Order of the parts. Skipped steps are left out: nothing is left to do for them, and nothing was done. */
const PARTS = ['done', 'running', 'waiting', 'failed', 'parked', 'pending'] as const;

export type ShownCounts = Readonly<Partial<Record<(typeof PARTS)[number], number>>>;

export function CountsBar({ counts }: { readonly counts: ShownCounts }) {
  const parts = PARTS.flatMap((status) => {
    const count = counts[status] ?? 0;
    return count === 0 ? [] : [{ status, count, tone: toneOf(status) }];
  });
  const label = parts.map(({ status, count }) => `${numeral(count)} ${statusWord(status)}`).join(', ');
  return (
    <div class="census" role="img" aria-label={label === '' ? 'no steps' : label}>
      {parts.map(({ tone, count }) => (
        <i key={tone} class={tone} style={{ flexGrow: String(count) }} />
      ))}
    </div>
  );
}
