// What waits for a person, as the page shows it: everything that the fleet names, and what was decided here about a run without
// an engine. Nothing has happened to such a gate until the run is resumed, so its card stays and says so.

import { effect, signal } from '@preact/signals';
import type { FleetNeed, FleetView } from '../view/fleet.ts';
import { ownDecision } from './decisions.ts';
import { fleet } from './fleet-store.ts';
import { askingOf } from './need-names.ts';

export const shownNeeds = signal<readonly FleetNeed[]>([]);

/** Call once. */
export function followNeeds(): void {
  effect(() => {
    const { value } = fleet;
    if (value === null) return;
    const named = new Set(value.needs.map(keyOf));
    const kept = shownNeeds.peek().filter((need) => !named.has(keyOf(need)) && isKept(value, need));
    shownNeeds.value = kept.length === 0 ? value.needs : [...value.needs, ...kept];
  });
}

function isKept({ runs }: FleetView, need: FleetNeed): boolean {
  const run = runs.find(({ project, id }) => project === need.project && id === need.run);
  return run?.interrupted === true && ownDecision(askingOf(need))?.kind === 'sent';
}

function keyOf(need: FleetNeed): string {
  return JSON.stringify(askingOf(need));
}
