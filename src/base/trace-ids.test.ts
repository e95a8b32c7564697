import { describe, expect, test } from 'vitest';
import { attemptSpanId, readTraceparent, runSpanId, stepSpanId, traceIdOf, traceparentOf } from './trace-ids.ts';

const RUN = { id: 'wf-1', mark: 'abc' };
const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('ids of traces', () => {
  test('are the same for the same run, and differ between runs with the same id', () => {
    expect(traceIdOf(RUN)).toMatch(/^[0-9a-f]{32}$/);
    expect(traceIdOf({ ...RUN })).toBe(traceIdOf(RUN));
    expect(traceIdOf({ ...RUN, mark: 'abd' })).not.toBe(traceIdOf(RUN));
  });

  test('do not collide among a hundred thousand steps', () => {
    const steps = Array.from({ length: 100_000 }, (_, index) => `each.${index}.step`);
    expect(new Set(steps.map((step) => stepSpanId(RUN, step))).size).toBe(steps.length);
  });

  test('tell steps, attempts and runs apart', () => {
    const ids = [runSpanId(RUN), stepSpanId(RUN, 'a'), attemptSpanId(RUN, 'a', 1), attemptSpanId(RUN, 'a', 2)];
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}$/);
  });

  test('belong to the trace of the caller, if there is one', () => {
    const run = { ...RUN, traceparent: PARENT };
    expect(traceIdOf(run)).toBe('0af7651916cd43dd8448eb211c80319c');
    expect(traceparentOf(run, 'a', 2)).toBe(`00-${traceIdOf(run)}-${attemptSpanId(run, 'a', 2)}-01`);
    expect(readTraceparent(traceparentOf(run, 'a', 2))?.spanId).toBe(attemptSpanId(RUN, 'a', 2));
  });

  test('of a caller count only if they are valid', () => {
    expect(readTraceparent(PARENT)).toEqual({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      spanId: 'b7ad6b7169203331',
    });
    expect(readTraceparent(`01${PARENT.slice(2)}-more`)?.spanId).toBe('b7ad6b7169203331');
    for (const text of [
      '',
      'x',
      `ff${PARENT.slice(2)}`,
      `${PARENT}-more`,
      PARENT.toUpperCase(),
      PARENT.replaceAll(/[1-9a-f]/g, '0'),
    ])
      expect(readTraceparent(text)).toBeNull();
  });
});
