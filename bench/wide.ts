// Independent steps: how fast commands are started and their exits recorded.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Measurement } from './measure.ts';
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
import { timeStepFiles } from './step-files.ts';
import { stepId, workflowText } from './workflow.ts';

const STEPS = 500;
const AT_ONCE = 8;

export const wide: Measurement = {
  name: 'wide',
  method:
    `${STEPS} independent steps \`true\`, with \`meow run\`, against \`make -j${AT_ONCE}\` with as many targets ` +
    `\`sh -c true\`, and against a loop in Node that keeps ${AT_ONCE} of them running. All three as whole processes. In brackets: the files of the steps, as for the chain.`,
  async measure(bench) {
    const project = makeProject(bench, 'wide');
    writeFileSync(join(project, 'wide.meow.toml'), workflowText('wide', STEPS));
    writeFileSync(join(project, 'Makefile'), makefile());
    const samples = await interleaveWarm(bench.rounds, {
      meow: () => timeProcess(MEOW, ['run', 'wide.meow.toml'], project),
      make: () => timeProcess('make', ['-s', `-j${AT_ONCE}`], project),
      node: () => timeSpawnLoop(STEPS, AT_ONCE, project),
      files: () => timeStepFiles(bench.folder, STEPS),
    });
    const ms = median(samples.meow);
    const measured = `${duration(ms)}, ${count((STEPS / ms) * 1000)} steps/s`;
    return [
      figure({
        what: `${STEPS} independent steps, against make -j${AT_ONCE}`,
        measured,
        against: `${duration(median(samples.make))} (files of steps alone: ${duration(median(samples.files))})`,
        values: ratios(samples.meow, samples.make),
        unit: '×',
        target: atMost(2.5),
        samples: { meow: samples.meow, make: samples.make },
      }),
      figure({
        what: `${STEPS} independent steps, against a spawn loop in Node`,
        measured,
        against: duration(median(samples.node)),
        values: ratios(samples.meow, samples.node),
        unit: '×',
        samples: { meow: samples.meow, node: samples.node, files: samples.files },
      }),
    ];
  },
};

/** `make` starts a command without a shell if it can, so a shell is requested. */
function makefile(): string {
  const targets = Array.from({ length: STEPS }, (_, index) => stepId(index)).join(' ');
  return `all: ${targets}\n.PHONY: all ${targets}\n${targets}:\n\tsh -c true\n`;
}
