// Runs that components show: those that show the same run share its records.

import { useEffect, useMemo } from 'preact/hooks';
import type { RunName } from '../web/protocol.ts';
import { RunStore } from './run-store.ts';

const open = new Map<string, { readonly store: RunStore; users: number }>();

/** Follows the run for as long as the component is shown. */
export function useRun({ project, run }: RunName): RunStore {
  const opened = useMemo(() => openRun({ project, run }), [project, run]);
  useEffect(() => opened.close, [opened]);
  return opened.store;
}

export function openRun(of: RunName): { readonly store: RunStore; readonly close: () => void } {
  const key = `${of.project}/${of.run}`;
  const entry = open.get(key) ?? { store: new RunStore(of), users: 0 };
  open.set(key, entry);
  entry.users += 1;
  let closed = false;
  const close = (): void => {
    if (closed) return;
    closed = true;
    entry.users -= 1;
    if (entry.users > 0) return;
    open.delete(key);
    entry.store.close();
  };
  return { store: entry.store, close };
}
