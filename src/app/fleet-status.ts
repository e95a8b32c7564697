// What a fleet is doing: its machines, and where a run is.

import { formatMoment } from '../base/time.ts';
import { type FleetMachine, fleetStore, type Whereabouts } from './fleet-stores.ts';

/** Who drives the run, or what it waits for; null if it has ended. */
export async function whereText(id: string): Promise<string | null> {
  const store = fleetStore();
  const [where, holder] = [await store.whereabouts(id), await store.holder(id)];
  await store.close();
  return where === null ? null : textOf(where, holder?.since ?? null);
}

function textOf({ waits, host, heard, isDriven }: Whereabouts, since: string | null): string | null {
  if (isDriven) return `driven on ${host ?? 'the machine that creates it'}${since === null ? '' : `, since ${since}`}`;
  if (!waits) return null;
  if (host === null) return 'waits for a worker: no machine has it yet; start one: meow worker';
  return `waits for the machine ${host}, which has its files (connected last: ${heard ?? 'never'}); start meow worker there`;
}

export interface FleetStatus {
  readonly at: string;
  readonly machines: readonly FleetMachine[];
  /** Runs that no machine has yet. */
  readonly waiting: number;
}

export async function fleetStatus(): Promise<FleetStatus> {
  const store = fleetStore();
  const { machines, waiting } = await store.machines();
  await store.close();
  return { at: formatMoment(Date.now()), machines, waiting };
}
