// What a Conductor run has besides any other run: a place to work in, and the driver of its opcodes.

import { commandDriver } from '../drivers/command/command-driver.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { opcodeDriver } from '../drivers/conductor/opcode-driver.ts';
import { workspaceFor } from '../drivers/conductor/workspace.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Driver } from '../engine/ports.ts';
import type { Program } from '../ir/program.ts';
import type { RunState } from '../kernel/state.ts';
import type { Config } from '../languages/config.ts';
import { visitsOf } from '../view/visits.ts';
import type { VisitView } from '../view/visits.ts';
import { conductorPlaces } from './conductor-places.ts';

export interface ConductorRunRequest {
  readonly surroundings: DriverContext;
  readonly program: Program;
  readonly config: Config;
  /** A driver of headless turns whose agents have this environment. */
  readonly turns: (environment: Readonly<Record<string, string>>) => Driver;
  readonly run: LiveRun;
}

export interface ConductorRun {
  readonly driver: Driver;
  /** Writes everything that the run has changed to a file; null if there is nothing to write. An error is a sentence. */
  writePatch(): Promise<{ readonly patch: string | null; readonly problem: string | null }>;
  /** Removes what the run left in a tree of the user, except its work. */
  release(state: RunState): Promise<void>;
}

export function conductorRun({ surroundings, program, config, turns, run }: ConductorRunRequest): ConductorRun {
  const { runDir, runDirName, project, base, kind } = conductorPlaces(surroundings, program);
  const environment = { ...withoutGit(surroundings.environment), MEOW_RUN_DIR: runDir };
  const history = (): readonly VisitView[] => visitsOf(run.state.steps.values());
  const workspace = workspaceFor({
    runId: surroundings.runId,
    project,
    runDir,
    environment: surroundings.environment,
    kind,
    base,
    hasWorked: () =>
      history().some(({ kind: what, outcome }) => (what === 'work' || what === 'rollback') && outcome === 'completed'),
  });
  const driver = opcodeDriver({
    run: surroundings,
    runDir,
    runDirName,
    workspace,
    history,
    turn: turns(environment),
    command: commandDriver({ ...surroundings, environment, shell: config.shell }),
    settings: config.conductor,
  });
  return {
    driver,
    async writePatch() {
      const opened = await workspace.open();
      const git = opened.ok ? opened.value.git : null;
      if (git === null || base === null) return { patch: null, problem: null };
      const patch = surroundings.files.localPath('diff.patch');
      const written = await git.diff({ against: base, to: patch });
      return written.ok ? { patch, problem: null } : { patch: null, problem: written.error.message };
    },
    async release(state) {
      if (kind !== 'in-place' || state.phase !== 'ended' || state.end === 'paused') return;
      const opened = await workspace.open();
      if (opened.ok) await opened.value.git?.release();
    },
  };
}

/** These variables would make git work elsewhere than in the worktree. */
function withoutGit(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_A_REPOSITORY.test(name)));
}

const OF_A_REPOSITORY = /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|PREFIX)$/;
