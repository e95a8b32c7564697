// How long the user waits for commands that do almost nothing.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Measurement } from './measure.ts';
import { atMost, duration, figure, interleaveWarm, makeProject, median, MEOW, ratios, timeProcess } from './measure.ts';
import { workflowText } from './workflow.ts';

/** They are short, so there are more rounds than elsewhere. */
const MORE_ROUNDS = 4;

export const startup: Measurement = {
  name: 'startup',
  method: `Short commands as whole processes, against \`node -e 0\`. ${MORE_ROUNDS} times the rounds of the other measurements.`,
  async measure(bench) {
    const project = makeProject(bench, 'startup');
    writeFileSync(join(project, 'one.toml'), workflowText('wide', 1));
    timeProcess(MEOW, ['run', 'one.toml', '--id', 'wf-one'], project);
    const commands = {
      '--version': ['--version'],
      help: ['help'],
      'validate of one step': ['validate', 'one.toml'],
      'status of one step': ['status', 'wf-one'],
    };
    const samples = await interleaveWarm<string>(bench.rounds * MORE_ROUNDS, {
      node: () => timeProcess('node', ['-e', '0'], project),
      ...Object.fromEntries(
        Object.entries(commands).map(([name, args]) => [name, () => timeProcess(MEOW, args, project)]),
      ),
    });
    const node = samples['node'] ?? [];
    return Object.keys(commands).map((name) => {
      const taken = samples[name] ?? [];
      return figure({
        what: `start-up: meow ${name}, against node -e 0`,
        measured: duration(median(taken)),
        against: duration(median(node)),
        values: ratios(taken, node),
        unit: '×',
        ...(name === '--version' ? { target: atMost(1.6) } : {}),
        samples: { [name]: taken, node },
      });
    });
  },
};
