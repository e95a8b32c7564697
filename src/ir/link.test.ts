import { describe, expect, test } from 'vitest';

import { checkProgram } from './check.ts';
import type { CommandSpec } from './effect.ts';
import { linkProgram, partSymbol } from './link.ts';
import {
  attachConductor,
  type Block,
  type ConductorFacts,
  conductorOf,
  DEFAULT_LIMITS,
  NO_RETRY,
  type Program,
  type Step,
} from './program.ts';
import type { Text } from './text.ts';
import { targetOf, type Transition } from './transition.ts';

const SYMBOL = partSymbol(1);

function step(id: string, routes: Readonly<Record<string, Transition>>, more: Partial<Step> = {}): Step {
  const rest = { executor: 'x', needs: [], unrouted: 'done', onError: { kind: 'fail' }, repromptsMax: 0 } as const;
  return { id, act: { kind: 'pass' }, routes, retry: NO_RETRY, timeout: null, agent: null, ...rest, ...more };
}

function block(name: string, only: Step, more: Partial<Block> = {}): Block {
  return { name, parameters: [], steps: [only], naming: 'path', visits: null, ...more };
}

function program(blocks: readonly Block[], more: Partial<Program> = {}): Program {
  return {
    format: 2,
    source: { language: 'meow', name: 'w' },
    entry: blocks[0]?.name ?? '',
    blocks: Object.fromEntries(blocks.map((each) => [each.name, each])),
    cleanup: { success: null, failure: null, stop: null },
    limits: DEFAULT_LIMITS,
    drainMs: 0,
    onFailure: 'drain',
    machines: {},
    steerings: {},
    attachments: {},
    ...more,
  };
}

const enters = program([
  block('main', step('go', { done: { kind: 'expand', target: targetOf(SYMBOL), join: 'wait' } })),
]);

function linked(part: Program, failedStop: 'returns' | 'fails' = 'fails'): Program {
  const whole = linkProgram(enters, [{ symbol: SYMBOL, name: 'sub', program: part, failedStop }]);
  expect(checkProgram(whole)).toEqual([]);
  return whole;
}

test('a Program that enters nothing stays as it is', () => {
  const alone = program([block('main', step('a', {}))]);
  expect(linkProgram(alone, [])).toBe(alone);
});

test('names of blocks are renamed in every place where one stands (link/2)', () => {
  const target = targetOf('b');
  const open = { block: { parts: ['b', { path: ['x'], quote: [] }] }, names: { 'b-x': 'b' }, variables: {} };
  const part = program([
    block('a', step('one', { done: { kind: 'goto', target, session: 'fresh', dropCallers: false } })),
    block('b', step('two', { done: { kind: 'call', target, returnTo: targetOf('a'), session: 'fresh' } }), {
      visits: { max: 3, instead: targetOf('a') },
    }),
    block('c', step('three', { done: { kind: 'fork', target, name: 'w' } }, { onError: { kind: 'recover', target } })),
    block('d', step('four', { done: { kind: 'expand', target: open, join: 'wait' } })),
    block(
      'e',
      step(
        'five',
        {},
        {
          act: {
            kind: 'each',
            items: { kind: 'value', value: { kind: 'literal', value: [] } },
            target,
            itemName: 'item',
            indexName: null,
            key: null,
            parallel: { kind: 'literal', value: true },
            width: null,
            join: true,
          },
        },
      ),
    ),
    block(
      'f',
      step(
        'six',
        {},
        {
          act: {
            kind: 'loop',
            target,
            check: { kind: 'block', when: 'after', target },
            roundsMax: { kind: 'literal', value: 3 },
            delayMs: 0,
            exhausted: { kind: 'expand', target },
          },
        },
      ),
    ),
  ]);
  const { blocks } = linked(part);
  expect(Object.keys(blocks)).toEqual(['main', 'sub#a', 'sub#b', 'sub#c', 'sub#d', 'sub#e', 'sub#f']);
  const renamed = { target: { block: 'sub#b' } };
  expect(blocks['sub#f']?.steps[0]?.act).toMatchObject({ ...renamed, check: renamed, exhausted: renamed });
  expect(blocks['main']?.steps[0]?.routes['done']).toMatchObject({ target: { block: 'sub#a' } });
  expect(blocks['sub#a']?.steps[0]?.routes['done']).toMatchObject({ target: { block: 'sub#b' } });
  expect(blocks['sub#b']).toMatchObject({
    name: 'sub#b',
    visits: { instead: { block: 'sub#a' } },
    steps: [{ routes: { done: { target: { block: 'sub#b' }, returnTo: { block: 'sub#a' } } } }],
  });
  expect(blocks['sub#c']?.steps[0]).toMatchObject({ onError: { target: { block: 'sub#b' } } });
  expect(blocks['sub#d']?.steps[0]?.routes['done']).toMatchObject({ target: { names: { 'b-x': 'sub#b' } } });
  expect(blocks['sub#e']?.steps[0]?.act).toMatchObject({ target: { block: 'sub#b' } });
});

test('data passes through untouched, whatever its keys are called (link/2)', () => {
  const effect: CommandSpec<Text> = {
    kind: 'command',
    script: 'echo a',
    cwd: null,
    env: { block: 'a', steering: 'a', machine: 'a' },
    captures: [],
    verdict: 'success',
    errors: [],
    steering: null,
  };
  const data = { block: 'a', kind: 'stop', verdict: 'done', reason: null, target: { block: 'a', names: { a: 'a' } } };
  const parameter = { name: 'block', type: 'json', required: false, description: null } as const;
  const done: Transition = {
    kind: 'expand',
    target: targetOf('a', { block: { kind: 'literal', value: data }, names: { kind: 'text', text: 'a' } }),
    join: 'wait',
  };
  const part = program([
    block('a', step('a', { done }, { act: { kind: 'effect', effect }, agent: 'a' }), {
      parameters: [{ ...parameter, fallback: { kind: 'literal', value: data } }],
    }),
  ]);
  const renamed = linked(part).blocks['sub#a'];
  expect(renamed?.parameters).toEqual(part.blocks['a']?.parameters);
  expect(renamed?.steps[0]?.act).toEqual({ kind: 'effect', effect });
  expect(renamed?.steps[0]?.routes['done']).toEqual({ ...done, target: { ...done.target, block: 'sub#a' } });
  expect(renamed?.steps[0]).toMatchObject({ id: 'a', agent: 'a' });
});

