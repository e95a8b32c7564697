// `meow prove` agrees with reality: every ending that random runs of a random Program reach is among those that it lists, and
// the shortest path to each listed ending can happen. Runs of the simulator use the engine, and walks choose any outcome of
// any pending effect. With MEOW_SWEEP=whole 200 runs of 500 Programs; others:
//
//   PROVE_FROM=501 PROVE_SEEDS=500 PROVE_RUNS=200 npx vitest run --project sim test/simulation/prove.test.ts

import { expect, test } from 'vitest';

import { randomFrom } from '../../src/base/random.ts';
import type { Program } from '../../src/ir/program.ts';
import type { RunState } from '../../src/kernel/state.ts';
import { type Ending, endingOf } from '../../src/prove/endings.ts';
import { explore, type Explored, type Node } from '../../src/prove/explore.ts';
import { Names } from '../../src/prove/names.ts';
import { pathTo } from '../../src/prove/paths.ts';
import { IS_WHOLE } from '../rig/sample.ts';
import { follow, walk } from './agreement.ts';
import { randomProgram, type Shape } from './random-program.ts';
import { CALM, live } from './simulate.ts';
import { World } from './world.ts';

const SEEDS = Number(process.env['PROVE_SEEDS'] ?? (IS_WHOLE ? 500 : 40));
const RUNS = Number(process.env['PROVE_RUNS'] ?? (IS_WHOLE ? 200 : 20));
const FROM = Number(process.env['PROVE_FROM'] ?? 1);

/** Every order of everything, as far as that is few states: the reduction must not lose an ending. */
const UNREDUCED_STATES_MAX = 200;

const SMALL: Shape = { steps: 4, depth: 2, calls: true };

test(`prove agrees with ${RUNS} random runs of each of ${SEEDS} programs`, { timeout: 600_000 }, async () => {
  let complete = 0;
  for (let seed = FROM; seed < FROM + SEEDS; seed++) {
    const program = randomProgram(randomFrom(seed), SMALL);
    const explored = explore({ program, variables: {}, claims: [], visitsMax: 5, statesMax: 400 });
    if (!explored.complete) continue;
    complete += 1;
    const listed = endingsIn(explored);
    checkPaths(program, explored, `seed ${seed}`);
    const small = { statesMax: UNREDUCED_STATES_MAX, visitsMax: 5, reduces: false };
    const whole = explore({ program, variables: {}, claims: [], ...small });
    if (whole.complete) expect(listed, `seed ${seed}, every order`).toEqual(endingsIn(whole));
    else for (const ending of endingsIn(whole)) expect(listed, `seed ${seed}, every order`).toContain(ending);
    for (let run = 0; run < RUNS; run++) {
      const walked = walk(program, randomFrom(seed * 1_000 + run));
      expect(listed, `seed ${seed}, walk ${run}`).toContain(endingIn(program, walked));
    }
  }
  expect(complete).toBeGreaterThan(SEEDS * 0.6);
});

test('and with the engine in a simulated world', { timeout: 600_000 }, async () => {
  let complete = 0;
  for (let seed = FROM; seed < FROM + SEEDS / 2; seed++) {
    const program = randomProgram(randomFrom(seed), { ...SMALL, calls: false });
    const explored = explore({ program, variables: {}, claims: [], visitsMax: 5, statesMax: 400 });
    if (!explored.complete) continue;
    complete += 1;
    const world = new World(program, randomFrom(seed), CALM);
    const lived = await live(world, randomFrom(seed + 7), { meddle: 0, problems: [] });
    expect(endingsIn(explored), `seed ${seed}, simulated`).toContain(endingIn(program, lived));
  }
  expect(complete).toBeGreaterThan((SEEDS / 2) * 0.6);
});

/** The shortest path to each listed ending can happen, and ends like that. */
function checkPaths(program: Program, explored: Explored, seed: string): void {
  const shortest = new Map<string, Node>();
  for (const node of explored.nodes) {
    const text = node.ending === null ? (node.hangs.length > 0 ? WAITS : null) : endText(node.ending);
    if (text !== null && !shortest.has(text)) shortest.set(text, node);
  }
  for (const [text, node] of shortest) {
    const path = explored.retrace(pathTo(explored, node)).map(({ move }) => move?.inputs ?? []);
    const reached = follow(program, path);
    expect(typeof reached === 'string' ? reached : endingIn(program, reached), `${seed}, path to ${text}`).toBe(text);
  }
}

/** Of a run that waits for an event that nothing emits. */
const WAITS = 'waits';

function endingsIn({ nodes }: Explored): ReadonlySet<string> {
  return new Set(
    nodes.flatMap(({ ending, hangs }) => (ending === null ? (hangs.length > 0 ? [WAITS] : []) : [endText(ending)])),
  );
}

function endingIn(program: Program, state: RunState): string {
  return state.phase === 'ended' ? endText(endingOf(state, new Names(program))) : WAITS;
}

/** Without the type of error: the explorer tries one for all that nothing tells apart. */
function endText({ status, step }: Ending): string {
  return `${status} ${step ?? ''}`;
}
