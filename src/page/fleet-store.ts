// The fleet as the server last sent it, and what the tab shows of it: `(3) meow`, and the icon with an orange dot.

import { computed, effect, signal } from '@preact/signals';
import type { FleetView } from '../view/fleet.ts';
import { subscribe } from './connection.ts';

/** Null until the server has sent it. */
export const fleet = signal<FleetView | null>(null);

export const needCount = computed(() => fleet.value?.needs.length ?? 0);

/** Title of the page that is shown; null: only the name of the program. */
export const pageTitle = signal<string | null>(null);

/** Call once. */
export function followFleet(): void {
  subscribe(
    {
      message: () => ({ kind: 'watch-fleet' }),
      receive: (message) => {
        if (message.kind === 'fleet') fleet.value = message.fleet;
      },
    },
    null,
  );
  effect(() => {
    const name = pageTitle.value === null ? 'meow' : `${pageTitle.value} · meow`;
    document.title = needCount.value > 0 ? `(${needCount.value}) ${name}` : name;
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
    const wanted = needCount.value > 0 ? icon?.dataset['needs'] : icon?.dataset['quiet'];
    if (icon !== null && wanted !== undefined && icon.getAttribute('href') !== wanted) icon.href = wanted;
  });
}
