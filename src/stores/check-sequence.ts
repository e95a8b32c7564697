// Checks that records continue a sequence. Every store does so before an append, and again when it reads them.

import { assert } from '../base/assert.ts';
import type { JournalRecord } from '../kernel/decision.ts';

export function checkSequence(lastSeq: number, records: readonly JournalRecord[]): void {
  let expected = lastSeq + 1;
  for (const { seq, at } of records) {
    assert(seq === expected, `record ${seq} was appended instead of ${expected}`);
    assert(Number.isSafeInteger(at), `record ${seq} has the time ${at}`);
    expected++;
  }
}
