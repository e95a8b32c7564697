// A validation step without git: its cost besides the command. Its journal is in memory.

import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ok } from '../src/base/errors.ts';
import { limitedCommands } from '../src/drivers/command/limited-commands.ts';
import { networkDenial, withoutNetwork } from '../src/drivers/conductor/entrypoint.ts';
import type { Validator } from '../src/ir/conductor.ts';
import { localRunFiles } from '../src/stores/local-run-files.ts';
import { Visits } from '../test/contracts/opcode-visit.ts';
import type { Bench, Figure, Measurement } from './measure.ts';
import { atMost, duration, environment, figure, interleaveWarm, median } from './measure.ts';

/** A process takes milliseconds, and they vary. */
const PER_ROUND = 20;

export const validate: Measurement = {
  name: 'validate',
  method:
    `A step with one validator, from request to answer, with its artifacts on disk, against the same ` +
    `command started by Node; ${PER_ROUND} in a row, the difference for one. For a script, that command has no network either.`,
  async measure(bench) {
    const place = makePlace(bench);
    const command = 'cat input > output';
    const plain = { cwd: null, timeoutMs: 60_000, artifacts: ['output'] };
    const denial = await networkDenial(environment(bench.folder));
    const denied = withoutNetwork(denial, [place.script], bench.folder).join(' ');
    return [
      await overhead(bench, place, 'a command', command, { ...plain, kind: 'builtin', id: 'tests', command }),
      await overhead(bench, place, 'a script', denied, {
        ...plain,
        kind: 'script',
        id: 'harness',
        entrypoint: place.script,
        args: [],
      }),
    ];
  },
};

interface Place {
  readonly tree: string;
  readonly script: string;
  readonly visits: Visits;
}

async function overhead(
  bench: Bench,
  place: Place,
  what: string,
  command: string,
  validator: Validator,
): Promise<Figure> {
  const samples = await interleaveWarm(bench.rounds, {
    meow: () => repeat(() => validated(place.visits, validator)),
    command: () => repeat(() => run(command, place.tree, bench)),
  });
  return figure({
    what: `validate: a step with ${what}, beyond the command`,
    measured: duration(median(samples.meow)),
    against: duration(median(samples.command)),
    values: samples.meow.map((ms, round) => ms - (samples.command[round] ?? 0)),
    unit: 'ms',
    target: atMost(3),
    samples,
  });
}

async function repeat(once: () => Promise<void>): Promise<number> {
  const began = performance.now();
  for (let n = 0; n < PER_ROUND; n += 1) await once();
  return (performance.now() - began) / PER_ROUND;
}

let count = 0;

async function validated(visits: Visits, validator: Validator): Promise<void> {
  count += 1;
  const outcome = await visits.perform({
    visit: `check#${count}`,
    spec: { kind: 'run_validation', validators: [validator], idleMs: 30_000, envAllow: [], witness: null },
  });
  if (outcome.kind === 'failure') throw new Error(outcome.failure.message);
}

function run(command: string, cwd: string, bench: Bench): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', command], { cwd, stdio: 'ignore', env: environment(bench.folder) });
    child.once('error', reject).once('exit', () => resolve());
  });
}

function makePlace(bench: Bench): Place {
  const [tree, runFolder, runDir] = ['tree', 'run', 'run-dir'].map((name) => join(bench.folder, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [tree, runFolder, runDir]) mkdirSync(folder);
  writeFileSync(join(tree, 'input'), 'some words\n'.repeat(100));
  const script = join(runDir, 'harness.sh');
  writeFileSync(script, '#!/bin/sh\ncat input > output\n', { mode: 0o755 });
  const run = {
    runId: 'bench',
    mark: 'm',
    files: localRunFiles(runFolder),
    cwd: tree,
    environment: environment(bench.folder),
    socket: join(bench.folder, 'sock'),
    inbox: join(bench.folder, 'inbox'),
  };
  const command = limitedCommands(run);
  const visits = new Visits({
    context: {
      run,
      runDir,
      runDirName: '.meow/run/bench',
      workspace: { open: () => Promise.resolve(ok({ folder: tree, git: null, start: null })) },
      history: () => [],
      settings: { allowedEntrypoints: [], protectedBranches: [] },
    },
    drivers: () => ({ command, turn: command }),
  });
  return { tree, script, visits };
}
