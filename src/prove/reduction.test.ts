// Keys of states and the reduction, by the number of states that small Programs have.

import { expect, test } from 'vitest';

import type { CommandSpec } from '../ir/effect.ts';
import { type Act, type Block, DEFAULT_LIMITS, NO_RETRY, type Program, type Step } from '../ir/program.ts';
import type { Text } from '../ir/text.ts';
import { targetOf } from '../ir/transition.ts';
import { alwaysFails } from './exit-codes.ts';
import { explore, type Explored } from './explore.ts';

function command(script: Text): Act {
  const effect: CommandSpec<Text> = {
    kind: 'command',
    script,
    cwd: null,
    env: {},
    captures: [],
    verdict: 'success',
    errors: [],
    steering: null,
  };
  return { kind: 'effect', effect };
}

function step(id: string, needs: readonly string[] = [], more: Partial<Step> = {}): Step {
  return {
    id,
    executor: 'shell',
    needs,
    act: command('work'),
    routes: {},
    unrouted: 'done',
    repromptsMax: 0,
    onError: { kind: 'fail' },
    retry: NO_RETRY,
    timeout: null,
    agent: null,
    ...more,
  };
}

function programOf(blocks: Readonly<Record<string, readonly Step[]>>): Program {
  const made = Object.entries(blocks).map(([name, steps]): [string, Block] => [
    name,
    { name, parameters: [], naming: 'path', steps, visits: null },
  ]);
  return {
    format: 2,
    source: { language: 'meow', name: 'test' },
    entry: 'main',
    blocks: Object.fromEntries(made),
    cleanup: { success: null, failure: null, stop: null },
    limits: DEFAULT_LIMITS,
    drainMs: 0,
    onFailure: 'drain',
    machines: {},
    steerings: {},
    attachments: {},
  };
}

function exploring(blocks: Readonly<Record<string, readonly Step[]>>, reduces: boolean): Explored {
  return explore({ program: programOf(blocks), variables: {}, claims: [], visitsMax: 3, statesMax: 5_000, reduces });
}

function endings({ nodes }: Explored): readonly string[] {
  const all = nodes.flatMap(({ ending }) => (ending === null ? [] : [`${ending.status} ${ending.step ?? ''}`.trim()]));
  return [...new Set(all)].toSorted();
}

const status = (id: string): Partial<Step> => ({ act: command(`meow step-status ${id} --is done`) });
const goesOn: Partial<Step> = { onError: { kind: 'continue' } };

/** How many states there are with the reduction, and without it. */
test.each<[string, readonly Step[], number, number]>([
  ['one after the other', [step('a'), step('b', ['a'])], 5, 5],
  ['an independent pair', [step('a'), step('b')], 5, 6],
  ['three independent steps', [step('a'), step('b'), step('c')], 7, 11],
  ['failures that are handled', [step('a', [], goesOn), step('b', [], goesOn)], 3, 4],
  ['one step asks for the status of the other', [step('a', [], goesOn), step('b', [], status('a'))], 5, 5],
])('%s', (_, steps, reduced, all) => {
  const [few, many] = [exploring({ main: steps }, true), exploring({ main: steps }, false)];
  expect([few.nodes.length, many.nodes.length]).toEqual([reduced, all]);
  expect(endings(few)).toEqual(endings(many));
});

const below = (block: string, more: Partial<Step> = {}): Partial<Step> => ({
  executor: 'expand',
  act: { kind: 'block', target: targetOf(block) },
  ...more,
});

/** Found by the simulator: orders that matter although no step uses what another one does. */
test.each<[string, Readonly<Record<string, readonly Step[]>>]>([
  [
    'a step that needs one that never exists fails early',
    { main: [step('a'), step('b', [], below('inner')), step('c', ['a', 'b.none'], goesOn)], inner: [step('x')] },
  ],
  [
    'a step that waits for two fails at once, and another one may fail before',
    {
      main: [step('a'), step('b', [], goesOn), step('c', ['a', 'b'], below('inner')), step('d', ['b'])],
      inner: [step('y', ['z.none']), step('z', [], below('empty'))],
      empty: [],
    },
  ],
  [
    'a step below one that handles its failure is needed',
    { main: [step('a'), step('b', [], below('inner', goesOn)), step('c', ['b.x'])], inner: [step('x')] },
  ],
])('%s', (_, blocks) => {
  expect(endings(exploring(blocks, true))).toEqual(endings(exploring(blocks, false)));
});

test.each<[string, number]>([
  ['a retry is counted', 2],
  ['and so is each further one', 4],
])('%s', (_, attemptsMax) => {
  const retry = { ...NO_RETRY, attemptsMax };
  const { nodes } = exploring({ main: [step('a', [], { retry })] }, true);
  // Each attempt and each wait, and two endings.
  expect(nodes).toHaveLength(2 * attemptsMax - 1 + 2);
});

test.each([
  ['exit 1', true],
  ['echo no >> log; exit 3', true],
  ['make && exit 2', true],
  ['exit 0', false],
  ['make', false],
  ['make || exit 1', false],
  ['if x; then exit 0; fi; exit 1', false],
  ['test -f x && exit 0\nexit 1', false],
])('%j always fails: %j', (script, expected) => {
  expect(alwaysFails(script)).toBe(expected);
});
