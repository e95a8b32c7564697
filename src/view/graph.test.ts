import { expect, test } from 'vitest';
import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { parseProgram } from '../../test/kernel-rig/program-text.ts';
import { graphDot, graphMermaid, graphText, programGraph, runGraph } from './graph.ts';

const PROGRAM =
  'x-1\nx-2\njoin needs x-*\ne each [1,2] sub needs join\nlast needs e.*\nblock sub\na on_error recover:fix\nb needs a\nblock fix\nrepair';

test('a Program is drawn block by block, with patterns resolved', () => {
  const { edges, groups } = programGraph(parseProgram(PROGRAM.split('\n')));
  expect(groups).toEqual([{ id: 'sub', name: 'sub' }]);
  expect(edges.map(({ from, to, kind, label }) => `${from} ${kind} ${to} ${label ?? ''}`.trim())).toEqual([
    'x-1 need join',
    'x-2 need join',
    'join need e',
    'e grows sub/a each',
    'e need last',
    'sub/a grows fix/repair error',
    'sub/a need sub/b',
  ]);
});

test('the listing puts a step after its needs', () => {
  const graph = programGraph(
    parseProgram('c needs b\nb needs a\na\nd on_error recover:fix\nblock fix\none\ntwo needs one'.split('\n')),
  );
  expect(graphText(graph)).toBe(
    [
      'trace',
      '  a  shell',
      '  d  shell',
      '    → error: fix/one',
      '  b  shell  after a',
      '  c  shell  after b',
      '',
      'fix',
      '  one  shell',
      '  two  shell  after one',
      '',
    ].join('\n'),
  );
});

test('a run is drawn with its growth and statuses', () => {
  const { state } = runKernel('e each [1] sub\nlast needs e.*\nblock sub\na\nb needs a', ok('e.0.a#1'));
  const { nodes, edges } = runGraph(state);
  expect(nodes.map(({ id, name, status, group }) => [id, name, status, group])).toEqual([
    ['e', 'e', 'running', null],
    ['last', 'last', 'pending', null],
    ['e.0.a', '0.a', 'done', 'e'],
    ['e.0.b', '0.b', 'running', 'e'],
  ]);
  expect(edges.map(({ from, to, kind }) => `${from} ${kind} ${to}`)).toEqual([
    'e.0.a need last',
    'e.0.b need last',
    'e.0.a need e.0.b',
    'e grows e.0.a',
  ]);
});

test('a loop is drawn with its round, its check and what follows the last round', () => {
  const program =
    'fix loop round max 2 until check exhausted late\nblock round\nwork\nblock check\nuntil asks\nblock late\nask';
  const { state } = runKernel(program, ok('fix.1.work#1'), ok('fix.1.until#1'));
  expect(programGraph(state.program).edges.map(({ to, label }) => `${to} ${label}`)).toEqual([
    'round/work round',
    'check/until check',
    'late/ask exhausted',
  ]);
  expect(runGraph(state).edges.map(({ to, label }) => `${to} ${label}`)).toEqual([
    'fix.1.work round 1',
    'fix.1.until round 1',
    'fix.2.work round 2',
  ]);
});

test('a route machine is drawn by its transitions, including cycles', () => {
  const { state } = runKernel(
    'block one visit-last\nfix route done=goto:two\nblock two visit-last\ntry route done=end route exit-nonzero=goto:one',
    ok('fix#1#1'),
    bad('try#1#1'),
  );
  expect(runGraph(state).edges.map(({ from, to }) => `${from} ${to}`)).toEqual(['fix#1 try#1', 'try#1 fix#2']);
  expect(graphText(programGraph(state.program))).toContain('  → exit-nonzero: fix');
});

test('labels are escaped for Mermaid', () => {
  const text = graphMermaid({
    title: 't',
    nodes: [{ id: 'a', name: 'a"]<b>#`\n', executor: 'sh|x', status: 'failed', group: null }],
    edges: [{ from: 'a', to: 'a', kind: 'grows', label: 'on "x"' }],
    groups: [],
  });
  expect(text.split('\n')).toEqual([
    'flowchart TD',
    '  n0["a#34;#93;#60;b#62;#35;#96;<br/>sh#124;x"]:::failed',
    '  n0 -.->|"on #34;x#34;"| n0',
    '  classDef failed fill:#ffd6d6,stroke:#cf222e,color:#111',
    '',
  ]);
});

test('labels are escaped for DOT', () => {
  const text = graphDot({
    title: 'a "title"',
    nodes: [{ id: 'a', name: 'back\\slash & "quote"', executor: 'shell', status: null, group: 'g' }],
    edges: [],
    groups: [{ id: 'g', name: 'group\\' }],
  });
  expect(text).toContain('label="a \\"title\\"";');
  expect(text).toContain('    label="group\\\\";');
  expect(text).toContain('    n0 [label="back\\\\slash &amp; \\"quote\\"\\nshell"];');
});

test('steps with circular needs are listed', () => {
  expect(graphText(programGraph(parseProgram(['a needs b', 'b needs a'])))).toContain('  a  shell  after b\n');
});
