// What a Conductor run has besides any other run: a place to work in, and the drivers of git and of inspections.

import { resolve } from 'node:path';

import { err, ok, present, type Result } from '../base/errors.ts';
import { copyMissing } from '../drivers/conductor/artifacts.ts';
import type { ConductorContext, StepRecord } from '../drivers/conductor/context.ts';
import { beforeVisit, gitDriver, inspectDriver, placesOf } from '../drivers/conductor/drivers.ts';
import { type ForkStart, startFacts, workspaceFor } from '../drivers/conductor/workspace.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { scrubFolder } from '../drivers/guard-secrets.ts';
import type { Driver } from '../engine/ports.ts';
import type { ConductedSpec } from '../ir/conductor.ts';
import { conductorOf, type Program, workplaceOf } from '../ir/program.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import type { Config } from '../languages/config.ts';
import { visitsOf, type VisitView } from '../view/visits.ts';
import type { LiveRun, RunObserver } from './observer.ts';
import { type ConductorPlaces, RunDirectory } from './run-directory.ts';

export interface ConductorRunRequest {
  readonly surroundings: DriverContext;
  readonly program: Program;
  readonly config: Config;
  readonly run: LiveRun;
}

export interface ConductorRun {
  readonly drivers: Readonly<Record<ConductedSpec['kind'], Driver>>;
  /** Folders that effects of the run write to. */
  readonly places: readonly string[];
  /** Writes everything that the run has changed to a file; null if there is nothing to write. An error is a sentence. */
  writePatch(): Promise<Result<string | null, string>>;
  /** Removes what the run left in a tree of the user, except its work. */
  release(state: RunState): Promise<void>;
}

export function conductorRun({ surroundings, program, config, run }: ConductorRunRequest): ConductorRun {
  const { runDir, runDirName, project, base, kind } = conductorPlaces(surroundings, program);
  const history = (): readonly VisitView[] => visitsOf(run.state.steps.values());
  const { runId, environment } = surroundings;
  /** Visits of this run, without those that a fork keeps. */
  const ownVisits = () => history().filter(({ id }) => run.state.steps.get(id)?.keptFrom === null);
  const hasWorked = (): boolean =>
    ownVisits().some(({ kind: what, outcome }) => (what === 'work' || what === 'rollback') && outcome === 'completed');
  const step = (id: string): StepRecord | null => recordOf(run.state.steps.get(id));
  const start = () => {
    for (const { id } of ownVisits()) {
      const facts = startFacts(beforeVisit({ step, run: surroundings }, id));
      if (facts !== null) return facts;
    }
    return null;
  };
  const fork = () => {
    const from = run.state.fork?.worktree as ForkStart | undefined;
    return from === undefined ? null : { from, folder: surroundings.files.localPath('') };
  };
  const workspace = workspaceFor({ runId, project, runDir, environment, kind, base, hasWorked, start, fork });
  const settings = config.conductor;
  const context: ConductorContext = { run: surroundings, runDir, runDirName, workspace, history, step, settings };
  return {
    drivers: { git: gitDriver(context), inspect: inspectDriver(context) },
    places: placesOf(context),
    async writePatch() {
      const opened = await workspace.open();
      if (!opened.ok || opened.value.git === null) return ok(null);
      const patch = surroundings.files.localPath('diff.patch');
      const written = await opened.value.git.diff({ against: opened.value.start, to: patch });
      return written.ok ? ok(patch) : err(written.error.message);
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

function conductorPlaces(surroundings: DriverContext, program: Program): ConductorPlaces {
  const { workflowId, artifactsDir, mutates } = present(conductorOf(program), 'the program has no Conductor facts');
  const { base, inPlace } = workplaceOf(program);
  const runs = resolve(surroundings.files.localPath(''), '..');
  const project = resolve(runs, '../..');
  const runDirName = `${artifactsDir}/${surroundings.runId}`;
  const kind = !mutates ? 'as-it-is' : inPlace ? 'in-place' : 'worktree';
  return { workflowId, project, runs, runDir: resolve(project, runDirName), runDirName, kind, base };
}

export function conductorEnvironment(surroundings: DriverContext, program: Program): Readonly<Record<string, string>> {
  const inherited = Object.entries(surroundings.environment).filter(([name]) => !OF_A_REPOSITORY.test(name));
  return { ...Object.fromEntries(inherited), MEOW_RUN_DIR: conductorPlaces(surroundings, program).runDir };
}

/** These variables would make git work elsewhere than in the worktree. */
const OF_A_REPOSITORY = /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|PREFIX)$/;

/** Artifacts of kept visits, in the folder of a fork until its run directory exists. */
export const KEPT_ARTIFACTS = 'kept-artifacts';

/** The run directory of a Conductor run, as an observer; with the patch of all changes when the engine closes. */
export interface ConductorDirectoryOptions extends Omit<ConductorRunRequest, 'config'> {
  conductor(): ConductorRun;
  /** Takes a line for people. */
  warn(line: string): void;
}

export function conductorDirectory(options: ConductorDirectoryOptions): RunObserver {
  const { surroundings, program, run } = options;
  const { runId, mark } = surroundings;
  const places = conductorPlaces(surroundings, program);
  const directory = new RunDirectory({ ...places, runId, mark, program, warn: (line) => options.warn(line) });
  return {
    open(_run, before) {
      directory.open(before);
      copyMissing(surroundings.files.localPath(KEPT_ARTIFACTS), resolve(places.runDir, 'artifacts'));
    },
    observe: (records, state) => directory.observe(records, state),
    async close() {
      const { state } = run;
      // No worktree is made only to find that nothing has changed in it.
      const worked = visitsOf(state.steps.values()).some(({ kind: what }) => what !== 'gate' && what !== 'halt');
      const conductor = places.kind === 'as-it-is' || !worked ? null : options.conductor();
      const patch = (await conductor?.writePatch()) ?? ok(null);
      if (!patch.ok) options.warn(`cannot write diff.patch: ${patch.error}`);
      await directory.finish(state, patch.ok ? patch.value : null);
      await conductor?.release(state);
      const { secrets } = surroundings;
      // Patches have what agents wrote into files.
      if (secrets !== undefined) scrubFolder(places.runDir, secrets, () => false);
    },
  };
}
