// Every executor that MEOW knows, by name.

import type { Executor } from './executor.ts';
import { shell } from './shell.ts';

const AVAILABLE: readonly Executor[] = [shell];

/** Part of the language, and not yet of this version. */
const PLANNED: readonly { readonly name: string; readonly canGrow: boolean }[] = [
  { name: 'agent', canGrow: false },
  { name: 'branch', canGrow: true },
  { name: 'expand', canGrow: true },
  { name: 'foreach', canGrow: true },
  { name: 'kill', canGrow: false },
  { name: 'spawn', canGrow: false },
];

export const EXECUTOR_NAMES: readonly string[] = [...AVAILABLE, ...PLANNED].map(({ name }) => name).toSorted();

export function findExecutor(name: string): Executor | null {
  return AVAILABLE.find((executor) => executor.name === name) ?? null;
}

export function findPlanned(name: string): { readonly canGrow: boolean } | null {
  return PLANNED.find((executor) => executor.name === name) ?? null;
}
