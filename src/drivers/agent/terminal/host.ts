// Agents in tmux terminals: one tmux session for each start. Its only pane runs the shell that records the agent's
// process and exit (render-adapter.ts). The living agent is in agent.ts.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { err, ok, present, type Result } from '../../../base/errors.ts';
import type { TerminalProfile } from '../../../ir/adapter.ts';
import { within } from '../../../sys/clock.ts';
import { crash, tolerate } from '../../../sys/errors.ts';
import { makeFolder } from '../../../sys/files.ts';
import { killProcessTree, type Termination } from '../../../sys/kill-process-tree.ts';
import type { ProcessEntry } from '../../../sys/process.ts';
import type { DriverContext } from '../../environment.ts';
import { findShell } from '../../recording-shell.ts';
import { livingLeader, whenGone } from '../../session-leader.ts';
import { prepareStepFolder, readProcess, unlessRefused } from '../../step-folder.ts';
import { findAgent } from '../agent-process.ts';
import type { AgentStart } from '../files.ts';
import type { SessionRegistry } from '../headless/sessions.ts';
import type { AgentHost, StartRequest } from '../host.ts';
import { agentShellText, fillCommand, holeValues, layOut, shellCommand } from '../render-adapter.ts';
import { HOOKS, READY, TerminalAgent, type TerminalAgentOptions, TRANSCRIPT } from './agent.ts';
import { ScreenWatcher } from './screen-watcher.ts';
import { Transcript } from './transcript.ts';

/** Of every terminal, also while somebody attaches to it (tmux/7). */
export const COLUMNS = 200;
export const ROWS = 50;

/** The adapter must have a terminal profile. */
export type TerminalHostOptions = DriverContext & Omit<TerminalAgentOptions, 'ways' | 'name'>;

type Setup = TerminalHostOptions & { readonly ways: TerminalProfile };

export function terminalHost(options: TerminalHostOptions): AgentHost {
  const { adapter } = options;
  const setup = { ...options, ways: present(adapter.terminal, `the adapter ${adapter.name} has no terminals`) };
  const agentOf = (start: AgentStart, wasFound: boolean): TerminalAgent =>
    new TerminalAgent(start, { ...setup, name: sessionName(options.runId, start.agent) }, wasFound);
  return {
    start: (request) => {
      const agent = agentOf(request.start, false);
      open(agent, inSession(request, options.sessions), setup).catch(crash);
      return agent;
    },
    find: (start) => {
      const found = (): TerminalAgent => {
        const agent = agentOf(start, true);
        agent.adopt();
        return agent;
      };
      return findAgent(start, READY, found, () => new Transcript(join(start.folder.path, TRANSCRIPT)).tail());
    },
    clear: (start, graceMs) => endTerminal(start, graceMs, setup),
  };
}

