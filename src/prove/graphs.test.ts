// Loops, worst cases and claims, judged on small graphs of states: a letter is a state, and `A B turn` a move.

import { describe, expect, test } from 'vitest';

import type { Claim } from '../ir/claim.ts';
import { beyondTests, GOES_ON } from './causes.ts';
import { judgeClaims } from './claims.ts';
import type { Edge, Explored, Node } from './explore.ts';
import { componentsOf, unboundedLoops } from './loops.ts';
import { Names } from './names.ts';
import { endedOn } from './paths.ts';
import { longest } from './worst.ts';

const NOTHING = { routes: [], started: [], turns: [], commands: 0, broken: [], at: 0, move: null, cause: GOES_ON };

/** Words of a move: `turn`, `command`, `broken` for the claim 0, `strange` if no test can do it, else a step that ends. */
function edgeOf(words: readonly string[], to: number): Edge {
  const has = (word: string): boolean => words.includes(word);
  const ended = words.filter((word) => !WORDS.has(word)).map((step) => ({ step, outcome: 'done' }));
  return {
    ...NOTHING,
    to,
    ended,
    started: ended.map(({ step }) => step),
    turns: has('turn') ? ['sim'] : [],
    commands: has('command') ? 1 : 0,
    broken: has('broken') ? [0] : [],
    cause: has('strange') ? beyondTests('it is strange') : GOES_ON,
  };
}

const WORDS = new Set(['turn', 'command', 'broken', 'strange']);

/** States without a move are ends. The order of first mention is that of their distance. */
function graph(text: string, complete = true): Explored {
  const moves = text.split(',').map((line) => line.trim().split(' '));
  const letters = [...new Set(['A', ...moves.flatMap(([from = '', to = '']) => [from, to])])].filter(Boolean);
  const nodes = letters.map((letter, index): Node => {
    const own = moves.filter(([from, to]) => from === letter && to !== undefined);
    const edges = own.map(([, to = '', ...words]) => edgeOf(words, letters.indexOf(to)));
    const ending = edges.length === 0 ? ({ status: 'done', step: null, reason: null } as const) : null;
    const first = moves.find(([, to]) => to === letter) ?? [];
    const node = letters.indexOf(first[0] ?? '');
    const parent = index === 0 ? null : { node, edge: edgeOf(first.slice(2), index) };
    return { index, facts: '', parent, edges, ending, agents: 0, hangs: [] };
  });
  const bound = complete ? null : 'states';
  const names = new Names({ blocks: {} } as never);
  return { nodes, start: edgeOf([], 0), complete, bound, names, retrace: (path) => path };
}

const loopsIn = (text: string): readonly (readonly string[])[] => {
  const explored = graph(text);
  return unboundedLoops(explored, componentsOf(explored)).map(({ through }) => through);
};

test.each<[string, readonly (readonly string[])[]]>([
  ['A B x, B C y', []],
  ['A A x', [['x']]],
  ['A B x, B A y', [['x', 'y']]],
  ['A B x, B C y, C B z, C D w', [['y', 'z']]],
  ['A B a, B A b, A C c, C C d', [['a', 'b'], ['d']]],
])('loops of %j', (text, expected) => {
  expect(loopsIn(text)).toEqual(expected);
});

test('a component has a higher number than all that it can reach', () => {
  const { of, count, cyclic } = componentsOf(graph('A B, B C, C B, C D'));
  expect({ of, count, cyclic: [...cyclic] }).toEqual({ of: [2, 1, 1, 0], count: 3, cyclic: [1] });
});

test.each<[string, number | null]>([
  ['A B turn, B C turn', 2],
  ['A B, A C turn, C B turn', 2],
  ['A B turn, B A', null],
  ['A B, B A, B C turn', 1],
  ['A B turn, B C, C B, C D turn', 2],
  ['A A turn', null],
])('most turns of %j: %j', (text, expected) => {
  const explored = graph(text);
  expect(longest(explored, componentsOf(explored), ({ turns }) => turns.length)).toBe(expected);
});

test('without the whole graph the worst case is unknown', () => {
  const explored = graph('A B turn', false);
  expect(longest(explored, componentsOf(explored), () => 1)).toBeNull();
});

describe('claims', () => {
  const never: Claim = { kind: 'never', step: 'x', unless: null, unlessGate: null };
  const atMost = (limits: Partial<Extract<Claim, { kind: 'at-most' }>['limits']>): Claim => ({
    kind: 'at-most',
    limits: { visits: {}, ...limits },
  });

  const judge = (claim: Claim, explored: Explored): readonly [boolean | null, string | null] => {
    const loops = unboundedLoops(explored, componentsOf(explored));
    const [judged] = judgeClaims([claim], { explored, loops, prices: { sim: { usd: 2, from: '--price' } } });
    const found = judged?.counterexample ?? null;
    const path = found === null ? null : endedOn([...found.path, ...found.round]).map(({ step }) => step);
    return [judged?.holds ?? null, path?.join(' ') ?? null];
  };

  test.each<[string, Claim, string, boolean | null, string | null]>([
    ['never', never, 'A B a, B C b', true, null],
    ['never', never, 'A B a, B C b broken', false, 'a b'],
    ['never, the shortest', never, 'A B a, A C c, B D b broken, C E d broken', false, 'a b'],
    ['never, one for a test', never, 'A B a strange, B C b broken, A D d, D E e, E C f broken', false, 'd e f'],
    ['never, no test can do it', never, 'A B a strange, B C b broken', false, 'a b'],
    ['ends', { kind: 'ends' }, 'A B a, B C b', true, null],
    ['ends', { kind: 'ends' }, 'A B a, B C b, C B c', false, 'a b c'],
    ['at most, turns', atMost({ turns: 1 }), 'A B a turn, B C b turn', false, 'a b'],
    ['at most, turns', atMost({ turns: 2 }), 'A B a turn, B C b turn', true, null],
    ['at most, in a loop', atMost({ turns: 2 }), 'A B a turn, B A b', false, 'a b a b a'],
    ['at most, commands', atMost({ commands: 0 }), 'A B a command', false, 'a'],
    ['at most, dollars', atMost({ usd: 3 }), 'A B a turn, B C b turn', false, 'a b'],
    ['at most, visits', atMost({ visits: { 'a*': 1 } }), 'A B a1, B C a2', false, 'a1 a2'],
  ])('%s: %j in %j', (_, claim, text, holds, path) => {
    expect(judge(claim, graph(text))).toEqual([holds, path]);
  });

  test('a claim that no explored state breaks is unknown if a bound was reached', () => {
    expect(judge(never, graph('A B a', false))).toEqual([null, null]);
    expect(judge(never, graph('A B a broken', false))).toEqual([false, 'a']);
  });
});
