// Resumes a large run: measures the time, and checks that no finished step runs again.

import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileStore } from '../src/stores/files.ts';
import { runEngine } from './engine-run.ts';
import type { Bench, Measurement } from './measure.ts';
import { atMost, count, duration, figure, interleaveWarm, makeProject, median, MEOW, timeProcess } from './measure.ts';
import { compileShape, stepId } from './workflow.ts';

const STEPS = 10_000;
const RUN_ID = 'wf-large';
const LAST = stepId(STEPS - 1);

export const resume: Measurement = {
  name: 'resume',
  method:
    `A run of ${count(STEPS)} steps of which all but one are done, made by the engine with a driver that never answers the last. ` +
    'Each round resumes a fresh copy of it with `meow resume`, which runs the one step and exits; the time of `meow --version` ' +
    'is subtracted. After each round the journal and the files of steps are checked for a step that ran again.',
  async measure(bench) {
    const original = await makeUnfinishedRun(bench, STEPS);
    const project = join(bench.folder, 'copy');
    const samples = await interleaveWarm(bench.rounds, {
      async resume() {
        rmSync(project, { recursive: true, force: true });
        cpSync(original, project, { recursive: true });
        const ms = timeProcess(MEOW, ['resume', RUN_ID], project);
        await checkOnlyLastRan(project);
        return ms;
      },
      start: () => timeProcess(MEOW, ['--version'], bench.folder),
    });
    return [
      figure({
        what: `resume of ${count(STEPS)} steps, all but one done, over process start`,
        measured: `${duration(median(samples.resume))}, no finished step run`,
        against: `${duration(median(samples.start))} to start`,
        values: samples.resume.map((ms, round) => (ms - (samples.start[round] ?? 0)) / 1000),
        unit: 's',
        target: atMost(1),
        samples,
      }),
    ];
  },
};

/** Returns its project. */
export async function makeUnfinishedRun(bench: Bench, steps: number, name = 'original'): Promise<string> {
  const project = makeProject(bench, name);
  await runEngine({
    folder: runsOf(project),
    runId: RUN_ID,
    program: compileShape('wide', steps),
    unanswered: stepId(steps - 1),
    cwd: bench.folder,
  });
  return project;
}

export const UNFINISHED_ID = RUN_ID;

function runsOf(project: string): string {
  return join(project, '.meow', 'workflows');
}

async function checkOnlyLastRan(project: string): Promise<void> {
  const store = fileStore({ folder: runsOf(project) });
  const { records } = await store.read(RUN_ID);
  const starts = records.flatMap(({ decisions }) => decisions.filter(({ kind }) => kind === 'step-started'));
  const answers = records.flatMap(({ input }) => (input.kind === 'effect-finished' ? [input.effect] : []));
  const ran = readdirSync(store.files(RUN_ID).localPath('steps'));
  const ended = records.at(-1)?.decisions.some((decision) => decision.kind === 'run-ended') ?? false;
  if (starts.length === STEPS && new Set(answers).size === STEPS && answers.length === STEPS && ended) {
    if (ran.length > 0 && ran.every((name) => name.startsWith(`${LAST}.1.`))) return;
  }
  throw new Error(
    `a resume of ${STEPS} steps: ${starts.length} starts and ${answers.length} answers are recorded, ` +
      `commands left ${ran.length} files (${ran.slice(0, 5).join(', ')}), ended: ${ended}`,
  );
}
