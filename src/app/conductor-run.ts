// What a run of opcodes has beside any other: its directory, its worktree, and the drivers that work in it.

import { join, resolve } from 'node:path';
import { commandDriver } from '../drivers/command/command-driver.ts';
import type { RunSurroundings } from '../drivers/environment.ts';
import { branchOf } from '../drivers/git/repository.ts';
import { opcodeDriver } from '../drivers/conductor/opcode-driver.ts';
import { workspaceFor, worktreePath } from '../drivers/conductor/workspace.ts';
import type { Driver } from '../engine/ports.ts';
import { conductorOf, workplaceOf } from '../ir/conductor.ts';
import type { ConductedSpec } from '../ir/conducted.ts';
import type { Program } from '../ir/program.ts';
import type { RunState } from '../kernel/state.ts';
import type { Config } from '../languages/config.ts';
import { visitsOf } from '../view/visits.ts';
import type { VisitView } from '../view/visits.ts';
import { RunDirectory } from './run-directory.ts';

export interface ConductorRunRequest {
  readonly run: RunSurroundings;
  readonly program: Program;
  readonly config: Config;
  /** A driver of headless turns whose agents have this environment. */
  readonly turns: (environment: Readonly<Record<string, string>>) => Driver;
  /** As far as the journal holds it; null before it has begun. */
  readonly state: () => RunState | null;
  /** Takes a line for people. */
  readonly warn: (line: string) => void;
}

export interface ConductorRun {
  readonly drivers: Readonly<Record<ConductedSpec['kind'], Driver>>;
  readonly directory: RunDirectory;
  /** Before the run is released. */
  finish(state: RunState): Promise<void>;
}

/** Null for a run of another language. */
export function conductorRun({ run, program, config, turns, state, warn }: ConductorRunRequest): ConductorRun | null {
  const conducted = conductorOf(program);
  if (conducted === null) return null;
  const { base, inPlace } = workplaceOf(program);
  const project = resolve(run.runFolder, '../../..');
  const runDirName = `${conducted.artifactsDir}/${run.runId}`;
  const runDir = resolve(project, runDirName);
  const environment = { ...withoutGit(run.environment), MEOW_RUN_DIR: runDir };
  const kind = !conducted.mutates ? 'as-it-is' : inPlace ? 'in-place' : 'worktree';
  const history = (): readonly VisitView[] => visitsOf(state()?.steps.values() ?? []);
  const workspace = workspaceFor({
    runId: run.runId,
    project,
    runDir,
    environment: run.environment,
    kind,
    base,
    hasWorked: () =>
      history().some(({ kind: what, outcome }) => (what === 'work' || what === 'rollback') && outcome === 'completed'),
  });
  const driver = opcodeDriver({
    run,
    runDir,
    runDirName,
    workspace,
    history,
    turn: turns(environment),
    command: commandDriver({ ...run, environment, shell: config.shell }),
    settings: config.conductor,
  });
  const directory = new RunDirectory({
    path: runDir,
    runs: resolve(run.runFolder, '..'),
    runId: run.runId,
    mark: run.mark,
    program,
    workflowId: conducted.workflowId,
    base,
    worktree: kind === 'worktree' ? worktreePath(project, run.runId) : project,
    branch: kind === 'worktree' ? branchOf(run.runId) : null,
    warn,
  });
  return {
    drivers: { work: driver, validate: driver, evaluate: driver, rollback: driver, halt: driver },
    directory,
    async finish(ended) {
      // A worktree that no step has needed is not made for its sake.
      const worked = visitsOf(ended.steps.values()).some(({ kind: what }) => what !== 'gate' && what !== 'halt');
      const opened = kind === 'as-it-is' || !worked ? null : await workspace.open();
      const git = opened?.ok === true ? opened.value.git : null;
      const patch = join(run.runFolder, 'diff.patch');
      const written = git === null || base === null ? null : await git.diff({ against: base, to: patch });
      if (written?.ok === false) warn(`diff.patch could not be written: ${written.error.message}`);
      await directory.finish(ended, written?.ok === true ? patch : null);
      // Of a tree that is the user's, nothing is to be left but the work.
      if (kind === 'in-place' && ended.phase === 'ended' && ended.end !== 'paused') await git?.release();
    },
  };
}

/** Where git is told to work elsewhere, it would not work in the worktree. */
function withoutGit(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_A_REPOSITORY.test(name)));
}

const OF_A_REPOSITORY = /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|PREFIX)$/;
