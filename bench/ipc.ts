// The cost for a step or an agent to contact its run. Hooks do this at every turn of an agent, so it must be
// negligible.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Measurement } from './measure.ts';
import {
  atMost,
  duration,
  environment,
  figure,
  interleaveWarm,
  makeProject,
  median,
  MEOW,
  ratios,
  timeProcess,
} from './measure.ts';

/** They are short, so there are more rounds than elsewhere. */
const MORE_ROUNDS = 4;

const COMMANDS = {
  event: { args: ['event', 'tool-completed', '--data', 'tool=Write'], target: atMost(0.35) },
  prime: { args: ['prime', '--format', 'prompt'], target: atMost(2) },
  done: { args: ['done', '--output', 'summary=ok'], target: atMost(2) },
  'step-status': { args: ['step-status', 'work-0'], target: null },
} as const;

export const ipc: Measurement = {
  name: 'ipc',
  method:
    'Commands of an agent, as whole processes, during its run, against `node -e 0`. Each `done` is accepted, and ' +
    `finishes a step. ${MORE_ROUNDS} times the rounds of the other measurements.`,
  async measure(bench) {
    const rounds = bench.rounds * MORE_ROUNDS;
    const project = makeProject(bench, 'ipc');
    // One for each `done`, including the warm-up round, and one that is never done.
    writeFileSync(join(project, 'work.meow.toml'), workflow(rounds + 2));
    // The agent takes its prompts and leaves the reports to us.
    writeFileSync(join(project, 'work.sim.toml'), '[[on]]\ndo = [{ hang = true }]\n');
    const run = spawn(MEOW, ['run', 'work.meow.toml', '--id', 'wf-ipc'], {
      cwd: project,
      env: environment(project),
      stdio: 'ignore',
    });
    const ended = new Promise((resolve) => run.once('exit', resolve));
    const folder = join(project, '.meow', 'workflows', 'wf-ipc');
    const inRun = {
      MEOW_WORKFLOW: 'wf-ipc',
      MEOW_AGENT: 'worker',
      MEOW_ORCH_SOCK: join(folder, 'sock'),
      MEOW_INBOX: join(folder, 'inbox'),
    };
    let reported = 0;
    const time = async (args: readonly string[]): Promise<number> => {
      if (args[0] === 'done') await begun(folder, `work-${reported++}`);
      return timeProcess(MEOW, args, project, inRun);
    };
    await begun(folder, 'work-0');
    const samples = await interleaveWarm<string>(rounds, {
      node: () => timeProcess('node', ['-e', '0'], project),
      ...Object.fromEntries(Object.entries(COMMANDS).map(([name, { args }]) => [name, () => time(args)])),
    });
    timeProcess(MEOW, ['stop', 'wf-ipc', '--force'], project);
    await ended;
    const node = samples['node'] ?? [];
    return Object.entries(COMMANDS).map(([name, { target }]) => {
      const taken = samples[name] ?? [];
      return figure({
        what: `ipc: meow ${name} in a run, against node -e 0`,
        measured: duration(median(taken)),
        against: duration(median(node)),
        values: ratios(taken, node),
        unit: '×',
        ...(target === null ? {} : { target }),
        samples: { [name]: taken, node },
      });
    });
  },
};

function workflow(steps: number): string {
  const work = Array.from({ length: steps }, (_, n) =>
    [
      '[[main.steps]]',
      `id = "work-${n}"`,
      'executor = "agent"',
      'agent = "worker"',
      'prompt = "Work."',
      `needs = ["${n === 0 ? 'spawn' : `work-${n - 1}`}"]`,
      'outputs = { summary = { required = true, type = "string" } }',
    ].join('\n'),
  );
  const spawned = '[[main.steps]]\nid = "spawn"\nexecutor = "spawn"\nagent = "worker"\nadapter = "sim"';
  return ['[main]', spawned, ...work, ''].join('\n');
}

/** Waits until the journal says that the step has started. */
async function begun(folder: string, step: string): Promise<void> {
  const journal = join(folder, 'journal.jsonl');
  const started = `{"kind":"step-started","step":"${step}"`;
  while (!existsSync(journal) || !readFileSync(journal, 'utf8').includes(started)) await sleep(5);
}
