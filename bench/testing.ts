// `meow test`: many tests, a crash sweep, and memory.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench, Figure, Measurement } from './measure.ts';
import {
  atMost,
  count,
  duration,
  figure,
  interleaveWarm,
  makeProject,
  median,
  MEOW,
  ratios,
  timeProcess,
} from './measure.ts';
import { peakOf } from './peak.ts';

const TESTS = 500;
const FEW = 1_000;
const MANY = 10_000;

export const testing: Measurement = {
  name: 'testing',
  method:
    `\`meow test\` as a whole process. ${TESTS} tests of a workflow with 20 steps, without the time of a file with one test, ` +
    'against `node -e 0`. `--crash` of one test against that test without it, each in a process of its own, by the ' +
    '`real_ms` that they report. ' +
    `Peak memory of ${count(MANY)} tests against ${count(FEW)}.`,
  async measure(bench) {
    const project = makeProject(bench, 'testing');
    writeFileSync(join(project, 'flow.meow.toml'), workflow());
    for (const tests of [1, TESTS, FEW, MANY]) writeFileSync(join(project, `${tests}.test.toml`), testFile(tests));
    return [await manyTests(bench, project), await crashSweep(bench, project), memoryOf(bench, project)];
  },
};

/** Chains of commands, an agent, and a gate: 20 steps. */
function workflow(): string {
  const step = (id: string, needs: string | null, rest: string): string =>
    `[[main.steps]]\nid = "${id}"\n${rest}\n${needs === null ? '' : `needs = ["${needs}"]\n`}`;
  const commands = Array.from({ length: 16 }, (_, index) =>
    step(`c${index}`, index < 4 ? null : `c${index - 4}`, 'executor = "shell"\ncommand = "make"'),
  );
  return [
    '[main]\nname = "flow"\n',
    ...commands,
    step('start', 'c15', 'executor = "spawn"\nagent = "worker"'),
    step('work', 'start', 'executor = "agent"\nagent = "worker"\nprompt = "Work."'),
    step('gate', 'work', 'executor = "branch"\ncondition = "meow await-approval gate"\non_true = { inline = [] }'),
    step('stop', 'gate', 'executor = "kill"\nagent = "worker"'),
  ].join('\n');
}

function testFile(tests: number): string {
  const head = 'workflow = "flow.meow.toml"\n\n[defaults]\n[[defaults.command]]\nstep = "c*"\n\n';
  const gate = '[[defaults.gate]]\ngate = "gate"\nafter = "2d"\ndecide = "approve"\n\n';
  const each = (index: number): string =>
    `[[test]]\nname = "${index}"\n[test.expect]\nsteps = { stop = "done" }\norder = ["c0 < c4"]\n`;
  return `${head}${gate}${Array.from({ length: tests }, (_, index) => each(index)).join('\n')}`;
}

async function manyTests(bench: Bench, project: string): Promise<Figure> {
  const samples = await interleaveWarm(bench.rounds, {
    node: () => timeProcess('node', ['-e', '0'], project),
    one: () => timeProcess(MEOW, ['test', '1.test.toml'], project),
    all: () => timeProcess(MEOW, ['test', `${TESTS}.test.toml`], project),
  });
  const taken = samples.all.map((ms, round) => ms - (samples.one[round] ?? 0));
  return figure({
    what: `${TESTS} tests of 20 steps, beyond start-up, against node -e 0`,
    measured: duration(median(taken)),
    against: duration(median(samples.node)),
    values: ratios(taken, samples.node),
    unit: '×',
    target: atMost(25),
    samples,
  });
}

async function crashSweep(bench: Bench, project: string): Promise<Figure> {
  // Commands that end one after the other, so that each has a record of its own.
  const rules = Array.from(
    { length: 16 },
    (_, index) => `[[test.command]]\nstep = "c${index}"\ntakes = "${index + 1}s"\n`,
  );
  const gate = '[[test.gate]]\ngate = "gate"\ndecide = "approve"\n';
  const text = `workflow = "flow.meow.toml"\n[[test]]\nname = "a"\n${rules.join('')}${gate}`;
  writeFileSync(join(project, 'crash.test.toml'), text);
  const realMs = (...flags: readonly string[]): number => {
    const output = execFileSync(MEOW, ['test', 'crash.test.toml', '--json', ...flags], {
      cwd: project,
      encoding: 'utf8',
    });
    const { real_ms: ms } = JSON.parse(output.split('\n', 1)[0] ?? '') as { readonly real_ms: number };
    return ms;
  };
  const samples = await interleaveWarm(bench.rounds, { single: () => realMs(), swept: () => realMs('--crash') });
  return figure({
    what: '--crash of one test, against that test',
    measured: duration(median(samples.swept)),
    against: duration(median(samples.single)),
    values: ratios(samples.swept, samples.single),
    unit: '×',
    target: atMost(80),
    samples,
  });
}

function memoryOf(bench: Bench, project: string): Figure {
  const few = peakOf(bench, [MEOW, 'test', `${FEW}.test.toml`], project);
  const many = peakOf(bench, [MEOW, 'test', `${MANY}.test.toml`], project);
  return figure({
    what: `memory of ${count(MANY)} tests, against ${count(FEW)}`,
    measured: `${many.toFixed(0)} MB`,
    against: `${few.toFixed(0)} MB`,
    values: [many / few],
    unit: '×',
    target: atMost(1.2),
    samples: { 'few (MB)': [few], 'many (MB)': [many] },
  });
}
