// `meow prove`: the workflows that come with meow, and the explorer alone.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Program } from '../src/ir/program.ts';
import { compileMeow } from '../src/languages/meow/compile.ts';
import { explore, type Explored } from '../src/prove/explore.ts';
import { proveShipped, shippedWorkflows } from '../test/rig/shipped-workflows.ts';
import type { Bench, Figure, Measurement } from './measure.ts';
import { atLeast, atMost, count, duration, figure, interleaveWarm, median } from './measure.ts';

const STEPS = 20;
const CHAINS = 7;
const STATES = 10_000;
const PAIRS = 10;
const STATES_MAX = 100_000;

export const prove: Measurement = {
  name: 'prove',
  method:
    'The explorer of `meow prove`, in this process. Every workflow of examples/ and lib/, with compilation: the slowest one. ' +
    `${count(STATES)} states of a workflow with ${STEPS} steps in ${CHAINS} chains, in every order: states a second, and the heap that ` +
    `they occupy afterwards. A workflow of 40 steps, with ${PAIRS} pairs of an agent and a chain of two commands side by side: the time until it is ` +
    'explored to its end.',
  async measure(bench) {
    return [await slowestShipped(bench), await statesPerSecond(bench), heapOfStates(), await pairs(bench)];
  },
};

async function slowestShipped({ rounds }: Bench): Promise<Figure> {
  const paths = shippedWorkflows();
  const timed = (path: string) => async (): Promise<number> => {
    const began = performance.now();
    const proved = await proveShipped(path, STATES_MAX);
    if (proved.kind === 'refused') throw new Error(`${path} is invalid`);
    return performance.now() - began;
  };
  const samples = await interleaveWarm(rounds, Object.fromEntries(paths.map((path) => [path, timed(path)])));
  const slowest = paths.toSorted((a, b) => median(samples[b] ?? []) - median(samples[a] ?? []))[0] ?? '';
  const taken = samples[slowest] ?? [];
  return figure({
    what: `prove: the slowest of ${paths.length} workflows in examples/ and lib/`,
    measured: `${duration(median(taken))} for ${slowest}`,
    against: '',
    values: taken.map((ms) => ms / 1_000),
    unit: 's',
    target: atMost(2),
    samples,
  });
}

async function statesPerSecond({ rounds }: Bench): Promise<Figure> {
  const program = chains();
  const samples = await interleaveWarm(rounds, { explore: () => timed(() => exploreStates(program)) });
  return figure({
    what: `prove: states a second of a workflow with ${STEPS} steps`,
    measured: `${duration(median(samples.explore))} for ${count(STATES)} states`,
    against: '',
    values: samples.explore.map((ms) => (STATES / ms) * 1_000),
    unit: '/s',
    target: atLeast(3_000),
    samples,
  });
}

/** At most 5 KB a state. */
function heapOfStates(): Figure {
  const program = chains();
  const before = heapMb();
  const explored = exploreStates(program);
  const heap = heapMb() - before;
  return figure({
    what: `prove: memory of ${count(STATES)} states of that workflow`,
    measured: `${((heap * 1_000) / explored.nodes.length).toFixed(1)} KB a state`,
    against: '',
    values: [heap],
    unit: 'MB',
    target: atMost((STATES * 5) / 1_000),
    samples: { heapMb: [heap] },
  });
}

async function pairs({ rounds }: Bench): Promise<Figure> {
  const program = independentPairs();
  const samples = await interleaveWarm(rounds, {
    explore: () =>
      timed(() => {
        const explored = explore({ program, variables: {}, claims: [], visitsMax: 3, statesMax: STATES_MAX });
        if (!explored.complete) throw new Error('the pairs were not explored to the end');
      }),
  });
  return figure({
    what: `prove: ${PAIRS} independent pairs in 40 steps, explored to the end`,
    measured: duration(median(samples.explore)),
    against: '',
    values: samples.explore.map((ms) => ms / 1_000),
    unit: 's',
    samples,
  });
}

function timed(act: () => unknown): number {
  const began = performance.now();
  act();
  return performance.now() - began;
}

/** Without the reduction, which would leave few states. */
function exploreStates(program: Program): Explored {
  const explored = explore({ program, variables: {}, claims: [], visitsMax: 3, statesMax: STATES, reduces: false });
  if (explored.nodes.length < STATES) throw new Error(`the workflow has only ${explored.nodes.length} states`);
  return explored;
}

/** What is in use after a garbage collection. */
function heapMb(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed / 1_000_000;
}

function chains(): Program {
  const step = (n: number): string => shell(`c${n}`, n < CHAINS ? null : `c${n - CHAINS}`);
  return compiled(Array.from({ length: STEPS }, (_, n) => step(n)));
}

function independentPairs(): Program {
  return compiled(
    Array.from({ length: PAIRS }, (_, n) => [
      `[[main.steps]]\nid = "s${n}"\nexecutor = "spawn"\nagent = "w${n}"\nadapter = "sim"`,
      `[[main.steps]]\nid = "p${n}"\nexecutor = "agent"\nagent = "w${n}"\nprompt = "x"\nneeds = ["s${n}"]`,
      shell(`a${n}`, null),
      shell(`b${n}`, `a${n}`),
    ]).flat(),
  );
}

function shell(id: string, needs: string | null): string {
  const after = needs === null ? '' : `\nneeds = ["${needs}"]`;
  return `[[main.steps]]\nid = "${id}"\nexecutor = "shell"\ncommand = "true"${after}`;
}

function compiled(steps: readonly string[]): Program {
  const text = ['[main]\nname = "bench"', ...steps].join('\n\n');
  const { program, diagnostics } = compileMeow({ file: 'bench.meow.toml', text, workflow: null, given: [] });
  if (program === null) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  return program;
}
