// `meow test --from RUN`: writes a test from a run of this project. Its secrets are masked, in files and outputs too.

import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { resolveText } from '../drivers/outputs.ts';
import { stepFile, stepFolder } from '../drivers/step-folder.ts';
import { conductorOf, type Program } from '../ir/program.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import type { RepositoryReader, SnapshotFile } from '../testing/recorded-repository.ts';
import { testFromRun } from '../testing/test-from-run.ts';
import { localRunFiles } from '../stores/local-run-files.ts';
import { findProject, ownEnvironment, type Project } from './project.ts';
import { redactorOfRun } from './redact.ts';
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
  const redactor = redactorOfRun(resolve(project.runs, id));
  const read = (at: string): string | null =>
    tolerate([...ABSENT, 'EISDIR'], null, () => redactor.redact(readFileSync(at, 'utf8')));
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
    repository:
      conductorOf(program) === null
        ? undefined
        : { folder: relative(folder, cwd) || '.', reader: readerOf(project, { id, program, cwd }) },
  });
}

const NOTHING_NAMED = { workflow: null, tests: [], claims: [] };

/** Of a Conductor run that was started in this folder. */
function readerOf(
  project: Project,
  { id, program, cwd }: { readonly id: string; readonly program: Program; readonly cwd: string },
): RepositoryReader {
  const git = (...args: readonly string[]): Buffer => {
    const { status, stdout } = spawnSync('git', args, { cwd, env: ownEnvironment(), maxBuffer: OUTPUT_BYTES_MAX });
    if (status === 0) return stdout;
    const hint = 'write its test by hand: the folder of the repository, and what the agents do there';
    throw new UsageError(`files of run ${id} are no longer in the repository ${cwd}`, hint);
  };
  const known = new Map<string, ReadonlyMap<string, SnapshotFile>>();
  const files = localRunFiles(resolve(project.runs, id));
  const redactor = redactorOfRun(resolve(project.runs, id));
  const runDirectory = resolve(project.meow, '..', conductorOf(program)?.artifactsDir ?? '', id);
  return {
    files(commit) {
      const found = known.get(commit) ?? listedFiles(git('ls-tree', '-r', '-z', '--full-tree', commit));
      known.set(commit, found);
      return found;
    },
    contents: (file) => redactor.redactBytes(git('cat-file', 'blob', file.id)),
    runFile: (path) => {
      const at = resolve(runDirectory, path);
      const stats = tolerate(ABSENT, null, () => statSync(at));
      if (stats?.isFile() !== true) return null;
      return { contents: redactor.redactBytes(readFileSync(at)), isExecutable: (stats.mode & 0o100) !== 0 };
    },
    present: (path) =>
      tolerate([...ABSENT, 'EISDIR'], null, () => redactor.redactBytes(readFileSync(resolve(cwd, path)))),
    stored: (path) => JSON.parse(readFileSync(files.localPath(path), 'utf8')) as Json,
  };
}

/** More than a test file should have. */
const OUTPUT_BYTES_MAX = 64_000_000;

/** The output of `git ls-tree -r -z`. */
function listedFiles(output: Buffer): ReadonlyMap<string, SnapshotFile> {
  const entries = output.toString('utf8').split('\0');
  return new Map(
    entries.flatMap((entry) => {
      const [, mode, id, path] = /^(\d+) \w+ ([0-9a-f]+)\t([^]+)$/.exec(entry) ?? [];
      return mode === undefined || id === undefined || path === undefined ? [] : [[path, { mode, id }]];
    }),
  );
}
