// The process of an agent: a shell that leads its session and records its exit (render-adapter.ts), started by this engine or by
// an earlier one; and how to find and stop it. Rules host/1, host/3 and host/4.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { StopWays } from '../../ir/adapter.ts';
import { crash, tolerate } from '../../sys/errors.ts';
import { killProcessTree, type Termination } from '../../sys/kill-process-tree.ts';
import { pauseBeforeStart, type ProcessEvents, startProcess } from '../../sys/process.ts';
import { watchPath } from '../../sys/watch.ts';
import type { EnvVariables } from '../environment.ts';
import { tail } from '../outputs.ts';
import { deferred } from '../pending-effect.ts';
import { NOT_BEGUN, type Shell } from '../recording-shell.ts';
import { hasBegunProcess, livingLeader, whenGone } from '../session-leader.ts';
import { readExit, readProcess, wasCutOff } from '../step-folder.ts';
import { type AgentStart, wasEndedByUs } from './files.ts';
import type { AgentExit, FoundAgent, HostedAgent } from './host.ts';
import { agentShellText } from './render-adapter.ts';

export interface AgentCommand {
  readonly shell: Shell;
  readonly command: readonly string[];
  readonly environment: EnvVariables;
}

export class AgentProcess {
  alive = true;
  readonly #start: AgentStart;
  readonly #onGone: () => void;
  readonly #output: { readonly settleMs: number; readonly read: () => string | null };
  readonly #end = deferred<AgentExit>();
  readonly ended = this.#end.promise;

  /**
   * `onGone`: called once, before `alive` becomes false. `output`: how the last output is read, and the time that it may
   * take to arrive.
   */
  constructor(start: AgentStart, onGone: () => void, output = { settleMs: 0, read: () => tail(start.folder) }) {
    this.#start = start;
    this.#onGone = onGone;
    this.#output = output;
  }

  begin({ shell, command, environment }: AgentCommand): void {
    const { folder, workdir: cwd } = this.#start;
    const { prefix } = folder;
    const args = ['-c', agentShellText(command, prefix), shell.name];
    const layers = { base: environment, own: {} };
    const request = { path: shell.path, args, cwd, environment: layers, prefix, background: true };
    let ownPid = 0;
    let refusals = 0;
    const events: ProcessEvents = {
      begun: (pid) => {
        ownPid = pid;
      },
      refused: (error) => {
        refusals += 1;
        const pauseMs = wasEndedByUs(this.#start) ? null : pauseBeforeStart(error, refusals);
        if (pauseMs === null) this.refuse(error.message);
        else setTimeout(() => startProcess(request, events), pauseMs);
      },
      ended: (status) => this.#leaderEnded(ownPid, status),
    };
    startProcess(request, events);
  }

  /** Follows a process that another engine or a terminal started. `beginMs`: time for its shell to write its record. */
  adopt(beginMs: number | null = null): void {
    const { folder, marker } = this.#start;
    const deadline = performance.now() + (beginMs ?? 0);
    const check = (): boolean => {
      // Read once: the file may be written between two reads.
      const record = readProcess(folder);
      const leader = livingLeader(record, marker);
      if (leader !== null) whenGone(leader, folder, (status) => this.#over(status, null));
      else if (record.kind === 'written' || beginMs === null) this.#over(readExit(folder), null);
      else if (performance.now() < deadline) return false;
      else this.refuse(`its shell has not written ${join(folder.path, 'status')}`);
      return true;
    };
    if (check()) return;
    const end = (): void => {
      if (!check()) return;
      clearInterval(polls);
      watcher?.close();
    };
    const polls = setInterval(end, BEGIN_POLL_MS).unref();
    const watcher = watchPath(folder.path, end, { background: true });
  }

  refuse(reason: string): void {
    this.#over(null, reason);
  }

  /** If two shells were started for one agent, only one runs (shell/1), and it may not be ours. */
  #leaderEnded(pid: number, status: number): void {
    const { folder, marker } = this.#start;
    const record = readProcess(folder);
    const isOurs = record.kind === 'written' && record.pid === pid;
    if (status !== NOT_BEGUN || isOurs) this.#over(status, null);
    else if (hasBegunProcess(folder, marker)) this.adopt();
    else this.refuse(`${join(folder.path, 'status')} could not be written`);
  }

  #over(status: number | null, refusal: string | null): void {
    const finish = async (): Promise<void> => {
      const { folder, marker } = this.#start;
      // A shell that was cut off may have left the agent alive.
      if (wasCutOff(readExit(folder)) && refusal === null && !wasEndedByUs(this.#start)) {
        await killProcessTree({ marker, leader: null }, { graceMs: 0 }).done;
      }
      const { settleMs, read } = this.#output;
      if (settleMs > 0 && refusal === null) await sleep(settleMs, undefined, { ref: false });
      this.#onGone();
      this.alive = false;
      this.#end.resolve({ status, refusal, output: read() });
    };
    finish().catch(crash);
  }
}

/** Poll interval for the record of a shell. */
const BEGIN_POLL_MS = 250;

/** `readyFile`: in the folder of the start, exists once the agent could take a prompt. */
export function findAgent(
  start: AgentStart,
  readyFile: string,
  agentOf: () => HostedAgent,
  lastOutput: () => string | null = () => tail(start.folder),
): FoundAgent {
  const { folder, marker } = start;
  // Read once, because it may be written at any moment.
  const record = readProcess(folder);
  if (livingLeader(record, marker) !== null) return { kind: 'alive', agent: agentOf() };
  if (record.kind === 'absent') return { kind: 'never' };
  const exit = { status: readExit(folder), refusal: null, output: lastOutput() };
  return { kind: 'gone', wasReady: existsSync(join(folder.path, readyFile)), exit };
}

/** Stops an agent by the signal that its adapter names, then kills what is left of it (kill-process-tree.ts). */
export function endBySignal(signal: StopWays['signal'], start: AgentStart, graceMs: number): Termination {
  const { folder, marker } = start;
  const leader = livingLeader(readProcess(folder), marker);
  const target = { marker, leader: leader?.pid ?? null };
  // `killProcessTree` sends SIGTERM anyway.
  if (signal === 'SIGTERM' || leader === null || graceMs === 0) return killProcessTree(target, { graceMs });
  // Already gone.
  tolerate(['ESRCH'], undefined, () => process.kill(-leader.group, signal));
  let rest: Termination | null = null;
  const { promise: over, resolve: proceed } = deferred<void>();
  const timer = setTimeout(proceed, graceMs);
  whenGone(leader, folder, () => proceed());
  const done = over.then(() => {
    clearTimeout(timer);
    rest = killProcessTree(target, { graceMs: 0 });
    return rest.done;
  });
  return {
    atOnce() {
      proceed();
      rest?.atOnce();
    },
    look: () => rest?.look(),
    done,
  };
}
