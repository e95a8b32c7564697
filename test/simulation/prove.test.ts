// `meow prove` agrees with reality: every ending that random runs of a random Program reach is among those that it lists.
// Runs of the simulator use the engine, and walks choose any outcome of any pending effect. More of them:
//
//   PROVE_FROM=61 PROVE_SEEDS=500 PROVE_RUNS=200 npx vitest run --project sim test/simulation/prove.test.ts

import { expect, test } from 'vitest';

import { type Outcome, success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';
import { type Program, UNLIMITED } from '../../src/ir/program.ts';
import { decide } from '../../src/kernel/decide.ts';
import type { Input } from '../../src/kernel/input.ts';
import { pendingEffects } from '../../src/kernel/pending-effects.ts';
import { CLEANUP_STEP, initialState, type RunState } from '../../src/kernel/state.ts';
import { type Ending, endingOf } from '../../src/prove/endings.ts';
import { explore, type Explored } from '../../src/prove/explore.ts';
import { Names } from '../../src/prove/names.ts';
import { attempts } from '../rig/sample.ts';
import { randomProgram } from './random-program.ts';
import { oneOf, type Random, randomFrom } from '../../src/base/random.ts';
import { CALM, live } from './simulate.ts';
import { World } from './world.ts';

const SEEDS = Number(process.env['PROVE_SEEDS'] ?? attempts(50));
const RUNS = Number(process.env['PROVE_RUNS'] ?? 15);
const FROM = Number(process.env['PROVE_FROM'] ?? 1);
const STATES_MAX = 600;

/** Every order of everything, as far as that is few states: the reduction must not lose an ending. */
const UNREDUCED_STATES_MAX = 400;

test(`endings of ${RUNS} random runs of ${SEEDS} random programs are listed`, { timeout: 600_000 }, async () => {
  let complete = 0;
  for (let seed = FROM; seed < FROM + SEEDS; seed++) {
    const program = randomProgram(randomFrom(seed));
    const explored = explore({ program, variables: {}, claims: [], visitsMax: 5, statesMax: STATES_MAX });
    if (!explored.complete) continue;
    complete += 1;
    const listed = endingsIn(explored);
    const small = { statesMax: UNREDUCED_STATES_MAX, visitsMax: 5, reduces: false };
    const whole = explore({ program, variables: {}, claims: [], ...small });
    if (whole.complete) expect(listed, `seed ${seed}, every order`).toEqual(endingsIn(whole));
    else for (const ending of endingsIn(whole)) expect(listed, `seed ${seed}, every order`).toContain(ending);
    for (let run = 0; run < RUNS; run++) {
      const walked = walk(program, randomFrom(seed * 1_000 + run));
      expect(listed, `seed ${seed}, walk ${run}`).toContain(endingIn(program, walked));
    }
    const world = new World(program, randomFrom(seed), CALM);
    const lived = await live(world, randomFrom(seed + 7), { meddle: 0, problems: [] });
    expect(listed, `seed ${seed}, simulated`).toContain(endingIn(program, lived));
  }
  expect(complete).toBeGreaterThan(SEEDS / 2);
});

function endingsIn({ nodes }: Explored): ReadonlySet<string> {
  return new Set(nodes.flatMap(({ ending }) => (ending === null ? [] : [endText(ending)])));
}

function endingIn(program: Program, state: RunState): string {
  return endText(endingOf(state, new Names(program)));
}

/** Without the type of error: the explorer tries one for all that nothing tells apart. */
function endText({ status, step }: Ending): string {
  return `${status} ${step ?? ''}`;
}

/** A run in which everything happens by chance. */
function walk(program: Program, random: Random): RunState {
  const state = initialState(program);
  const request = { id: 'wf', mark: '', variables: {}, meta: {}, cwd: '.', allowOutside: false, allowance: UNLIMITED };
  let at = 1_000;
  decide(state, { kind: 'run-requested', request, programHash: '' }, at);
  while (state.phase !== 'ended') {
    const chosen = oneOf(random, choices(state, random));
    for (const input of chosen) {
      const due = input.kind === 'deadline-passed' ? (state.timers.get(input.timer)?.at ?? 0) : 0;
      at = Math.max(at + 1, due);
      decide(state, input, at);
    }
  }
  return state;
}

function choices(state: RunState, random: Random): readonly (readonly Input[])[] {
  const effects = pendingEffects(state).flatMap(({ id, step, spec }): readonly (readonly Input[])[] => {
    const stopping = state.steps.get(step)?.stopping ?? null;
    const end = (outcome: Outcome): readonly (readonly Input[])[] => [
      [{ kind: 'effect-finished', effect: id, outcome }],
    ];
    if (stopping !== null) return end({ kind: 'failure', failure: failure('stopped', 'stopped') });
    if (step === CLEANUP_STEP || spec.kind === 'kill') return end(success());
    const fails = random() < 0.25;
    const failed = (): Outcome => ({
      kind: 'failure',
      failure: failure(spec.kind === 'spawn' ? 'spawn-failed' : 'exit-nonzero', 'failed'),
    });
    switch (spec.kind) {
      case 'attend': {
        const busy = state.agents.get(spec.agent)?.busy ?? null;
        const crashed: Outcome = { kind: 'failure', failure: failure('agent-crashed', 'it died') };
        return busy !== null && random() < 0.1 ? end(crashed) : [];
      }
      case 'prompt': {
        if (spec.mode === 'fire-forget')
          return end(fails ? { kind: 'failure', failure: failure('not-delivered', 'lost') } : success());
        const report: Input = { kind: 'step-reported', step, outputs: { said: step }, notes: null, message: null };
        return [[report, { kind: 'effect-finished', effect: id, outcome: success() }]];
      }
      case 'read':
        return end(
          fails
            ? { kind: 'failure', failure: failure('not-started', 'no file') }
            : success({ items: oneOf(random, [[], [0], [0, 1]]) }),
        );
      case 'command': {
        if (spec.verdict !== 'condition')
          return end(fails ? failed() : success({ said: oneOf(random, ['x', 'true']) }));
        if (fails) return end({ kind: 'failure', failure: failure('condition-error', 'not found') });
        return end(success({}, { route: oneOf(random, ['true', 'false']) }));
      }
      case 'turn':
        return end(fails ? { kind: 'failure', failure: failure('agent-crashed', 'it died') } : success({ said: 'x' }));
      default:
        return end(fails ? failed() : success());
    }
  });
  const gates = [...state.inFlight.values()].flatMap(({ effect }): readonly (readonly Input[])[] => {
    if (effect?.kind !== 'gate' || typeof effect.gate !== 'string' || state.end !== null) return [];
    const verdict = { approved: random() < 0.5, by: 'ann', notes: null, answer: null };
    return [[{ kind: 'gate-decided', gate: effect.gate, verdict, message: null }]];
  });
  const timers = [...state.timers.keys()].map((timer): readonly Input[] => [{ kind: 'deadline-passed', timer }]);
  const all = [
    ...effects,
    ...gates,
    ...(timers.length > 0 && (random() < 0.2 || effects.length + gates.length === 0) ? timers : []),
  ];
  return all.length > 0 ? all : choices(state, random);
}
