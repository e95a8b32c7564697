import { describe, expect, test } from 'vitest';
import { spentIn, sumOf } from './spending.ts';

const UNKNOWN = { usd: null, tokens: null };
const told = { usd: 3, tokens: 300 };

describe('what a turn has cost', () => {
  test('is what is told of the turn', () => {
    expect(spentIn({ ...told, scope: 'turn' }, { kind: 'resume', before: null })).toEqual(told);
  });

  test('is what its session has cost more than before', () => {
    const plan = { kind: 'resume', before: { usd: 1, tokens: 100 } } as const;
    expect(spentIn({ ...told, scope: 'session' }, plan)).toEqual({ usd: 2, tokens: 200 });
    expect(spentIn({ usd: 0.5, tokens: null, scope: 'session' }, plan)).toEqual({ usd: 0, tokens: null });
  });

  test('is not known where it is not known what the session had cost', () => {
    expect(spentIn({ ...told, scope: 'session' }, { kind: 'resume', before: null })).toEqual(UNKNOWN);
    const half = { usd: null, tokens: 100 };
    expect(spentIn({ ...told, scope: 'session' }, { kind: 'fork', before: half })).toEqual({ usd: null, tokens: 200 });
  });

  test('is known of the first turn, whatever is counted', () => {
    const scope = 'untold';
    expect(spentIn({ ...told, scope }, { kind: 'fresh', before: { usd: 0, tokens: 0 } })).toEqual(told);
    expect(spentIn({ ...told, scope }, { kind: 'resume', before: { usd: 1, tokens: 1 } })).toEqual(UNKNOWN);
  });

  test('is not known where nothing is told', () => {
    expect(spentIn(null, { kind: 'fresh', before: { usd: 0, tokens: 0 } })).toEqual(UNKNOWN);
  });
});

test('a sum with something unknown in it is unknown', () => {
  expect(sumOf([told, told])).toEqual({ usd: 6, tokens: 600 });
  expect(sumOf([told, { usd: null, tokens: 1 }])).toEqual({ usd: null, tokens: 301 });
  expect(sumOf([])).toBeNull();
});