test('machines and steerings are renamed with those who name them', () => {
  const asks = { open: 'ask', timed: 'ask:timed', routed: 'ask:routed' };
  const turn = { adapter: 'sim', prompt: 'main', cwd: null, model: null, effort: null, idleMs: null, steering: 'S' };
  const act = { kind: 'effect', effect: { kind: 'turn', ...turn } } as const;
  const names = ['S', ...Object.values(asks)];
  const part = program(
    names.map((name) => block(name, step('S', {}, { act }), { naming: 'visit-first' })),
    {
      machines: {
        main: {
          states: { 'S.md': 'S' },
          spellings: {},
          workflows: { '../x': 'S' },
          adapters: { S: 'S' },
          keepsCallers: false,
          asks,
        },
      },
      steerings: { S: { machine: 'main', speaker: 'agent', allowed: null, forced: false } },
    },
  );
  const taken = program([...Object.values(enters.blocks), block('S', step('mine', {}))]);
  const whole = linkProgram(taken, [{ symbol: SYMBOL, name: 'sub', program: part, failedStop: 'fails' }]);
  expect(checkProgram(whole)).toEqual([]);
  // Ids of states carry the name of their workflow, so their blocks are renamed only where another has the name.
  expect(Object.keys(whole.blocks)).toEqual(['main', 'S', 'S_2', 'ask', 'ask:timed', 'ask:routed']);
  expect(whole.machines).toEqual({
    'sub#main': {
      states: { 'S.md': 'S_2' },
      spellings: {},
      workflows: { '../x': 'S_2' },
      adapters: { S_2: 'S' },
      keepsCallers: false,
      asks,
    },
  });
  expect(whole.steerings).toEqual({ 'sub#S': { machine: 'sub#main', speaker: 'agent', allowed: null, forced: false } });
  expect(whole.blocks['S_2']?.steps[0]?.act).toMatchObject({ effect: { steering: 'sub#S', prompt: 'main' } });
});

test('parts may enter each other in a circle (link/1)', () => {
  const second = partSymbol(2);
  const to = (symbol: string): Transition => ({ kind: 'expand', target: targetOf(symbol), join: 'wait' });
  const whole = linkProgram(enters, [
    {
      symbol: SYMBOL,
      name: 'one',
      program: program([block('main', step('x', { done: to(second) }))]),
      failedStop: 'fails',
    },
    {
      symbol: second,
      name: 'two',
      program: program([block('main', step('y', { done: to(SYMBOL) }))]),
      failedStop: 'fails',
    },
  ]);
  expect(checkProgram(whole)).toEqual([]);
  expect(whole.blocks['two#main']?.steps[0]?.routes['done']).toMatchObject({ target: { block: 'one#main' } });
});

describe('a stop of a part is not the end of the run (link/3)', () => {
  const done: Transition = { kind: 'stop', verdict: 'done', reason: null };
  const failed: Transition = { kind: 'stop', verdict: 'failed', reason: 'no route' };
  const part = program([block('good', step('s', { done })), block('bad', step('s', { done: failed }))]);
  const value = (verdict: string, reason: string | null) => ({ kind: 'literal', value: { verdict, reason } });
  const endOf = (name: string, failedStop: 'returns' | 'fails') =>
    linked(part, failedStop).blocks[name]?.steps[0]?.routes['done'];

  test.each(['returns', 'fails'] as const)('a success is returned (%s)', (failedStop) => {
    expect(endOf('sub#good', failedStop)).toEqual({ kind: 'return', value: value('success', null) });
  });

  test('a failure is returned to a caller that wants to hear of it', () => {
    expect(endOf('sub#bad', 'returns')).toEqual({ kind: 'return', value: value('failure', 'no route') });
  });

  test('or is the failure of the step', () => {
    expect(endOf('sub#bad', 'fails')).toEqual({ kind: 'fail', message: 'no route' });
  });

  test('the main Program stops the run', () => {
    const main = program([...Object.values(enters.blocks), block('end', step('s', { done }))]);
    const whole = linkProgram(main, [{ symbol: SYMBOL, name: 'sub', program: part, failedStop: 'fails' }]);
    expect(whole.blocks['end']?.steps[0]?.routes['done']).toEqual(done);
  });
});

test('the facts of all Conductor parts are merged, under the name of the main Program (link/4)', () => {
  const facts = { workflowId: 'p', description: 'd', artifactsDir: 'runs', mutates: false, gates: { ask: 'a' } };
  const part = (attached: ConductorFacts): Program =>
    program([block('main', step('s', {}))], { attachments: attachConductor(attached) });
  const whole = linkProgram(enters, [
    { symbol: SYMBOL, name: 'one', program: part(facts), failedStop: 'fails' },
    {
      symbol: partSymbol(2),
      name: 'two',
      program: part({ ...facts, mutates: true, gates: { ask: 'b', go: 'c' } }),
      failedStop: 'fails',
    },
  ]);
  expect(conductorOf(whole)).toEqual({ ...facts, workflowId: 'w', mutates: true, gates: { ask: 'a', go: 'c' } });
});
