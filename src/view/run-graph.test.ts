import { expect, test } from 'vitest';

import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import type { RunState } from '../kernel/state.ts';
import { type GraphChoice, runStepGraph } from './run-graph.ts';

const CLOSED: GraphChoice = { opened: new Map(), step: null, onlyActive: false };
const items = (count: number): string => JSON.stringify(Array.from({ length: count }, (_, index) => index));
const run = (count: number): RunState =>
  runKernel(
    `plan\ne each ${items(count)} sub needs plan\nlast needs e\nblock sub\na on_error continue\nb needs a`,
    ok('plan#1'),
    ok('e.0.a#1'),
    bad('e.1.a#1'),
  ).state;
const names = (state: RunState, choice: Partial<GraphChoice>): readonly string[] =>
  runStepGraph(state, { ...CLOSED, ...choice }).nodes.map(({ id }) => id);
const edges = (state: RunState, choice: Partial<GraphChoice>): readonly string[] =>
  runStepGraph(state, { ...CLOSED, ...choice }).edges.map(({ from, to, label }) =>
    `${from} ${to} ${label ?? ''}`.trim(),
  );

test('a closed group is one node with the counts of all that grew from it', () => {
  const { nodes } = runStepGraph(run(3), CLOSED);
  expect(nodes.map(({ id }) => id)).toEqual(['plan', 'e', 'last']);
  const group = nodes.flatMap((node) => (node.kind === 'step' ? (node.group ?? []) : []))[0];
  expect(group).toMatchObject({ isOpen: false, counts: { done: 1, failed: 1, running: 3, pending: 1 } });
  expect(group?.dots).toHaveLength(6);
  expect(edges(run(3), {})).toEqual(['plan e', 'e last']);
});

test('an open group shows its steps, and names the iteration on the line that leads there', () => {
  const opened = new Map([['e', true]]);
  expect(names(run(2), { opened })).toEqual(['plan', 'e', 'e.0.a', 'e.0.b', 'e.1.a', 'e.1.b', 'last']);
  expect(edges(run(2), { opened })).toEqual([
    'plan e',
    'e.0.a e.0.b',
    'e.1.a e.1.b',
    'e last',
    'e e.0.a 0',
    'e e.1.a 1',
  ]);
});

test('a chosen step opens the groups that contain it, unless a person closed them', () => {
  expect(names(run(2), { step: 'e.1.b' })).toContain('e.1.b');
  expect(names(run(2), { step: 'e.1.b', opened: new Map([['e', false]]) })).not.toContain('e.1.b');
});

test('of a large group only what failed or runs is shown, and the iteration of the chosen step', () => {
  const state = run(41);
  const shown = names(state, { opened: new Map([['e', true]]) });
  expect(shown).toContain('e.1.a');
  expect(shown.length).toBeLessThanOrEqual(43);
  expect(shown).not.toContain('e.0.a');
  expect(names(state, { step: 'e.0.a' })).toContain('e.0.a');
});

test('of many outermost steps those that nobody looks for are one node', () => {
  const program = Array.from({ length: 200 }, (_, index) => (index < 150 ? `a${index}` : `b${index} needs a1`)).join(
    '\n',
  );
  const { state } = runKernel(program, ok('a0#1'), bad('a2#1'));
  const { nodes } = runStepGraph(state, { ...CLOSED, step: 'a0' });
  const rests = nodes.flatMap((node) => (node.kind === 'rest' ? [[node.status, node.count]] : []));
  expect(rests.map(([status]) => status)).toContain('pending');
  expect(nodes.map(({ id }) => id)).toEqual(expect.arrayContaining(['a0', 'a2']));
});

test('a limited graph shows only what failed, runs or waits', () => {
  expect(names(run(2), { opened: new Map([['e', true]]), onlyActive: true })).toEqual(['e', 'e.0.b', 'e.1.a', 'e.1.b']);
});
