// The peak memory of a run.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { atMost, type Bench, count, figure, type Figure, makeProject, type Measurement, MEOW } from './measure.ts';
import { peakOf } from './peak.ts';
import { makeUnfinishedRun, UNFINISHED_ID } from './resume.ts';
import { workflowText } from './workflow.ts';

const STEPS = 10_000;
const COMMAND_STEPS = 2_000;

export const memory: Measurement = {
  name: 'memory',
  method:
    `The peak memory of the process. A run of ${count(STEPS)} independent steps by the engine with a driver in its own ` +
    `process, journal and state file; \`meow run\` of ${count(COMMAND_STEPS)} steps \`true\`; \`meow resume\` of ${count(STEPS)} steps of which ` +
    'all but one are done. For comparison, the memory of `node -e 0`. One round.',
  async measure(bench) {
    const floor = peakOf(bench, ['-e', '0'], bench.folder);
    const peak = (what: string, args: readonly string[], cwd: string): Figure => {
      const value = peakOf(bench, args, cwd);
      return figure({
        what: `peak memory: ${what}`,
        measured: `${count(value)} MB`,
        against: `${count(floor)} MB for node alone`,
        values: [value],
        unit: 'MB',
        target: atMost(300),
        samples: { peakMb: [value], nodeMb: [floor] },
      });
    };
    const commands = makeProject(bench, 'commands');
    writeFileSync(join(commands, 'wide.meow.toml'), workflowText('wide', COMMAND_STEPS));
    const unfinished = await makeUnfinishedRun(bench, STEPS);
    return [
      peak(`${count(STEPS)} steps, engine alone`, [await bundleEngineRun(bench)], makeProject(bench, 'engine')),
      peak(`${count(COMMAND_STEPS)} steps, meow run`, [MEOW, 'run', 'wide.meow.toml'], commands),
      peak(`${count(STEPS)} steps, meow resume`, [MEOW, 'resume', UNFINISHED_ID], unfinished),
    ];
  },
};

/** Bundled as one file, so that no compiler is in the measured process. */
async function bundleEngineRun(bench: Bench): Promise<string> {
  const outfile = join(bench.folder, 'engine-run.cjs');
  await build({
    stdin: {
      contents: `
        import { runEngine } from './engine-run.ts';
        import { compileShape } from './workflow.ts';
        void runEngine({ folder: '.meow/workflows', runId: 'wf-1', program: compileShape('wide', ${STEPS}), stateFile: true });
      `,
      resolveDir: import.meta.dirname,
      loader: 'ts',
    },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    outfile,
    logLevel: 'error',
  });
  return outfile;
}
