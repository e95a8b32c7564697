// The process of an agent: a shell that leads its session and records how it ended (agent-shell.ts), in this life of the
// engine or an earlier one. Rules host/1, host/3 and host/4.

import { join } from 'node:path';
import type { AgentStart } from '../files.ts';
import { wasEndedByUs } from '../files.ts';
import type { AgentExit } from '../host.ts';
import { agentShellRequest } from '../agent-shell.ts';
import { tail } from '../../capture-outputs.ts';
import { crash } from '../../../sys/throw-uncaught.ts';
import { livingLeader, whenGone } from '../../session-leader.ts';
import { startProcess } from '../../../sys/process.ts';
import { endProcesses } from '../../../sys/kill-process-tree.ts';
import { readExit, readProcess } from '../../step-folder.ts';
import type { Shell } from '../../recording-shell.ts';
import { NOT_BEGUN } from '../../recording-shell.ts';

export interface LedRequest {
  readonly shell: Shell;
  /** A program and its arguments. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

export class LedProcess {
  readonly ended: Promise<AgentExit>;
  readonly #start: AgentStart;
  readonly #gone: () => void;
  #tellEnd: (exit: AgentExit) => void = () => undefined;
  #alive = true;

  /** `gone`: called once, before it counts as gone. */
  constructor(start: AgentStart, gone: () => void) {
    this.#start = start;
    this.#gone = gone;
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve;
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  begin({ shell, command, environment }: LedRequest): void {
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

  /** Somebody else's child. */
  adopt(): void {
    const { folder, marker } = this.#start;
    const leader = livingLeader(readProcess(folder), marker);
    if (leader === null) this.#end(null, null);
    else whenGone(leader, folder, (status) => this.#end(status, null));
  }

  /** It never was. */
  refuse(reason: string): void {
    this.#end(null, reason);
  }

  /** Of two shells for one start, one begins (W1): ours may have been the other. */
  #leaderEnded(pid: number, status: number): void {
    const record = readProcess(this.#start.folder);
    const isOurs = record.kind === 'written' && record.pid === pid;
    if (status !== NOT_BEGUN || isOurs) this.#end(status, null);
    else if (record.kind === 'written') this.adopt();
    else this.refuse(`${join(this.#start.folder.path, 'status')} could not be written`);
  }

  #end(status: number | null, refusal: string | null): void {
    const tell = async (): Promise<void> => {
      const { folder, marker } = this.#start;
      // A shell that could not record the end of its agent may have left it alive.
      if (readExit(folder) === null && refusal === null && !wasEndedByUs(this.#start)) {
        await endProcesses({ marker, leader: null }, { graceMs: 0 }).done;
      }
      this.#gone();
      this.#alive = false;
      this.#tellEnd({ status, refusal, output: tail(folder) });
    };
    tell().catch(crash);
  }
}
