// Links to the views of a run, and what a view can be limited to.

import { signal } from '@preact/signals';
import { RUN_VIEWS, type RunViewName } from '../../web/protocol.ts';
import { runAddress } from '../addresses.ts';
import { useRunShown } from './run-shown.ts';

/** Whether timeline and graph show only what failed, runs or waits. */
export const onlyActive = signal(false);

export function ViewTabs({ view }: { readonly view: RunViewName }) {
  const { of, selection } = useRunShown();
  return (
    <nav class="tabs" aria-label="Views">
      {RUN_VIEWS.map((name, index) => (
        <a key={name} href={runAddress(of, name, selection)} aria-current={name === view ? 'page' : undefined}>
          {name.slice(0, 1).toUpperCase()}
          {name.slice(1)} <kbd aria-hidden="true">{index + 1}</kbd>
        </a>
      ))}
      {(view === 'timeline' || view === 'graph') && (
        <div class="side">
          <button
            type="button"
            class="chip"
            aria-pressed={onlyActive.value}
            onClick={() => void (onlyActive.value = !onlyActive.value)}
          >
            only running, failed, waiting
          </button>
        </div>
      )}
    </nav>
  );
}
