// Notifications to a receiver that does not exist: what they cost the run.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Measurement } from './measure.ts';
import { atMost, duration, figure, interleaveWarm, makeProject, median, MEOW, ratios, timeProcess } from './measure.ts';
import { workflowText } from './workflow.ts';

const STEPS = 300;

export const notify: Measurement = {
  name: 'notify',
  method:
    `A chain of ${STEPS} steps \`true\` with \`meow run\`, with \`[notify]\` for every kind of message and a webhook on a port without a ` +
    'server, against the same without it. Whole processes, including start and exit.',
  async measure(bench) {
    const [quiet, told] = ['quiet', 'told'].map((name) => {
      const project = makeProject(bench, name);
      writeFileSync(join(project, 'chain.meow.toml'), workflowText('chain', STEPS));
      return project;
    }) as [string, string];
    const kinds = ['gate', 'question', 'failed', 'done', 'paused', 'limit', 'stuck'];
    mkdirSync(join(told, '.meow'), { recursive: true });
    const config = `[notify]\non = ${JSON.stringify(kinds)}\nwebhook = "http://127.0.0.1:9/"\n`;
    writeFileSync(join(told, '.meow/config.toml'), config);
    const samples = await interleaveWarm(bench.rounds, {
      told: () => timeProcess(MEOW, ['run', 'chain.meow.toml'], told),
      quiet: () => timeProcess(MEOW, ['run', 'chain.meow.toml'], quiet),
    });
    return [
      figure({
        what: `chain of ${STEPS} steps with notifications to a dead receiver, against none`,
        measured: duration(median(samples.told)),
        against: duration(median(samples.quiet)),
        values: ratios(samples.told, samples.quiet),
        unit: '×',
        target: atMost(1.05),
        samples,
      }),
    ];
  },
};
