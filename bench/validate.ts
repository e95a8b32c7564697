// A validation step without git: what it takes beyond the command that it runs. The engine and its journal are left out.

import { localRunFiles } from '../src/stores/local-run-files.ts';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ok } from '../src/base/result.ts';
import { commandDriver } from '../src/drivers/command/command-driver.ts';
import { networkDenial, withoutNetwork } from '../src/drivers/conductor/network.ts';
import { opcodeDriver } from '../src/drivers/conductor/opcode-driver.ts';
import type { Driver } from '../src/engine/ports.ts';
import type { Effect } from '../src/ir/effect.ts';
import type { Validator } from '../src/ir/conducted.ts';
import { atMost, duration, environment, figure, interleaveWarm, median } from './measure.ts';
import type { Bench, Figure, Measurement } from './measure.ts';

/** A process takes milliseconds, and those vary. */
const PER_ROUND = 20;

export const validate: Measurement = {
  name: 'validate',
  method:
    `A step with one validator, from being asked for to being answered, with its artifacts on the disk, against the same ` +
    `command started by Node; ${PER_ROUND} in a row, the difference for one. Of a script, the command has no network either.`,
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
  readonly driver: Driver;
}

async function overhead(
  bench: Bench,
  place: Place,
  what: string,
  command: string,
  validator: Validator,
): Promise<Figure> {
  const samples = await interleaveWarm(bench.rounds, {
    meow: () => repeat(() => validated(place.driver, validator)),
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

let visits = 0;

function validated(driver: Driver, validator: Validator): Promise<void> {
  visits += 1;
  const step = `check#${visits}`;
  const effect: Effect = {
    id: `${step}#1`,
    step,
    attempt: 1,
    spec: { kind: 'validate', validators: [validator], idleMs: 30_000, witnesses: {} },
    session: { kind: 'fresh' },
    lane: 'main',
    variables: {},
  };
  return new Promise((resolve, reject) => {
    driver.start(effect, (outcome) => {
      if (outcome.kind === 'success') resolve();
      else reject(new Error(outcome.failure.message));
    });
  });
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
  const command = commandDriver(run);
  const driver = opcodeDriver({
    run,
    runDir,
    runDirName: '.meow/run/bench',
    workspace: { open: () => Promise.resolve(ok({ folder: tree, git: null })) },
    history: () => [],
    turn: command,
    command,
    settings: { allowedEntrypoints: [], envAllow: [], protectedBranches: [] },
  });
  return { tree, script, driver };
}
