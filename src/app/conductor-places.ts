// Where a Conductor run works and where its run directory is.

import { resolve } from 'node:path';
import { present } from '../base/assert.ts';
import type { WorkspaceRequest } from '../drivers/conductor/workspace.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { conductorOf, workplaceOf } from '../ir/conductor.ts';
import type { Program } from '../ir/program.ts';

export interface ConductorPlaces {
  readonly workflowId: string;
  /** The folder that contains `.meow`. Absolute. */
  readonly project: string;
  /** The run directory, absolute and as it is shown. */
  readonly runDir: string;
  readonly runDirName: string;
  readonly kind: WorkspaceRequest['kind'];
  /** The commit that the run starts from; null without git. */
  readonly base: string | null;
}

export function conductorPlaces(surroundings: DriverContext, program: Program): ConductorPlaces {
  const conductor = present(conductorOf(program), 'the program has no Conductor facts');
  const { base, inPlace } = workplaceOf(program);
  const project = resolve(surroundings.files.localPath(''), '../../..');
  const runDirName = `${conductor.artifactsDir}/${surroundings.runId}`;
  return {
    workflowId: conductor.workflowId,
    project,
    runDir: resolve(project, runDirName),
    runDirName,
    kind: !conductor.mutates ? 'as-it-is' : inPlace ? 'in-place' : 'worktree',
    base,
  };
}

/** Environment of the turns and commands of a Conductor run. */
export function conductorEnvironment(surroundings: DriverContext, program: Program): Readonly<Record<string, string>> {
  const { runDir } = conductorPlaces(surroundings, program);
  return { ...withoutGit(surroundings.environment), MEOW_RUN_DIR: runDir };
}

/** These variables would make git work elsewhere than in the worktree. */
function withoutGit(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OF_A_REPOSITORY.test(name)));
}

const OF_A_REPOSITORY = /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|PREFIX)$/;
