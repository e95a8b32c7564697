// A fold of all records of a run, for components that draw its past, which the state does not contain. Each record is noted once.

import { useRef } from 'preact/hooks';
import type { PageRecord } from '../../web/protocol.ts';

export interface RecordFold {
  note(record: PageRecord): void;
}

/** Starts again if the records are those of another journal, or of one that was cut. */
export function useFold<F extends RecordFold>(records: readonly PageRecord[], create: () => F): F {
  const kept = useRef<{ readonly records: readonly PageRecord[]; noted: number; readonly fold: F } | null>(null);
  if (kept.current?.records !== records) kept.current = { records, noted: 0, fold: create() };
  const { current } = kept;
  for (; current.noted < records.length; current.noted++) {
    const record = records[current.noted];
    if (record !== undefined) current.fold.note(record);
  }
  return current.fold;
}
