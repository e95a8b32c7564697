// The store that a command works on: that of its project, or with --fleet that of the fleet.

import { findProject } from './project.ts';
import { type Store, storeOf } from './runs.ts';

export interface StoreChoice {
  readonly fleet?: true | undefined;
}

/** Loads what only fleets need with `--fleet` alone. */
export async function chosenStore({ fleet }: StoreChoice): Promise<Store> {
  if (fleet === undefined) return storeOf(findProject());
  const { fleetStore } = await import('./fleet-stores.ts');
  return fleetStore();
}
