// `meow attach`: open an agent's terminal in this one. The user may type: the agent cannot tell the difference, and the
// next prompt is delivered only when the input is empty.

import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';

import { agentTerminal } from '../../app/agent-terminal.ts';
import { findProject } from '../../app/project.ts';
import { readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { shownPath } from '../../app/sources.ts';
import { sanitize } from '../../base/sanitize.ts';
import { EXIT, printLine, warn } from '../output.ts';

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