/** Follows the specification, with characters reserved by tmux replaced; the hash keeps such names unique. */
function sessionName(runId: string, agent: string): string {
  const plain = `meow-${runId}-${agent}`;
  const name = plain.replaceAll(/[.:#\\]/g, '_');
  return name === plain ? name : `${name}-${createHash('sha256').update(agent).digest('hex').slice(0, 6)}`;
}

/** Reports every obstacle as the agent's exit. */
async function open(agent: TerminalAgent, request: StartRequest, setup: Setup): Promise<void> {
  const { tmux, adapter } = setup;
  const { start } = request;
  const command = prepare(request, setup);
  if (!command.ok) return agent.process.refuse(command.error);
  const { path } = start.folder;
  // An adapter that hides the surrounding terminal must hide tmux's own variable too.
  const blanks = adapter.environment['TMUX'] === '' ? { TMUX: '' } : {};
  const opened = await tmux.open({
    name: agent.terminal,
    command: command.value,
    cwd: start.workdir,
    environment: { ...request.environment, MEOW_HOOKS: join(path, HOOKS), ...blanks },
    columns: COLUMNS,
    rows: ROWS,
    scrollback: 50_000,
    transcript: join(path, TRANSCRIPT),
    marker: start.marker,
  });
  // An earlier engine may have opened the terminal and died before it saw it begin.
  if (opened.ok || (await tmux.find(start.marker)) !== null) agent.adopt();
  else agent.process.refuse(opened.error);
}

/** The command of the pane; the error is a clause. */
function prepare(request: StartRequest, setup: Setup): Result<readonly string[], string> {
  const { adapter, ways } = setup;
  const { start, environment, args, resumeSession, forks } = request;
  const { path } = start.folder;
  const shell = findShell('sh', `${environment['PATH'] ?? ''}:/bin:/usr/bin`);
  if (shell === null) return err('there is no shell sh on PATH');
  const continued = forks ? ways.forkCommand : ways.resumeCommand;
  const command = resumeSession === null ? ways.command : continued;
  if (command === null) return err(`the adapter ${adapter.name} cannot ${forks ? 'fork' : 'resume'} a session`);
  const id = resumeSession ?? start.session;
  const holes = {
    ...holeValues(adapter, setup, start),
    ...(id === null ? {} : { session_id: id }),
    // The session that a fork creates, if it is known in advance.
    ...(forks && start.session !== null ? { new_session_id: start.session } : {}),
  };
  const filled = fillCommand([command, args], holes);
  if (!filled.ok) return filled;
  return unlessRefused(() => {
    makeFolder(join(path, HOOKS));
    prepareStepFolder(start.folder);
    // The user's home folder is known only from the caller's environment.
    const laidOut = layOut(adapter, holes, setup.environment);
    if (!laidOut.ok) return laidOut;
    const inTerminal = shellCommand(shell.path, filled.value);
    const text = agentShellText(inTerminal, start.folder.prefix, { terminal: true });
    return ok([shell.path, '-c', text, shell.name]);
  });
}

/** A session that was chosen but never used does not exist yet: start it as planned. */
function inSession(request: StartRequest, sessions: SessionRegistry): StartRequest {
  const { start, resumeSession, forks } = request;
  if (resumeSession === null || forks) {
    if (start.session !== null) sessions.choose(start.session, resumeSession);
    return request;
  }
  const known = sessions.read(resumeSession);
  if (known?.state !== 'chosen') return request;
  return { ...request, resumeSession: known.parent, forks: known.parent !== null };
}

/**
 * Stops what is left of a start, in this order: the agent by its own keys, by its signal, by force; then processes of
 * its tools, by marker; the terminal last, so that it stays visible until then.
 */
function endTerminal(start: AgentStart, graceMs: number, { tmux, ways }: Setup): Termination {
  const { keys, waitMs, signal } = ways.stop;
  const watcher = new ScreenWatcher({
    ways,
    folder: start.folder.path,
    pane: () => tmux.find(start.marker),
    history: () => ({ wasReady: existsSync(join(start.folder.path, READY)), idleRow: null }),
    lost: () => undefined,
  });
  // Never presses into a dialog (host/6).
  const pressKeys = (): Promise<boolean> =>
    watcher.putWhile((screen) => screen.dialog === null, { kind: 'keys', keys });
  const hurry = new AbortController();
  let sweep: Termination | null = null;
  const run = async (): Promise<readonly ProcessEntry[]> => {
    const killAt = performance.now() + graceMs;
    const leftMs = (): number => (hurry.signal.aborted ? 0 : Math.max(0, killAt - performance.now()));
    const leader = livingLeader(readProcess(start.folder), start.marker);
    if (leader !== null && graceMs > 0) {
      const isGone = new Promise<true>((resolve) => whenGone(leader, start.folder, () => resolve(true)));
      const waited = async (timeoutMs: number): Promise<boolean> =>
        (await within(isGone, { timeoutMs, signal: hurry.signal })) === true;
      const isPressed = keys.length > 0 && (await pressKeys());
      const isOver = isPressed && (await waited(Math.min(waitMs, leftMs())));
      if (!isOver) {
        // The shell that leads the group waits for the program, whatever signal it gets. The process may have ended
        // meanwhile, or belong to someone else.
        tolerate(['ESRCH', 'EPERM'], undefined, () => process.kill(-leader.group, signal));
        await waited(leftMs());
      }
    }
    const sweepMs = Math.min(waitMs, leftMs());
    sweep = killProcessTree({ marker: start.marker, leader: leader?.pid ?? null }, { graceMs: sweepMs });
    const left = await sweep.done;
    await (await tmux.find(start.marker))?.kill();
    return left;
  };
  return {
    atOnce: () => {
      hurry.abort();
      sweep?.atOnce();
    },
    look: () => sweep?.look(),
    done: run(),
  };
}
