// The process of an agent: a shell that leads its session and records its exit (agent-shell.ts), started by this engine or by
// an earlier one; and how to stop it. Rules host/1, host/3 and host/4.

import { join } from 'node:path';
import type { AgentStart } from '../files.ts';
import { wasEndedByUs } from '../files.ts';
import type { AgentExit } from '../host.ts';
import { agentShellRequest } from '../agent-shell.ts';
import { tail } from '../../capture-outputs.ts';
import { crash } from '../../../sys/throw-uncaught.ts';
import { livingLeader, whenGone } from '../../session-leader.ts';
import { startProcess } from '../../../sys/process.ts';
import { killProcessTree } from '../../../sys/kill-process-tree.ts';
import type { Termination } from '../../../sys/kill-process-tree.ts';
import type { StopWays } from '../../../ir/adapter.ts';
import { isErrno } from '../../../sys/errno.ts';
import { readExit, readProcess } from '../../step-folder.ts';
import type { Shell } from '../../recording-shell.ts';
import { NOT_BEGUN } from '../../recording-shell.ts';

export interface ProcessRequest {
  readonly shell: Shell;
  /** A program and its arguments. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

export class AgentProcess {
  readonly ended: Promise<AgentExit>;
  readonly #start: AgentStart;
  readonly #onGone: () => void;
  #resolveEnd: (exit: AgentExit) => void = () => undefined;
  #alive = true;

  /** `onGone`: called once, before `alive` becomes false. */
  constructor(start: AgentStart, onGone: () => void) {
    this.#start = start;
    this.#onGone = onGone;
    this.ended = new Promise((resolve) => {
      this.#resolveEnd = resolve;
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  begin({ shell, command, environment }: ProcessRequest): void {
    const { folder, workdir } = this.#start;
    let ownPid = 0;
    startProcess(agentShellRequest({ shell, command, workdir, folder: folder.path, environment }), {
      begun: (pid) => {
        ownPid = pid;
      },
      refused: (error) => this.refuse(error.message),
      ended: (status) => this.#leaderEnded(ownPid, status),
    });
  }

  /** Follows a process that another engine started. */
  adopt(): void {
    const { folder, marker } = this.#start;
    const leader = livingLeader(readProcess(folder), marker);
    if (leader === null) this.#end(null, null);
    else whenGone(leader, folder, (status) => this.#end(status, null));
  }

  /** The process could not be started. */
  refuse(reason: string): void {
    this.#end(null, reason);
  }

  /** Of two shells for one start only one runs (shell/1), and it may not be ours. */
  #leaderEnded(pid: number, status: number): void {
    const record = readProcess(this.#start.folder);
    const isOurs = record.kind === 'written' && record.pid === pid;
    if (status !== NOT_BEGUN || isOurs) this.#end(status, null);
    else if (record.kind === 'written') this.adopt();
    else this.refuse(`${join(this.#start.folder.path, 'status')} could not be written`);
  }

  #end(status: number | null, refusal: string | null): void {
    const finish = async (): Promise<void> => {
      const { folder, marker } = this.#start;
      // A shell that could not record the agent's exit may have left the agent alive.
      if (readExit(folder) === null && refusal === null && !wasEndedByUs(this.#start)) {
        await killProcessTree({ marker, leader: null }, { graceMs: 0 }).done;
      }
      this.#onGone();
      this.#alive = false;
      this.#resolveEnd({ status, refusal, output: tail(folder) });
    };
    finish().catch(crash);
  }
}

/** Stops an agent by the signal that its adapter names, then kills what is left of it (kill-process-tree.ts). */
export function endBySignal(signal: StopWays['signal'], start: AgentStart, graceMs: number): Termination {
  const { folder, marker } = start;
  const leader = livingLeader(readProcess(folder), marker);
  const target = { marker, leader: leader?.pid ?? null };
  // `killProcessTree` sends SIGTERM anyway.
  if (signal === 'SIGTERM' || leader === null || graceMs === 0) return killProcessTree(target, { graceMs });
  try {
    process.kill(-leader.group, signal);
  } catch (error) {
    // Already gone.
    if (!isErrno(error, 'ESRCH')) throw error;
  }
  let rest: Termination | null = null;
  let proceed: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  const timer = setTimeout(proceed, graceMs);
  whenGone(leader, folder, proceed);
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
    look() {
      rest?.look();
    },
    done,
  };
}
