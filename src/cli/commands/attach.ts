// `meow attach`: the terminal of an agent, in this one. Whoever looks on may type: the agent cannot tell, and what is
// delivered next waits until the input is empty.

import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { UsageError } from '../../base/usage-error.ts';
import type { StoredStart } from '../../drivers/agent/files.ts';
import { storedStart } from '../../drivers/agent/files.ts';
import { markerOf } from '../../drivers/environment.ts';
import { TRANSCRIPT } from '../../drivers/agent/terminal/agent.ts';
import { findProgram } from '../../drivers/recording-shell.ts';
import { socketPaths } from '../../drivers/agent/tmux/private-socket.ts';
import { MARKER_OPTION } from '../../drivers/agent/tmux/terminal-pane.ts';
import { shellWord } from '../../ir/quote.ts';
import { shorten, sanitize } from '../../view/sanitize.ts';
import type { AgentView } from '../../view/status.ts';
import { statusView } from '../../view/status.ts';
import { EXIT } from '../exit.ts';
import { ownEnvironment } from '../../app/own-environment.ts';
import { findProject } from '../../app/project.ts';
import type { ReadRun } from '../../app/runs.ts';
import { readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { complain, say } from '../output.ts';
import { readSettings } from '../../app/settings.ts';
import { shownPath } from '../../app/sources.ts';

export async function attach(
  wanted: string,
  agent: string,
  options: { readonly readOnly?: true; readonly print?: true },
): Promise<number> {
  const project = findProject();
  const store = storeOf(project);
  const run = await readRun(store, await resolveRun(store, wanted));
  const { id, state } = run;
  const found = agentOf(run, agent);
  const files = store.files(id);
  const start = await storedStart(files, agent);
  if (start === null || start.channel !== 'terminal') {
    const what = found.adapter === null ? '' : ` (adapter ${found.adapter})`;
    throw new UsageError(`agent ${agent} has no terminal${what}`, `what it does: meow trace ${id} --follow`);
  }
  // A terminal can only be attached to on the machine that it is on.
  const around = { runId: id, files, mark: state.request?.mark ?? '' };
  const environment = ownEnvironment();
  const program = findProgram('tmux', environment['PATH'] ?? '');
  if (program === null) throw new UsageError('there is no tmux on PATH', 'install tmux 3.2 or later');
  const shared = readSettings(project).config.tmux === 'shared';
  const server = shared ? [] : ['-S', socketPaths(around).socket];
  // From within a session of the user's own server ours is another server, which is no nesting; the same one is.
  const { TMUX: _around, ...without } = environment;
  const tmux = { program, server, environment: shared ? environment : without };
  const gone = (): number => tellGone(id, start, shownPath(project, files.localPath(`${start.inRun}/${TRANSCRIPT}`)));
  const session = sessionOf(tmux, markerOf(around, start.name));
  if (session === null) return gone();
  const args = [...server, 'attach-session', ...(options.readOnly ? ['-r'] : []), '-t', `=${session}`];
  if (options.print || !process.stdin.isTTY || !process.stdout.isTTY) {
    say(['tmux', ...args].map(shellWord).join(' '));
    return EXIT.done;
  }
  const { status, signal, error } = spawnSync(program, args, { stdio: 'inherit', env: tmux.environment });
  if (error !== undefined) throw error;
  if (signal !== null) return 128 + constants.signals[signal];
  // It may have ended under our eyes, or in the moment before.
  return status === 0 ? EXIT.done : gone();
}

function agentOf({ id, state }: ReadRun, agent: string): AgentView {
  const { agents } = statusView(state);
  const found = agents.find((each) => each.id === agent);
  if (found !== undefined) return found;
  const names = agents.map((each) => shorten(each.id)).join(', ');
  throw new UsageError(`run ${id} has no agent ${agent}`, names === '' ? 'it has no agents' : `it has: ${names}`);
}

/** The name that its session has by now; null where there is none. */
function sessionOf(
  tmux: {
    readonly program: string;
    readonly server: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
  },
  marker: string,
): string | null {
  const list = ['-u', '-N', ...tmux.server, 'list-panes', '-a', '-F', `#{session_name} #{${MARKER_OPTION}}`];
  const { stdout, error } = spawnSync(tmux.program, list, {
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
    env: tmux.environment,
  });
  if (error !== undefined) throw error;
  const line = stdout.split('\n').find((each) => each.endsWith(` ${marker}`));
  return line?.slice(0, -marker.length - 1) ?? null;
}

function tellGone(id: string, { agent }: StoredStart, transcript: string): number {
  complain(`meow: the terminal of agent ${sanitize(agent)} is gone`);
  complain(`  what it printed: ${transcript}`);
  complain(`  how it stands:   meow agents --workflow ${id}`);
  return EXIT.failed;
}
