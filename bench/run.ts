// npm run bench                       everything; rewrites RESULTS.md
// npm run bench -- chain wide         only these; RESULTS.md does not change
// npm run bench -- --rounds 9         default 5
// npm run bench -- --json             the raw samples instead of the table
//
// It measures and reports; a missed target does not fail the command.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { chain } from './chain.ts';
import { completions } from './completions.ts';
import { delivery } from './delivery.ts';
import { disk } from './disk.ts';
import { editor } from './editor.ts';
import { fork } from './fork.ts';
import { git } from './git.ts';
import { growth } from './growth.ts';
import { ipc } from './ipc.ts';
import { type Figure, type Measurement, ROOT, withFolder } from './measure.ts';
import { memory } from './memory.ts';
import { prove } from './prove.ts';
import { isReached, machine, resultsDocument, textTable } from './report.ts';
import { raymond } from './raymond.ts';
import { resume } from './resume.ts';
import { shellCompletion } from './shell-completion.ts';
import { size } from './size.ts';
import { startup } from './startup.ts';
import { timeStepFiles } from './step-files.ts';
import { testing } from './testing.ts';
import { ui } from './ui.ts';
import { validate } from './validate.ts';
import { wide } from './wide.ts';

const MEASUREMENTS: readonly Measurement[] = [
  disk,
  startup,
  ipc,
  chain,
  wide,
  completions,
  resume,
  fork,
  memory,
  size,
  growth,
  delivery,
  raymond,
  git,
  validate,
  testing,
  prove,
  editor,
  shellCompletion,
  ui,
];

const FILES_TRIED = 100;
/** A command takes about a millisecond: the files must not take a large part of that. */
const FILES_SLOW_MS = 0.2;
/** Some file systems scan files that were deleted in the last five minutes whenever a file is created. */
const REST_MAX_S = 360;
const REST_S = 20;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { rounds: { type: 'string', default: '5' }, json: { type: 'boolean', default: false } },
  });
  const rounds = Number(values.rounds);
  const unknown = positionals.filter((wanted) => MEASUREMENTS.every(({ name }) => name !== wanted));
  if (unknown.length > 0 || !Number.isSafeInteger(rounds) || rounds < 1) {
    process.stderr.write(
      `usage: npm run bench -- [${MEASUREMENTS.map(({ name }) => name).join(' | ')}]… [--rounds N] [--json]\n`,
    );
    process.exitCode = 2;
    return;
  }
  const chosen = MEASUREMENTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const tell = (line: string): boolean => process.stderr.write(`${line}\n`);

  execFileSync(process.execPath, [join(ROOT, 'scripts', 'build.mjs')], { stdio: 'inherit' });
  tell(`${machine()}; load ${load()}; ${rounds} rounds`);
  const figures: Figure[] = [];
  await withFolder(async (root) => {
    await fileSystemAtRest(root, tell);
    for (const measurement of chosen) {
      const began = performance.now();
      const folder = join(root, measurement.name);
      mkdirSync(folder);
      figures.push(...(await measurement.measure({ rounds, folder })));
      tell(`${measurement.name.padEnd(12)} ${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s`);
    }
  });
  tell(`load ${load()}\n`);

  const shown = values.json
    ? JSON.stringify({
        machine: machine(),
        rounds,
        figures: figures.map((one) => ({ ...one, reached: isReached(one) })),
      })
    : textTable(figures);
  process.stdout.write(`${shown}\n`);
  if (chosen.length < MEASUREMENTS.length) return;
  writeFileSync(join(ROOT, 'bench', 'RESULTS.md'), resultsDocument(chosen, figures, rounds));
}

/** Otherwise the figures of everything that runs commands would mean little. */
async function fileSystemAtRest(root: string, tell: (line: string) => void): Promise<void> {
  for (let waited = 0; ; waited += REST_S) {
    const filesMs = timeStepFiles(root, FILES_TRIED) / FILES_TRIED;
    if (filesMs <= FILES_SLOW_MS) return;
    const slow = `the file system is slow at the moment: ${filesMs.toFixed(1)} ms for the files of a step (bench/step-files.ts)`;
    if (waited >= REST_MAX_S) {
      tell(`${slow}. What runs commands suffers from it; set TMPDIR to another one.`);
      return;
    }
    tell(`${slow}, as after many files were deleted; waiting`);
    await sleep(REST_S * 1_000);
  }
}

function load(): string {
  return loadavg()
    .map((value) => value.toFixed(1))
    .join(' ');
}

await main();
