// Compares the heap with a sorted list, under random additions, deletions and duplicates.

import { expect, test } from 'vitest';

import { OrderedSet } from './collections.ts';

test('first() returns the earliest member after any additions and deletions', () => {
  let seed = 7;
  const random = (limit: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % limit;
  };
  const all = Array.from({ length: 60 }, (_, order) => ({ order }));
  const heap = new OrderedSet<{ readonly order: number }>();
  const plain = new Set<{ readonly order: number }>();
  for (let round = 0; round < 5_000; round++) {
    const one = all[random(all.length)] ?? { order: -1 };
    if (random(3) === 0) {
      heap.delete(one);
      plain.delete(one);
    } else {
      heap.add(one);
      plain.add(one);
    }
    if (random(500) === 0) {
      heap.clear();
      plain.clear();
    }
    expect(heap.first()).toBe([...plain].toSorted((a, b) => a.order - b.order)[0]);
    expect(heap.size).toBe(plain.size);
  }
  expect(new Set(heap)).toEqual(plain);
});
