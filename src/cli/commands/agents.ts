// `meow agents`: the agents of this project's runs and their steps, also those that outlive their run. `meow attach`: opens
// an agent's terminal in this one.

import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';

import { agentsLeft, agentTerminal, runsWithProcesses } from '../../app/run-agents.ts';
import { findProject } from '../../app/project.ts';
import { inEach, readRun, resolveRun, runsGoingOn, type Store, storeOf } from '../../app/runs.ts';
import { shownPath } from '../../app/sources.ts';
import { sanitize, shorten } from '../../base/sanitize.ts';
import { type AgentView, isInterrupted, runStatus, statusText, statusView } from '../../view/status.ts';
import type { RunChoice, Switches } from '../flags.ts';
import { EXIT, printLine, printLines, printResult, warn, warnUnreadable } from '../output.ts';
import { inColumns } from '../terminal.ts';

interface ListedAgent extends AgentView {
  readonly workflow: string;
  readonly run: string;
}

/** All agents of one run; or those of all unfinished runs, and those that still run although their run has ended. */
export async function agents(options: RunChoice & Switches<'json'>): Promise<number> {
  const store = storeOf(findProject());
  const chosen = options.run ?? options.workflow;
  const listed =
    chosen === undefined ? await agentsOfAll(store) : await agentsOf(store, await resolveRun(store, chosen));
  if (options.json) return printResult(listed.map(({ run: _run, ...agent }) => agent));
  const rows = listed.map(({ workflow, run, id, status, adapter, current_step: step, terminal, workdir }) => [
    run === 'running' ? workflow : `${workflow} (${run})`,
    sanitize(id),
    status,
    adapter ?? '',
    shorten(step ?? ''),
    sanitize(terminal ?? workdir ?? ''),
  ]);
  printLines(inColumns(['RUN', 'AGENT', 'STATUS', 'ADAPTER', 'STEP', 'WHERE'], rows));
  if (listed.length === 0 && chosen === undefined) {
    warn('no agents');
    warn('  agents of a run that has ended: meow agents --run ID');
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
  const hasEngine = (await store.holder(id)) !== null;
  const known = hasEngine ? statusView(run.state).agents : await agentsLeft(store, run);
  const shown = statusText(runStatus(run.state), isInterrupted(run.state, hasEngine));
  return known.map((agent) => ({ workflow: id, run: shown, ...agent }));
}

/** The user may type: the agent cannot tell the difference, and the next prompt is delivered only when the input is empty. */
export async function attach(
  wanted: string,
  agent: string,
  options: { readonly readOnly?: true; readonly print?: true },
): Promise<number> {
  const project = findProject();
  const store = storeOf(project);
  const run = await readRun(store, await resolveRun(store, wanted));
  const { transcript, command } = await agentTerminal(project, run, agent, options.readOnly === true);
  const reportGone = (): number => {
    warn(`meow: the terminal of agent ${sanitize(agent)} is gone`);
    warn(`  its output: ${shownPath(project, transcript)}`);
    warn(`  its status: meow agents --run ${run.id}`);
    return EXIT.failed;
  };
  if (command === null) return reportGone();
  if (options.print || !process.stdin.isTTY || !process.stdout.isTTY) {
    printLine(command.text);
    return EXIT.done;
  }
  const { program, args, environment } = command;
  const { status, signal, error } = spawnSync(program, args, { stdio: 'inherit', env: environment });
  if (error !== undefined) throw error;
  if (signal !== null) return 128 + constants.signals[signal];
  // The agent may have ended meanwhile.
  return status === 0 ? EXIT.done : reportGone();
}
