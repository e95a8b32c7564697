// The agents of a run: the tmux command that attaches to the terminal of one, and whether those of a run without an engine
// are still running. The journal only has what the last engine knew.

import { spawnSync } from 'node:child_process';

import { UsageError } from '../base/errors.ts';
import { shorten } from '../base/sanitize.ts';
import { ENDED_BY_US, storedStart } from '../drivers/agent/files.ts';
import { TRANSCRIPT } from '../drivers/agent/terminal/agent.ts';
import { socketPaths } from '../drivers/agent/tmux/setting.ts';
import { MARKER_OPTION } from '../drivers/agent/tmux/terminal-pane.ts';
import { markerOf } from '../drivers/environment.ts';
import { findProgram } from '../drivers/recording-shell.ts';
import { livingLeader } from '../drivers/session-leader.ts';
import { processIn } from '../drivers/step-folder.ts';
import type { Store } from '../engine/ports.ts';
import { shellWord } from '../ir/quote.ts';
import { allProcesses } from '../sys/process.ts';
import { type AgentView, statusView } from '../view/status.ts';
import type { FollowedRun } from './follow.ts';
import { ownEnvironment, type Project } from './project.ts';
import { type ReadRun, storeOf } from './runs.ts';
import { readSettings } from './sources.ts';

export interface AgentTerminal {
  /** Absolute path of everything that the terminal has printed. */
  readonly transcript: string;
  /** Null if the terminal is gone. */
  readonly command: {
    readonly program: string;
    readonly args: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
    readonly text: string;
  } | null;
}

/** Throws if the agent is unknown or has no terminal. */
export async function agentTerminal(
  project: Project,
  run: ReadRun,
  agent: string,
  readOnly: boolean,
): Promise<AgentTerminal> {
  const { id, state } = run;
  const { adapter } = requireAgent(run, agent);
  const files = storeOf(project).files(id);
  const start = await storedStart(files, agent);
  if (start === null || start.channel !== 'terminal') {
    const what = adapter === null ? '' : ` (adapter ${adapter})`;
    throw new UsageError(`agent ${agent} has no terminal${what}`, `follow its work: meow trace ${id} --follow`);
  }
  const transcript = files.localPath(`${start.inRun}/${TRANSCRIPT}`);
  // Terminals are reachable only on their own machine.
  const place = { runId: id, files, mark: state.request?.mark ?? '' };
  const environment = ownEnvironment();
  const program = findProgram('tmux', environment['PATH'] ?? '');
  if (program === null) throw new UsageError('tmux is not on PATH', 'install tmux 3.2 or later');
  const isShared = readSettings(project).config.tmux === 'shared';
  const server = isShared ? [] : ['-S', socketPaths(place).socket];
  // A private server is not nested in a session of the user's own server; a shared one is.
  const { TMUX: _, ...outside } = environment;
  const inTmux = isShared ? environment : outside;
  const session = sessionOf(program, server, inTmux, markerOf(place, start.name));
  if (session === null) return { transcript, command: null };
  const args = [...server, 'attach-session', ...(readOnly ? ['-r'] : []), '-t', `=${session}`];
  const text = ['tmux', ...args].map(shellWord).join(' ');
  return { transcript, command: { program, args, environment: inTmux, text } };
}

function requireAgent({ id, state }: ReadRun, agent: string): AgentView {
  const { agents } = statusView(state);
  const found = agents.find((each) => each.id === agent);
  if (found !== undefined) return found;
  const names = agents.map((each) => shorten(each.id)).join(', ');
  throw new UsageError(`run ${id} has no agent ${agent}`, names === '' ? 'it has no agents' : `it has: ${names}`);
}

/** The current name of the session whose pane has this marker; null if there is none. */
function sessionOf(program: string, server: readonly string[], env: NodeJS.ProcessEnv, marker: string): string | null {
  const list = ['-u', '-N', ...server, 'list-panes', '-a', '-F', `#{session_name} #{${MARKER_OPTION}}`];
  const { stdout, error } = spawnSync(program, list, { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8', env });
  if (error !== undefined) throw error;
  const line = stdout.split('\n').find((each) => each.endsWith(` ${marker}`));
  return line?.slice(0, -marker.length - 1) ?? null;
}

/** The agents of a run without an engine. */
export function agentsLeft(store: Store, { id, state }: FollowedRun): Promise<readonly AgentView[]> {
  const files = store.files(id);
  const run = { runId: id, mark: state.request?.mark ?? '' };
  const lookAt = async (agent: AgentView): Promise<AgentView> => {
    if (agent.status === 'stopped' || agent.status === 'gone') return agent;
    const start = await storedStart(files, agent.id);
    if (start === null) return agent;
    const names = (await files.list(start.inRun)).map(({ name }) => name);
    if (names.includes(ENDED_BY_US)) return { ...agent, status: 'stopped', current_step: null };
    // A headless agent has no process between two prompts.
    if (start.channel === 'headless') return state.phase === 'ended' ? { ...agent, status: 'stopped' } : agent;
    const status = await files.read(`${start.inRun}/status`);
    const leader = processIn(status === null ? null : Buffer.from(status).toString('utf8'));
    return livingLeader(leader, markerOf(run, start.name)) === null ? { ...agent, status: 'gone' } : agent;
  };
  return Promise.all(statusView(state).agents.map(lookAt));
}

/** The ids of runs that have running processes: agents, or processes that these started. */
export function runsWithProcesses(): ReadonlySet<string> {
  const markers = allProcesses().flatMap(({ marker }) => marker ?? []);
  return new Set(markers.map((marker) => marker.slice(0, marker.indexOf('.'))));
}
