import { expect, test } from 'vitest';
import { ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { parseProgram } from '../../test/kernel-rig/program-text.ts';
import { type Graph, programGraph, runGraph } from './graph.ts';
import { graphSvg } from './graph-svg.ts';

/** Which row a step stands in, by its full name. */
function rowOf(svg: string, id: string): number {
  const found = new RegExp(`<title>${id}(?: \\(\\w+\\))?</title>\n<rect x="[\\d.]+" y="([\\d.]+)"`).exec(svg);
  return Number(found?.[1] ?? expect.fail(`${id} is not drawn`));
}

test('a step is below all its needs', () => {
  const svg = graphSvg(programGraph(parseProgram('a\nb needs a\nc needs a\nd needs b,c\ne needs a,d'.split('\n'))));
  const rows = ['a', 'b', 'c', 'd', 'e'].map((id) => rowOf(svg, id));
  expect(rows[1]).toBe(rows[2]);
  expect([rows[0], rows[1], rows[3], rows[4]]).toEqual([...new Set(rows)].toSorted((x, y) => x - y));
  expect(svg.match(/<path class="need"/g)).toHaveLength(6);
});

test('back edges and self-loops are drawn', () => {
  const nodes = ['a', 'b'].map((id) => ({ id, name: id, executor: 'prompt', status: null, group: null }));
  const edge = (from: string, to: string) => ({ from, to, kind: 'grows', label: `to ${to}` }) as const;
  const graph: Graph = { title: 't', nodes, edges: [edge('a', 'b'), edge('b', 'a'), edge('b', 'b')], groups: [] };
  const svg = graphSvg(graph);
  expect(rowOf(svg, 'a')).toBeLessThan(rowOf(svg, 'b'));
  expect(svg.match(/<path class="grows"/g)).toHaveLength(3);
  expect(svg).toContain('>to a<');
});

test('a run shows the status of its steps, and all coordinates are inside the picture', () => {
  const { state } = runKernel('e each [1,2,3] sub\nlast needs e.*\nblock sub\na\nb needs a', ok('e.0.a#1'));
  const svg = graphSvg(runGraph(state));
  expect(svg).toContain('<title>e.0.a (done)</title>');
  const [, width = ''] = /viewBox="0 0 ([\d.]+) /.exec(svg) ?? [];
  for (const [, x = ''] of svg.matchAll(/<rect x="([^"]+)"/g)) {
    expect(Number(x)).toBeGreaterThanOrEqual(0);
    expect(Number(x)).toBeLessThan(Number(width));
  }
  expect(svg).not.toContain('NaN');
});

test('text of authors never becomes markup', () => {
  const node = { id: '<b>&"', name: '<b>&"\u0007', executor: 'x', status: null, group: null };
  const svg = graphSvg({ title: '</svg>', nodes: [node], edges: [], groups: [] });
  expect(svg).not.toMatch(/<b>|&"|<\/svg>[^\n]/);
  expect(svg).not.toContain('\u0007');
});

test('long rows are split, and a long chain is drawn', () => {
  const wide = graphSvg(programGraph(parseProgram(Array.from({ length: 30 }, (_, n) => `s${n}`))));
  expect(new Set(Array.from({ length: 30 }, (_, n) => rowOf(wide, `s${n}`))).size).toBe(3);
  const chain = Array.from({ length: 5_000 }, (_, n) => (n === 0 ? 's0' : `s${n} needs s${n - 1}`));
  expect(graphSvg(programGraph(parseProgram(chain)))).toContain('>s4999<');
});

test('a large group shows how many steps have each status, and the failed ones', () => {
  const nodes = Array.from({ length: 1_000 }, (_, n) => ({
    id: `each.${n}.fix`,
    name: `${n}.fix`,
    executor: 'shell',
    status: n === 7 ? ('failed' as const) : n < 700 ? ('done' as const) : ('pending' as const),
    group: 'each',
  }));
  const each = { id: 'each', name: 'each', executor: 'foreach', status: 'running' as const, group: null };
  const edges = nodes.map(({ id }) => ({ from: 'each', to: id, kind: 'grows' as const, label: null }));
  const svg = graphSvg({ title: 'w', nodes: [each, ...nodes], edges, groups: [{ id: 'each', name: 'each' }] });
  for (const name of ['699 done', '300 pending', '7.fix']) expect(svg).toContain(`>${name}</text>`);
  expect(svg.match(/<path class="grows"/g)).toHaveLength(3);
  expect(svg).toContain('<title>each.7.fix (failed)</title>');
});
