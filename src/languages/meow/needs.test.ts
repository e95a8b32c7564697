import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findCycles } from './needs.ts';

interface Edge {
  readonly from: number;
  readonly to: number;
}

function cyclesOf(size: number, edges: readonly Edge[]): readonly (readonly Edge[])[] {
  const nodes = Array.from({ length: size }, (_, index) => index);
  return findCycles(nodes, (node) => edges.filter(({ from }) => from === node));
}

/** Whether a path of at least one edge leads there. */
function leads(edges: readonly Edge[], start: number, end: number): boolean {
  const open = new Set([start]);
  for (const node of open)
    for (const { from, to } of edges) {
      if (from !== node) continue;
      if (to === end) return true;
      open.add(to);
    }
  return false;
}

test('finds exactly one cycle in each strongly connected part', () => {
  const node = fc.nat({ max: 7 });
  fc.assert(
    fc.property(fc.array(fc.record({ from: node, to: node }), { maxLength: 20 }), (edges) => {
      const cycles = cyclesOf(8, edges);
      for (const cycle of cycles)
        for (const [index, { to }] of cycle.entries()) expect(cycle[(index + 1) % cycle.length]?.from).toBe(to);
      const parts = new Set<number>();
      for (let start = 0; start < 8; start++) {
        if (!leads(edges, start, start)) continue;
        const part = [0, 1, 2, 3, 4, 5, 6, 7].filter((end) => leads(edges, start, end) && leads(edges, end, start));
        parts.add(Math.min(...part));
      }
      expect(cycles).toHaveLength(parts.size);
    }),
  );
});

test('looks at each edge once, even if every node leads to every other', () => {
  const nodes = Array.from({ length: 200 }, (_, index) => index);
  let seen = 0;
  function* edgesOf(): Generator<{ readonly to: number }> {
    for (const to of nodes) {
      seen += 1;
      yield { to };
    }
  }
  expect(findCycles(nodes, edgesOf)).toHaveLength(1);
  expect(seen).toBe(200 * 200);
});
