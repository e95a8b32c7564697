// The cost of a step in small runs and in large ones. It should be the same.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runEngine } from './engine-run.ts';
import type { Bench, Figure, Measurement } from './measure.ts';
import {
  atMost,
  count,
  duration,
  figure,
  interleave,
  interleaveWarm,
  makeProject,
  median,
  MEOW,
  ratios,
  timeProcess,
} from './measure.ts';
import { compileShape, type Shape, workflowText } from './workflow.ts';

const COMMAND_SIZES = [100, 200, 1_000, 4_000] as const;
const ENGINE_SIZES = [100, 200, 1_000, 4_000, 10_000] as const;
const SHAPES: readonly Shape[] = ['wide', 'fans'];
const SHAPE_NAMES = { wide: 'independent', fans: 'a chain of fans', chain: 'a chain' } as const;

/** Small runs are repeated until a sample covers this many steps. */
const SAMPLE_STEPS = 4_000;

export const size: Measurement = {
  name: 'size',
  method:
    'Runs of 100 to 4,000 steps `true` with `meow run`, and of 100 to 10,000 with the engine alone, a driver that answers ' +
    'immediately and a journal that is written but not synced (the disk has its own figures). Two shapes: no needs at all; and ' +
    'fans, where nine steps need one, and the next one needs the nine. For `meow run`, the time of a run with one step is ' +
    'subtracted before the rest is divided by the steps, so that the start-up does not distort the small run. Small runs ' +
    'are repeated, so that every sample takes about as long. A third of the rounds of the other measurements.',
  async measure(bench) {
    const figures: Figure[] = [];
    for (const shape of SHAPES) figures.push(await withCommands(bench, shape));
    for (const shape of SHAPES) figures.push(await withEngineAlone(bench, shape));
    return figures;
  },
};

async function withCommands(bench: Bench, shape: Shape): Promise<Figure> {
  const project = makeProject(bench, `size-${shape}`);
  const time = (steps: number): number => timeProcess(MEOW, ['run', `${steps}.meow.toml`], project);
  for (const steps of [1, ...COMMAND_SIZES]) {
    writeFileSync(join(project, `${steps}.meow.toml`), workflowText(shape, steps));
  }
  const perStep = (steps: number) => (): number => {
    // One large run is enough; of small ones, the median of a few.
    const times = Math.max(1, Math.min(5, Math.floor(SAMPLE_STEPS / steps / 4)));
    const overOne = Array.from({ length: times }, () => time(steps) - time(1));
    return median(overOne) / (steps - 1);
  };
  time(COMMAND_SIZES[0]);
  const samples = await interleave(roundsOf(bench), sidesOf(COMMAND_SIZES, perStep));
  return costFigure(`${SHAPE_NAMES[shape]}, commands`, COMMAND_SIZES, samples);
}

async function withEngineAlone(bench: Bench, shape: Shape): Promise<Figure> {
  const folder = join(makeProject(bench, `size-engine-${shape}`), '.meow', 'workflows');
  let runs = 0;
  const perStep = (steps: number): (() => Promise<number>) => {
    const program = compileShape(shape, steps);
    return async () => {
      const times = Math.max(1, Math.floor(SAMPLE_STEPS / steps));
      let ms = 0;
      for (let n = 0; n < times; n++) {
        runs += 1;
        ms += (await runEngine({ folder, runId: `wf-${runs}`, program, durable: false })).ms;
      }
      return ms / times / steps;
    };
  };
  const samples = await interleaveWarm(roundsOf(bench), sidesOf(ENGINE_SIZES, perStep));
  return costFigure(`${SHAPE_NAMES[shape]}, engine alone`, ENGINE_SIZES, samples);
}

type Sample = () => number | Promise<number>;

function sidesOf(sizes: readonly number[], perStep: (steps: number) => Sample): Record<string, Sample> {
  return Object.fromEntries(sizes.map((steps) => [`${steps} steps`, perStep(steps)]));
}

/** They take long. */
function roundsOf(bench: Bench): number {
  return Math.ceil(bench.rounds / 3);
}

function costFigure(what: string, sizes: readonly number[], samples: Record<string, readonly number[]>): Figure {
  const of = (steps: number): readonly number[] => samples[`${steps} steps`] ?? [];
  const costs = sizes
    .filter((steps) => steps !== 200)
    .map((steps) => `${count(steps)}: ${duration(median(of(steps)))}`);
  return figure({
    what: `cost of a step at 4,000 against 200: ${what}`,
    measured: costs.join(', '),
    against: `200: ${duration(median(of(200)))}`,
    values: ratios(of(4_000), of(200)),
    unit: '×',
    target: atMost(1.5),
    samples,
  });
}
