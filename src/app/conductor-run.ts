// What a Conductor run has besides any other run: a place to work in, and the drivers of git and of inspections.

import type { DriverContext } from '../drivers/environment.ts';
import type { ConductorContext, StepRecord } from '../drivers/conductor/context.ts';
import { gitDriver } from '../drivers/conductor/git-driver.ts';
import { inspectDriver } from '../drivers/conductor/inspect-driver.ts';
import { workspaceFor } from '../drivers/conductor/workspace.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Driver } from '../engine/ports.ts';
import type { ConductedSpec } from '../ir/conducted.ts';
import type { Program } from '../ir/program.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import type { Config } from '../languages/config.ts';
import { visitsOf } from '../view/visits.ts';
import type { VisitView } from '../view/visits.ts';
import { conductorPlaces } from './conductor-places.ts';

export interface ConductorRunRequest {
  readonly surroundings: DriverContext;
  readonly program: Program;
  readonly config: Config;
  readonly run: LiveRun;
}

export interface ConductorRun {
  readonly drivers: Readonly<Record<ConductedSpec['kind'], Driver>>;
  /** Writes everything that the run has changed to a file; null if there is nothing to write. An error is a sentence. */
  writePatch(): Promise<{ readonly patch: string | null; readonly problem: string | null }>;
  /** Removes what the run left in a tree of the user, except its work. */
  release(state: RunState): Promise<void>;
}

export function conductorRun({ surroundings, program, config, run }: ConductorRunRequest): ConductorRun {
  const { runDir, runDirName, project, base, kind } = conductorPlaces(surroundings, program);
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
  const context: ConductorContext = {
    run: surroundings,
    runDir,
    runDirName,
    workspace,
    history,
    step: (id) => recordOf(run.state.steps.get(id)),
    settings: config.conductor,
  };
  return {
    drivers: { git: gitDriver(context), inspect: inspectDriver(context) },
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

/** Null if there is no such step. */
export function recordOf(step: StepState | undefined): StepRecord | null {
  if (step === undefined) return null;
  const { id, attempt, failure, outputs, kept, usage, frame, startedAt, finishedAt } = step;
  const session = frame.nextSession.kind === 'resume' ? frame.nextSession.id : null;
  return { id, attempt, failure, outputs, kept, usage, session, startedAt, endedAt: finishedAt };
}
