// A chain of steps: the time of a single step, from the end of the previous one to its own.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
import type { Measurement } from './measure.ts';
import { timeSpawnLoop } from './spawn-loop.ts';
import { timeStepFiles } from './step-files.ts';
import { workflowText } from './workflow.ts';

const STEPS = 300;

export const chain: Measurement = {
  name: 'chain',
  method:
    `${STEPS} steps \`true\`, each of which needs the previous one, with \`meow run\`, against a loop of as many \`sh -c true\` ` +
    'in bash, and in Node. All three as whole processes, including start and exit. In brackets: the time of the file system for ' +
    'the folders and files of the steps, which the loops do not create.',
  async measure(bench) {
    const project = makeProject(bench, 'chain');
    writeFileSync(join(project, 'chain.meow.toml'), workflowText('chain', STEPS));
    const loop = `for ((n = 0; n < ${STEPS}; n++)); do sh -c true; done`;
    const samples = await interleaveWarm(bench.rounds, {
      meow: () => timeProcess(MEOW, ['run', 'chain.meow.toml'], project),
      bash: () => timeProcess('bash', ['-c', loop], project),
      node: () => timeSpawnLoop(STEPS, 1, project),
      files: () => timeStepFiles(bench.folder, STEPS),
    });
    const ms = median(samples.meow);
    const measured = `${duration(ms)}, ${count((STEPS / ms) * 1000)} steps/s`;
    return [
      figure({
        what: `chain of ${STEPS} steps, against a bash loop`,
        measured,
        against: `${duration(median(samples.bash))} (files of steps alone: ${duration(median(samples.files))})`,
        values: ratios(samples.meow, samples.bash),
        unit: '×',
        target: atMost(3.3),
        samples: { meow: samples.meow, bash: samples.bash },
      }),
      figure({
        what: `chain of ${STEPS} steps, against a spawn loop in Node`,
        measured,
        against: duration(median(samples.node)),
        values: ratios(samples.meow, samples.node),
        unit: '×',
        samples: { meow: samples.meow, node: samples.node, files: samples.files },
      }),
    ];
  },
};
