// The run directory of a Conductor run, as an observer; with the patch of all changes when the engine closes.

import { resolve } from 'node:path';
import { branchOf } from '../drivers/git/repository.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { worktreePath } from '../drivers/conductor/workspace.ts';
import type { Program } from '../ir/program.ts';
import { visitsOf } from '../view/visits.ts';
import { conductorPlaces } from './conductor-places.ts';
import type { ConductorRun } from './conductor-run.ts';
import type { LiveRun, RunObserver } from './observer.ts';
import { RunDirectory } from './run-directory.ts';

export interface ConductorDirectoryOptions {
  readonly surroundings: DriverContext;
  readonly program: Program;
  readonly run: LiveRun;
  /** Loads what works on the repository. */
  conductor(): Promise<ConductorRun>;
  /** Takes a line for people. */
  warn(line: string): void;
}

export function conductorDirectory(options: ConductorDirectoryOptions): RunObserver {
  const { surroundings, program, run } = options;
  const { runDir, project, kind, base, workflowId } = conductorPlaces(surroundings, program);
  const directory = new RunDirectory({
    path: runDir,
    runs: resolve(surroundings.files.localPath(''), '..'),
    runId: surroundings.runId,
    mark: surroundings.mark,
    program,
    workflowId,
    base,
    worktree: kind === 'worktree' ? worktreePath(project, surroundings.runId) : project,
    branch: kind === 'worktree' ? branchOf(surroundings.runId) : null,
    warn: (line) => options.warn(line),
  });
  return {
    open: (_run, before) => directory.open(before),
    observe: (records, state) => directory.observe(records, state),
    async close() {
      const { state } = run;
      // No worktree is made only to find that nothing has changed in it.
      const worked = visitsOf(state.steps.values()).some(({ kind: what }) => what !== 'gate' && what !== 'halt');
      const conductor = kind === 'as-it-is' || !worked ? null : await options.conductor();
      const { patch, problem } = (await conductor?.writePatch()) ?? { patch: null, problem: null };
      if (problem !== null) options.warn(`cannot write diff.patch: ${problem}`);
      await directory.finish(state, patch);
      await conductor?.release(state);
    },
  };
}
