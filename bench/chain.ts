// A chain of steps: the time of a single step, from the end of the previous one to its own.

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
import { timeSpawnLoop } from './spawn-loop.ts';
import { deleteFiles, inodesOf, timeStepFiles } from './step-files.ts';
import { workflowText } from './workflow.ts';

const STEPS = 300;

const DELETIONS = 20_000;

export const chain: Measurement = {
  name: 'chain',
  method:
    `${STEPS} steps \`true\`, each of which needs the previous one, with \`meow run\`, against a loop of as many \`sh -c true\` ` +
    'in bash, and in Node. All three as whole processes, including start and exit. In brackets: the time of the file system for ' +
    `the files of the steps, which the loops do not create. First in a fresh folder, then after ${count(DELETIONS)} files were created ` +
    'and deleted next to it, which slows some file systems down. Then the files and folders that such a run leaves, a step.',
  async measure(bench) {
    const fresh = [...(await measureChain(bench, 'chain')), stepInodes(bench)];
    deleteFiles(bench.folder, DELETIONS);
    const [worn] = await measureChain(bench, 'worn', ` after ${count(DELETIONS)} deletions`);
    return worn === undefined ? fresh : [...fresh, worn];
  },
};

function stepInodes(bench: Bench): Figure {
  const project = makeProject(bench, 'inodes');
  writeFileSync(join(project, 'chain.meow.toml'), workflowText('chain', STEPS));
  timeProcess(MEOW, ['run', 'chain.meow.toml', '--id', 'r'], project);
  return inodesOf(join(project, '.meow/workflows/r/steps'), { what: 'a step', steps: STEPS, target: 3 });
}

async function measureChain(bench: Bench, name: string, where = ''): Promise<readonly Figure[]> {
  const project = makeProject(bench, name);
  writeFileSync(join(project, 'chain.meow.toml'), workflowText('chain', STEPS));
  const loop = `for ((n = 0; n < ${STEPS}; n++)); do sh -c true; done`;
  const samples = await interleaveWarm(bench.rounds, {
    meow: () => timeProcess(MEOW, ['run', 'chain.meow.toml'], project),
    bash: () => timeProcess('bash', ['-c', loop], project),
    node: () => timeSpawnLoop(STEPS, 1, project),
    files: () => timeStepFiles(project, STEPS),
  });
  const ms = median(samples.meow);
  const measured = `${duration(ms)}, ${count((STEPS / ms) * 1000)} steps/s`;
  return [
    figure({
      what: `chain of ${STEPS} steps${where}, against a bash loop`,
      measured,
      against: `${duration(median(samples.bash))} (files of steps alone: ${duration(median(samples.files))})`,
      values: ratios(samples.meow, samples.bash),
      unit: '×',
      target: atMost(3.3),
      samples: { meow: samples.meow, bash: samples.bash },
    }),
    figure({
      what: `chain of ${STEPS} steps${where}, against a spawn loop in Node`,
      measured,
      against: duration(median(samples.node)),
      values: ratios(samples.meow, samples.node),
      unit: '×',
      samples: { meow: samples.meow, node: samples.node, files: samples.files },
    }),
  ];
}
