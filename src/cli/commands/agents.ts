// `meow agents`: who works for the runs of this project, and on what.

import { brief, tame } from '../../view/row.ts';
import type { AgentView } from '../../view/status.ts';
import { statusView } from '../../view/status.ts';
import { inColumns } from '../columns.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../project.ts';
import { readRun, resolveRun, runsGoingOn, storeOf } from '../runs.ts';
import { complain, say } from '../say.ts';

interface ListedAgent extends AgentView {
  readonly workflow: string;
}

/** Of one run all that it ever had; of all runs those of the runs that are not over. */
export async function agents(options: { readonly workflow?: string; readonly json?: true }): Promise<number> {
  const store = storeOf(findProject());
  const ids = options.workflow === undefined ? await runsGoingOn(store) : [await resolveRun(store, options.workflow)];
  const listed: ListedAgent[] = [];
  for (const id of ids) {
    const { state } = await readRun(store, id);
    listed.push(...statusView(state).agents.map((agent) => ({ workflow: id, ...agent })));
  }
  if (options.json) {
    say(JSON.stringify(listed, null, 2));
    return EXIT.done;
  }
  const rows = listed.map(({ workflow, id, status, adapter, current_step: step, terminal, workdir }) => [
    workflow,
    tame(id),
    status,
    adapter ?? '',
    brief(step ?? ''),
    tame(terminal ?? workdir ?? ''),
  ]);
  for (const line of inColumns(['RUN', 'AGENT', 'STATUS', 'ADAPTER', 'STEP', 'WHERE'], rows)) say(line);
  if (listed.length === 0) complain('there are no agents');
  return EXIT.done;
}
