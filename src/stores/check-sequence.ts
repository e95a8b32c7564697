// What every store demands of records before it keeps them: the same property is checked when they are read back.

import { assert } from '../base/assert.ts';
import type { JournalRecord } from '../kernel/decision.ts';

export function checkSequence(lastSeq: number, records: readonly JournalRecord[]): void {
  let expected = lastSeq + 1;
  for (const { seq, at } of records) {
    assert(seq === expected, `record ${seq} was appended where ${expected} was due`);
    assert(Number.isSafeInteger(at), `record ${seq} has the moment ${at}`);
    expected++;
  }
}
