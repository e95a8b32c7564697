// `meow agents`: who works for the runs of this project, and on what; and who is left of runs that are over.

import { runStatus, statusView } from '../../view/status.ts';
import type { AgentView } from '../../view/status.ts';
import { shorten, sanitize } from '../../view/sanitize.ts';
import type { Store } from '../../app/runs.ts';
import { agentsLeft, runsWithProcesses } from '../../app/agent-liveness.ts';
import { inColumns } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import { inEach, readRun, resolveRun, runsGoingOn, storeOf } from '../../app/runs.ts';
import { warn, warnUnreadable, printLine } from '../output.ts';

interface ListedAgent extends AgentView {
  readonly workflow: string;
  /** Status of the run. */
  readonly run: string;
}

/** Of one run all that it ever had; of all runs those of the runs that are not over, and those that live on. */
export async function agents(options: { readonly workflow?: string; readonly json?: true }): Promise<number> {
  const store = storeOf(findProject());
  const listed =
    options.workflow === undefined
      ? await agentsOfAll(store)
      : await agentsOf(store, await resolveRun(store, options.workflow));
  if (options.json) {
    printLine(JSON.stringify(listed.map(withoutRun), null, 2));
    return EXIT.done;
  }
  const rows = listed.map(({ workflow, run, id, status, adapter, current_step: step, terminal, workdir }) => [
    run === 'running' ? workflow : `${workflow} (${run})`,
    sanitize(id),
    status,
    adapter ?? '',
    shorten(step ?? ''),
    sanitize(terminal ?? workdir ?? ''),
  ]);
  for (const line of inColumns(['RUN', 'AGENT', 'STATUS', 'ADAPTER', 'STEP', 'WHERE'], rows)) printLine(line);
  if (listed.length === 0 && options.workflow === undefined) {
    warn('no agents');
    warn('  agents of a run that has ended: meow agents --workflow ID');
  } else if (listed.length === 0) warn('the run has no agents');
  return EXIT.done;
}

async function agentsOfAll(store: Store): Promise<readonly ListedAgent[]> {
  const goingOn = await runsGoingOn(store);
  const left = runsWithProcesses();
  const over = (await store.list()).map(({ id }) => id).filter((id) => left.has(id) && !goingOn.includes(id));
  const living = async (id: string): Promise<readonly ListedAgent[]> =>
    (await agentsOf(store, id)).filter(({ status }) => status !== 'gone' && status !== 'stopped');
  return [
    ...(await inEach(goingOn, (id) => agentsOf(store, id), warnUnreadable)),
    ...(await inEach(over, living, warnUnreadable)),
  ];
}

async function agentsOf(store: Store, id: string): Promise<readonly ListedAgent[]> {
  const run = await readRun(store, id);
  const known = (await store.holder(id)) === null ? await agentsLeft(store, run) : statusView(run.state).agents;
  return known.map((agent) => ({ workflow: id, run: runStatus(run.state), ...agent }));
}

function withoutRun({ run: _run, ...agent }: ListedAgent): object {
  return agent;
}
