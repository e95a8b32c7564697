// The cost of a run that grows: parallel conditions, thousands of iterations, rounds of a loop, a recursive workflow.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
import { peakOf } from './peak.ts';
import { workflowText } from './workflow.ts';

const CONDITIONS = 1_000;
const AT_ONCE = 8;
const FEW = 200;
const MANY = 4_000;
const ROUNDS_OF_LOOP = 3_000;

const LIMITS = '[limits]\nmax_expansion_depth = 100000\nmax_total_steps = 100000\nmax_workflow_file_size = "500MB"\n';

export const growth: Measurement = {
  name: 'growth',
  method:
    `${CONDITIONS} independent branches with the condition \`true\`, against \`make -j${AT_ONCE}\` with as many targets ` +
    `\`sh -c true\`. A foreach over ${FEW} and over ${MANY} items with a step \`true\` each: the cost of an item, without that of a ` +
    `run with one item. The same for a loop of ${FEW} and of ${ROUNDS_OF_LOOP} rounds, with a step and a condition each. The peak memory of ` +
    `this loop of ${ROUNDS_OF_LOOP} rounds, and of as many of a workflow that calls itself, two steps per round, against a chain of as ` +
    'many steps. All but the first with a third of the rounds.',
  async measure(bench) {
    return [await conditions(bench), await items(bench), await rounds(bench), ...(await memory(bench))];
  },
};

async function conditions(bench: Bench): Promise<Figure> {
  const project = makeProject(bench, 'conditions');
  const ids = Array.from({ length: CONDITIONS }, (_, index) => `b${index}`);
  const steps = ids.map((id) => `[[main.steps]]\nid = "${id}"\nexecutor = "branch"\ncondition = "true"\n`);
  writeFileSync(join(project, 'wide.meow.toml'), `[main]\n${steps.join('\n')}`);
  writeFileSync(
    join(project, 'Makefile'),
    `all: ${ids.join(' ')}\n.PHONY: all ${ids.join(' ')}\n${ids.join(' ')}:\n\tsh -c true\n`,
  );
  const samples = await interleaveWarm(bench.rounds, {
    meow: () => timeProcess(MEOW, ['run', 'wide.meow.toml'], project),
    make: () => timeProcess('make', ['-s', `-j${AT_ONCE}`], project),
  });
  const ms = median(samples.meow);
  return figure({
    what: `${count(CONDITIONS)} branch conditions, against make -j${AT_ONCE}`,
    measured: `${duration(ms)}, ${count((CONDITIONS / ms) * 1000)} conditions/s`,
    against: duration(median(samples.make)),
    values: ratios(samples.meow, samples.make),
    unit: '×',
    target: atMost(2.5),
    samples,
  });
}

async function items(bench: Bench): Promise<Figure> {
  const project = makeProject(bench, 'items');
  for (const size of [1, FEW, MANY]) {
    const list = JSON.stringify(Array.from({ length: size }, (_, index) => index));
    writeFileSync(join(project, `${size}.json`), list);
    writeFileSync(
      join(project, `${size}.meow.toml`),
      `[main]\n[[main.steps]]\nid = "each"\nexecutor = "foreach"\nitems_file = "${size}.json"\nitem_var = "item"\n` +
        'template = ".one"\n[one]\n[[one.steps]]\nid = "do"\nexecutor = "shell"\ncommand = "true"\n',
    );
  }
  const time = (size: number): number => timeProcess(MEOW, ['run', `${size}.meow.toml`], project);
  const perItem = (size: number) => (): number => (time(size) - time(1)) / (size - 1);
  time(FEW);
  const samples = await interleave(thirdOf(bench), { few: perItem(FEW), many: perItem(MANY) });
  return figure({
    what: `cost of an item: a foreach of ${count(MANY)} against one of ${FEW}`,
    measured: duration(median(samples.many)),
    against: duration(median(samples.few)),
    values: ratios(samples.many, samples.few),
    unit: '×',
    target: atMost(1.5),
    samples,
  });
}

async function rounds(bench: Bench): Promise<Figure> {
  const project = makeProject(bench, 'rounds');
  writeFileSync(join(project, '.meow', 'config.toml'), LIMITS);
  for (const size of [1, FEW, ROUNDS_OF_LOOP]) writeFileSync(join(project, `${size}.meow.toml`), loopText(size));
  const time = (size: number): number => timeProcess(MEOW, ['run', `${size}.meow.toml`], project);
  const perRound = (size: number) => (): number => (time(size) - time(1)) / (size - 1);
  time(FEW);
  const samples = await interleave(thirdOf(bench), { few: perRound(FEW), many: perRound(ROUNDS_OF_LOOP) });
  return figure({
    what: `cost of a round: a loop of ${count(ROUNDS_OF_LOOP)} against one of ${FEW}`,
    measured: duration(median(samples.many)),
    against: duration(median(samples.few)),
    values: ratios(samples.many, samples.few),
    unit: '×',
    target: atMost(1.5),
    samples,
  });
}

async function memory(bench: Bench): Promise<readonly Figure[]> {
  const project = makeProject(bench, 'loop');
  writeFileSync(join(project, '.meow', 'config.toml'), LIMITS);
  writeFileSync(join(project, 'loop.meow.toml'), loopText(ROUNDS_OF_LOOP));
  writeFileSync(
    join(project, 'recursion.meow.toml'),
    '[main]\n[main.variables]\nn = { default = 1, type = "int" }\n' +
      '[[main.steps]]\nid = "work"\nexecutor = "shell"\ncommand = "echo $(({{n}} + 1))"\n' +
      'outputs = { next = { source = "stdout", type = "int" } }\n' +
      '[[main.steps]]\nid = "loop"\nexecutor = "branch"\n' +
      `condition = "test {{work.outputs.next}} -le ${ROUNDS_OF_LOOP}"\nneeds = ["work"]\n` +
      '[main.steps.on_true]\ntemplate = "main"\nvariables = { n = "{{work.outputs.next}}" }\n',
  );
  writeFileSync(join(project, 'chain.meow.toml'), workflowText('chain', 2 * ROUNDS_OF_LOOP));
  const peak = (name: string) => (): number => peakOf(bench, [MEOW, 'run', `${name}.meow.toml`], project);
  const samples = await interleave(1, { loop: peak('loop'), recursion: peak('recursion'), chain: peak('chain') });
  const against = (what: string, peaks: readonly number[]): Figure =>
    figure({
      what: `peak memory: ${what} of ${count(ROUNDS_OF_LOOP)} rounds, against a chain of as many steps`,
      measured: `${count(median(peaks))} MB`,
      against: `${count(median(samples.chain))} MB`,
      values: ratios(peaks, samples.chain),
      unit: '×',
      target: atMost(2),
      samples,
    });
  return [against('a loop', samples.loop), against('a recursion', samples.recursion)];
}

/** A loop whose last round is the given one. */
function loopText(rounds: number): string {
  return (
    '[main]\n[[main.steps]]\nid = "loop"\nexecutor = "loop"\n' +
    `until = "test {{work.outputs.n}} = ${rounds}"\nmax_rounds = ${rounds}\n` +
    'inline = [{ id = "work", executor = "shell", command = "echo {{round}}", outputs = { n = "stdout" } }]\n'
  );
}

function thirdOf({ rounds }: Bench): number {
  return Math.max(1, Math.round(rounds / 3));
}
