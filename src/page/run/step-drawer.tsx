// The chosen step, beside the view of its run.

import { loadLater } from '../load-later.tsx';
import { line } from '../shown-text.ts';

const StepDetails = loadLater('part', async () => (await import('./step-details.tsx')).StepDetails);

export function StepDrawer({ id }: { readonly id: string }) {
  return (
    <aside class="drawer" aria-label={line(id)} data-step={id}>
      <StepDetails id={id} />
    </aside>
  );
}
