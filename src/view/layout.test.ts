import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Box, type EdgeSize, layOut, type NodeSize, type Point, type Route } from './layout.ts';

const graphs = fc
  .tuple(
    fc.array(fc.record({ width: fc.integer({ min: 20, max: 300 }), height: fc.integer({ min: 20, max: 60 }) }), {
      minLength: 1,
      maxLength: 40,
    }),
    fc.array(
      fc.record({
        from: fc.nat(39),
        to: fc.nat(39),
        kind: fc.constantFrom('need', 'grows'),
        label: fc.option(fc.record({ width: fc.integer({ min: 10, max: 200 }), height: fc.constant(12) })),
      }),
      { maxLength: 80 },
    ),
  )
  .map(([sizes, lines]) => {
    const nodes: NodeSize[] = sizes.map((size, index) => ({ id: `n${index}`, ...size }));
    const edges: EdgeSize[] = lines.map(({ from, to, ...line }) => ({
      from: `n${from % nodes.length}`,
      to: `n${to % nodes.length}`,
      ...line,
    }));
    return { nodes, edges };
  });

/** Points of a route, close together. */
function alongRoute({ points, isSelfLoop }: Route<EdgeSize>): readonly Point[] {
  if (isSelfLoop) return points;
  return points.slice(1).flatMap((to, index) => {
    const from = points[index] ?? to;
    return Array.from({ length: 21 }, (_, step) => {
      const t = step / 20;
      const ease = index % 2 === 0 ? t : 3 * t * t - 2 * t * t * t;
      return { x: from.x + (to.x - from.x) * ease, y: from.y + (to.y - from.y) * t };
    });
  });
}

function contains({ x, y, width, height }: Box, point: Point): boolean {
  return Math.abs(point.x - x) < width / 2 - 0.5 && point.y > y + 0.5 && point.y < y + height - 0.5;
}

function overlap(a: Box, b: Box): boolean {
  return Math.abs(a.x - b.x) < (a.width + b.width) / 2 - 1 && a.y < b.y + b.height && b.y < a.y + a.height;
}

test('no edge passes through a foreign box, and neither labels nor boxes overlap (layout/1, layout/2)', () => {
  fc.assert(
    fc.property(graphs, ({ nodes, edges }) => {
      const layout = layOut(nodes, edges);
      expect(layout.routes).toHaveLength(edges.length);
      const crossed = layout.routes.flatMap((route) => {
        const points = alongRoute(route);
        return [...layout.boxes].flatMap(([id, box]) => {
          const isEnd = id === route.edge.from || id === route.edge.to;
          return !isEnd && points.some((point) => contains(box, point)) ? [{ route, id }] : [];
        });
      });
      expect(crossed).toEqual([]);
      const all = [...layout.boxes.values(), ...layout.routes.flatMap(({ label }) => label ?? [])];
      expect(all.filter((box, index) => all.slice(index + 1).some((other) => overlap(box, other)))).toEqual([]);
      const isInside = ({ x, y, width, height }: Box): boolean =>
        x - width / 2 >= -1 && x + width / 2 <= layout.width + 1 && y + height <= layout.height;
      expect(all.filter((box) => !isInside(box))).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test('a route leads from its first box to its second one', () => {
  fc.assert(
    fc.property(graphs, ({ nodes, edges }) => {
      const { boxes, routes } = layOut(nodes, edges);
      for (const { edge, points } of routes) {
        const touches = (id: string, point: Point | undefined): boolean => {
          const box = boxes.get(id);
          if (box === undefined || point === undefined) return false;
          return Math.abs(point.x - box.x) <= box.width / 2 && point.y >= box.y && point.y <= box.y + box.height;
        };
        expect(touches(edge.from, points[0]) && touches(edge.to, points.at(-1))).toBe(true);
      }
    }),
    { numRuns: 100 },
  );
});

test('without cycles, every node is below its predecessors (layout/3), and the layout is always the same (layout/4)', () => {
  fc.assert(
    fc.property(graphs, ({ nodes, edges }) => {
      const numberOf = (id: string): number => Number(id.slice(1));
      const down = edges.filter(({ from, to }) => numberOf(from) < numberOf(to));
      const { boxes } = layOut(nodes, down);
      for (const { from, to } of down) expect(boxes.get(from)?.y).toBeLessThan(boxes.get(to)?.y ?? 0);
      expect(layOut(nodes, edges)).toEqual(layOut(nodes, edges));
    }),
    { numRuns: 100 },
  );
});

test('an edge to a node that does not exist has no route', () => {
  const nodes = [{ id: 'a', width: 20, height: 20 }];
  expect(layOut(nodes, [{ from: 'a', to: 'b', kind: 'need', label: null }]).routes).toEqual([]);
  expect(layOut([], [])).toMatchObject({ routes: [] });
});
