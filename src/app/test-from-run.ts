// `meow test --from RUN`: writes a test from a run of this project.

import { readFileSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { resolveText } from '../drivers/outputs.ts';
import { stepFile, stepFolder } from '../drivers/step-folder.ts';
import { conductorOf } from '../ir/program.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import { testFromRun } from '../testing/test-from-run.ts';
import { localRunFiles } from '../stores/local-run-files.ts';
import { findProject } from './project.ts';
import { readRun, resolveRun, storeOf } from './runs.ts';
import { workflowOf } from './testing.ts';

/** `file`: where the test will be, as the user wrote it; null if it is printed. */
export async function writeTestFrom(
  wanted: string,
  { name, file }: { readonly name: string | null; readonly file: string | null },
): Promise<string> {
  const project = findProject();
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  const { program, records, state } = await readRun(store, id);
  if (conductorOf(program) !== null)
    throw new UsageError(
      `run ${id} is a Conductor run, and its changes of the repository are not in its journal`,
      'write its test by hand: the folder of the repository, and what the agents do there',
    );
  const kept = [...state.steps.values()].find(({ keptFrom }) => keptFrom !== null);
  if (kept !== undefined)
    throw new UsageError(
      `run ${id} is a fork, and what its kept steps did is not in its journal: ${kept.id} ran in ${kept.keptFrom ?? ''}`,
      `write the test from a run of the whole workflow: meow run ${program.source.name}`,
    );
  const cwd = state.request?.cwd ?? project.cwd;
  const files = localRunFiles(resolve(project.runs, id));
  const path = resolve(cwd, program.source.name.replace(/#main$/, ''));
  const folder = file === null ? project.cwd : dirname(resolve(project.cwd, file));
  const found = file === null ? null : workflowOf({ path: resolve(folder, basename(file)), content: NOTHING_NAMED });
  const read = (at: string): string | null => tolerate([...ABSENT, 'EISDIR'], null, () => readFileSync(at, 'utf8'));
  return testFromRun({
    program,
    records,
    workflow: found === path ? null : relative(folder, path),
    name: name ?? `as in run ${id}`,
    text: (text) => {
      const whole = resolveText(text, files);
      if (!whole.ok) throw new UsageError(whole.error);
      return whole.value;
    },
    output: (step, attempt, stream) => read(stepFile(stepFolder(files, step, attempt), stream)) ?? '',
    file: (at) => read(resolve(cwd, at)),
  });
}

const NOTHING_NAMED = { workflow: null, tests: [], claims: [] };
