// Forks a large run with one command changed, against a resume of the same run.

import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileStore } from '../src/stores/files.ts';
import type { Bench, Figure, Measurement } from './measure.ts';
import { atMost, count, duration, figure, interleaveWarm, median, MEOW, timeProcess } from './measure.ts';
import { peakOf } from './peak.ts';
import { makeUnfinishedRun, UNFINISHED_ID } from './resume.ts';
import { stepId, workflowText } from './workflow.ts';

const SIZES = [2_000, 10_000];
const SOURCE = 'w.meow.toml';
const FORK = 'wf-fork';

export const fork: Measurement = {
  name: 'fork',
  method:
    `A run of ${SIZES.map(count).join(' and of ')} steps of which all but one are done. Each round forks it with ` +
    '`meow fork --source`, from a file in which one command has changed, so that two steps run; and resumes a fresh copy of it ' +
    'with `meow resume`, which runs one step. Compiling the file is a part of the fork. After each round the journal is ' +
    'checked for a kept step that ran. The memory is the peak of the process, in one round.',
  measure: async (bench) => [
    ...(await measureSize(bench, SIZES[0] ?? 0, 2)),
    ...(await measureSize(bench, SIZES[1] ?? 0, 5)),
  ],
};

async function measureSize(bench: Bench, steps: number, target: number): Promise<readonly Figure[]> {
  const project = await makeUnfinishedRun(bench, steps, `fork-${steps}`);
  writeFileSync(
    join(project, SOURCE),
    workflowText('wide', steps).replace('command = "true"', 'command = "true # changed"'),
  );
  const forked = ['fork', UNFINISHED_ID, '--source', SOURCE, '--id', FORK];
  const clear = (): void => {
    for (const path of [FORK, `${FORK}.yaml`, `${FORK}.yaml.lock`])
      rmSync(join(project, '.meow/workflows', path), { recursive: true, force: true });
  };
  const copy = join(bench.folder, 'copy');
  const samples = await interleaveWarm(bench.rounds, {
    async fork() {
      clear();
      const ms = timeProcess(MEOW, forked, project);
      await checkTwoRan(project, steps);
      return ms;
    },
    resume() {
      rmSync(copy, { recursive: true, force: true });
      cpSync(project, copy, { recursive: true });
      return timeProcess(MEOW, ['resume', UNFINISHED_ID], copy);
    },
  });
  clear();
  const peak = peakOf(bench, [MEOW, ...forked], project);
  const resumed = peakOf(bench, [MEOW, 'resume', UNFINISHED_ID], project);
  return [
    figure({
      what: `fork of ${count(steps)} steps, one command changed`,
      measured: `${duration(median(samples.fork))}, no kept step run`,
      against: `${duration(median(samples.resume))} to resume it`,
      values: samples.fork.map((ms) => ms / 1000),
      unit: 's',
      target: atMost(target),
      samples,
    }),
    figure({
      what: `peak memory: ${count(steps)} steps, meow fork`,
      measured: `${count(peak)} MB`,
      against: `${count(resumed)} MB to resume it`,
      values: [peak],
      unit: 'MB',
      target: atMost(600),
      samples: { peakMb: [peak], resumeMb: [resumed] },
    }),
  ];
}

async function checkTwoRan(project: string, steps: number): Promise<void> {
  const { records } = await fileStore({ folder: join(project, '.meow/workflows') }).read(FORK);
  const starts = records.flatMap(({ decisions }) => decisions.filter((decision) => decision.kind === 'step-started'));
  const ran = starts.filter(({ keptFrom }) => keptFrom === undefined).map(({ step }) => step);
  const ended = records.at(-1)?.decisions.some(({ kind }) => kind === 'run-ended') ?? false;
  if (starts.length === steps && ran.join() === [stepId(0), stepId(steps - 1)].join() && ended) return;
  throw new Error(
    `a fork of ${steps} steps started ${starts.length}, of which ran: ${ran.slice(0, 5).join(', ')}, ended: ${ended}`,
  );
}
