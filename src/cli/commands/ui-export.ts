// `meow ui export`: one HTML file that shows a run, for people without access to its folder.

import { findProject } from '../../app/project.ts';
import { resolveRun, storeOf } from '../../app/runs.ts';
import { exportRun } from '../../web/export.ts';
import { EXIT, printLine } from '../output.ts';

export async function uiExport(wanted: string, options: { readonly withOutputs?: true }): Promise<number> {
  const project = findProject();
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  const withOutputs = options.withOutputs === true;
  printLine((await exportRun(project, store, id, { withOutputs, at: Date.now() })).trimEnd());
  return EXIT.done;
}
