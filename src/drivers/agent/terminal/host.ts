// Agents in tmux terminals: one tmux session for each start. Its only pane runs the shell that records the agent's
// process and exit (agent-shell.ts). The living agent is in agent.ts.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { present } from '../../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Adapter, TerminalProfile } from '../../../ir/adapter.ts';
import type { Text } from '../../../ir/text.ts';
import { fillCommand, holeValues, layOut } from '../render-adapter.ts';
import type { HoleValues } from '../render-adapter.ts';
import type { AgentStart } from '../files.ts';
import type { AgentHost, StartRequest } from '../host.ts';
import { agentShellText, shellCommand } from '../agent-shell.ts';
import { crash } from '../../../sys/throw-uncaught.ts';
import type { DriverContext } from '../../environment.ts';
import { livingLeader } from '../../session-leader.ts';
import { readExit, readProcess } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import type { Tmux } from '../tmux/tmux.ts';
import type { SessionRegistry } from '../headless/session-registry.ts';
import { findShell } from '../../recording-shell.ts';
import { HOOKS, READY, TerminalAgent, TRANSCRIPT } from './agent.ts';
import { ScreenWatcher } from './screen-watcher.ts';
import { endTerminal } from './ending.ts';
import { Transcript } from './transcript.ts';

export interface TerminalHostOptions extends DriverContext {
  readonly tmux: Tmux;
  /** Must have a terminal profile. */
  readonly adapter: Adapter;
  /** The registry of the run. */
  readonly sessions: SessionRegistry;
  /** Time for an agent with an error to recover by itself; one minute except in tests. */
  readonly failedMs?: number;
}

const FAILED_MS = 60_000;

export function terminalHost(options: TerminalHostOptions): AgentHost {
  const { tmux, adapter, sessions, runId, failedMs = FAILED_MS } = options;
  const ways = present(adapter.terminal, `the adapter ${adapter.name} has no terminals`);
  const agentOf = (start: AgentStart): TerminalAgent =>
    new TerminalAgent(start, { tmux, adapter, ways, sessions, name: sessionName(runId, start.agent), failedMs });
  return {
    start: (request) => {
      const agent = agentOf(request.start);
      open(agent, inSession(request, sessions), ways, options).catch(crash);
      return agent;
    },
    find: (start) => {
      const { folder, marker } = start;
      const record = readProcess(folder);
      if (livingLeader(record, marker) !== null) {
        const agent = agentOf(start);
        agent.find();
        return { kind: 'alive', agent };
      }
      if (record.kind === 'absent') return { kind: 'never' };
      const output = new Transcript(join(folder.path, TRANSCRIPT)).tail();
      const exit = { status: readExit(folder), refusal: null, output };
      return { kind: 'gone', wasReady: existsSync(join(folder.path, READY)), exit };
    },
    clear: (start, graceMs) => {
      const watcher = new ScreenWatcher({
        ways,
        folder: start.folder.path,
        pane: () => tmux.find(start.marker),
        history: () => ({ wasReady: existsSync(join(start.folder.path, READY)), idleRow: null }),
        lost: () => undefined,
      });
      return endTerminal(start, ways.stop, graceMs, { tmux, watcher });
    },
  };
}

function blankTmux({ environment }: Adapter): Readonly<Record<string, string>> {
  return environment['TMUX'] === '' ? { TMUX: '' } : {};
}

const COLUMNS = 200;
const ROWS = 50;
const SCROLLBACK = 50_000;

/** Follows the specification, with characters reserved by tmux replaced; the hash keeps such names unique. */
function sessionName(runId: string, agent: string): string {
  const plain = `meow-${runId}-${agent}`;
  const name = plain.replaceAll(/[.:#\\]/g, '_');
  return name === plain ? name : `${name}-${createHash('sha256').update(agent).digest('hex').slice(0, 6)}`;
}

/** Reports every obstacle as the agent's exit. */
async function open(
  agent: TerminalAgent,
  request: StartRequest,
  ways: TerminalProfile,
  options: TerminalHostOptions,
): Promise<void> {
  const { start } = request;
  const command = prepared(request, ways, options);
  if (!command.ok) {
    agent.refuse(command.error);
    return;
  }
  const { path } = start.folder;
  const opened = await options.tmux.open({
    name: agent.terminal,
    command: command.value,
    cwd: start.workdir,
    // An adapter that hides the surrounding terminal must hide tmux's own variable too.
    environment: { ...request.environment, MEOW_HOOKS: join(path, HOOKS), ...blankTmux(options.adapter) },
    columns: COLUMNS,
    rows: ROWS,
    scrollback: SCROLLBACK,
    transcript: join(path, TRANSCRIPT),
    marker: start.marker,
  });
  // An earlier engine may have opened the terminal and died before it saw it begin.
  if (opened.ok || (await options.tmux.find(start.marker)) !== null) agent.adopt();
  else agent.refuse(opened.error);
}

/** The command of the pane; the error is a clause. */
function prepared(
  request: StartRequest,
  ways: TerminalProfile,
  options: TerminalHostOptions,
): Result<readonly string[], string> {
  const { adapter } = options;
  const { start, environment, args } = request;
  const { path } = start.folder;
  const shell = findShell('sh', `${environment['PATH'] ?? ''}:/bin:/usr/bin`);
  if (shell === null) return err('there is no shell sh on PATH');
  const text = commandFor(request, ways);
  if (text === null) {
    return err(`the adapter ${adapter.name} cannot ${request.forks ? 'fork' : 'resume'} a session`);
  }
  const place = { agent: start.agent, workdir: start.workdir, folder: path };
  const holes = { ...holeValues(adapter, options, place), ...sessionHoles(request) };
  const filled = fillCommand([text, args], holes);
  if (!filled.ok) return filled;
  try {
    makeFolder(join(path, HOOKS));
    // The user's home folder is known only from the caller's environment.
    const laidOut = layOut(adapter, holes, options.environment);
    if (!laidOut.ok) return laidOut;
  } catch (error) {
    if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    return err(error.message);
  }
  return ok([shell.path, '-c', agentShellText(shellCommand(shell.path, filled.value), path, true), shell.name]);
}

/** A session that was chosen but never used does not exist yet: start it as planned. */
function inSession(request: StartRequest, sessions: SessionRegistry): StartRequest {
  const { start, resumeSession, forks } = request;
  if (resumeSession === null || forks) {
    if (start.session !== null) sessions.choose(start.session, resumeSession);
    return request;
  }
  const known = sessions.read(resumeSession);
  return known?.state === 'chosen'
    ? { ...request, resumeSession: known.parent, forks: known.parent !== null }
    : request;
}

/** Null if the adapter has no such command. */
function commandFor({ resumeSession, forks }: StartRequest, ways: TerminalProfile): Text | null {
  if (resumeSession === null) return ways.command;
  return forks ? ways.forkCommand : ways.resumeCommand;
}

/** For a fork: the parent session, and the new session if it is known in advance. */
function sessionHoles({ start: { session }, resumeSession, forks }: StartRequest): HoleValues {
  const id = resumeSession ?? session;
  return {
    ...(id === null ? {} : { session_id: id }),
    ...(forks && session !== null ? { new_session_id: session } : {}),
  };
}
