// Projects and runs by the names that they have in addresses. Names are looked up in lists, so none of them is a path.

import { type NamedProject, projectsToShow, type ShownProjects } from '../app/projects.ts';
import { hasRun, isRunId, type Store, storeOf } from '../app/runs.ts';
import type { RunName } from './protocol.ts';
import { RequestRefused } from './reply.ts';

export interface NamedRun {
  readonly project: NamedProject;
  readonly store: Store;
  readonly id: string;
}

export class NamedRuns {
  readonly #given: readonly string[];
  #shown: ShownProjects;

  /** `given`: folders of projects; without any, that of the working directory and all known ones. */
  constructor(given: readonly string[]) {
    this.#given = given;
    this.#shown = projectsToShow(given);
  }

  /** With a given folder that was deleted meanwhile: its runs are then missing. */
  shown(): ShownProjects {
    if (this.#given.length === 0) this.#shown = projectsToShow([]);
    return this.#shown;
  }

  /** Throws a refusal with status 404. */
  project(name: string): NamedProject {
    const found = this.shown().projects.find((each) => each.name === name);
    if (found !== undefined) return found;
    throw new RequestRefused(
      404,
      `there is no project ${JSON.stringify(name)}`,
      'meow ui --project DIR shows its folder',
    );
  }

  /** Of a run that may not exist; null for what cannot be the name of one. */
  find({ project, run }: RunName): NamedRun | null {
    const found = this.shown().projects.find(({ name }) => name === project);
    return found === undefined || !isRunId(run) ? null : { project: found, store: storeOf(found), id: run };
  }

  /** Throws a refusal with status 404 if the run does not exist. */
  async run(name: RunName): Promise<NamedRun> {
    const project = this.project(name.project);
    const store = storeOf(project);
    if (await hasRun(store, name.run)) return { project, store, id: name.run };
    throw new RequestRefused(
      404,
      `project ${name.project} has no run ${JSON.stringify(name.run)}`,
      'all runs: meow list',
    );
  }
}
