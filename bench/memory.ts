// The most memory that a run ever holds.
//
// The system's own count (`maxrss`) of a child begins at what its parent held when it was forked, so on Linux the
// process reads its own high-water mark instead.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { atMost, count, figure, makeProject, MEOW, timeProcess } from './measure.ts';
import type { Bench, Figure, Measurement } from './measure.ts';
import { makeUnfinishedRun, UNFINISHED_ID } from './resume.ts';
import { workflowText } from './workflow.ts';

const STEPS = 10_000;
const COMMAND_STEPS = 2_000;

export const memory: Measurement = {
  name: 'memory',
  method:
    `The high-water mark of the process at its end. A run of ${count(STEPS)} independent steps by the engine with a driver in its own ` +
    `process, journal and state file; \`meow run\` of ${count(COMMAND_STEPS)} steps \`true\`; \`meow resume\` of ${count(STEPS)} steps of which ` +
    'all but one are done. Beside them what `node -e 0` holds. One round.',
  async measure(bench) {
    const preload = join(bench.folder, 'peak.cjs');
    writeFileSync(preload, PRELOAD);
    const peakOf = (args: readonly string[], cwd: string): number => {
      const file = join(bench.folder, 'peak');
      timeProcess('node', ['--require', preload, ...args], cwd);
      return Number(readFileSync(file, 'utf8')) / 1000;
    };
    const floor = peakOf(['-e', '0'], bench.folder);
    const peak = (what: string, args: readonly string[], cwd: string): Figure => {
      const value = peakOf(args, cwd);
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

/** In kilobytes, to a file beside this one: stdout belongs to the command. */
const PRELOAD = `
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
process.on('exit', () => {
  let peak = process.resourceUsage().maxRSS;
  if (process.platform === 'linux') peak = /VmHWM:\\s*(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1];
  writeFileSync(join(__dirname, 'peak'), String(peak));
});
`;

/** As one file, so that no compiler sits in the process that is weighed. */
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
