// Simulated agents: plain processes without a terminal, each in its own session, led by a shell that records their
// exit. Prompts arrive through a mailbox in the folder of their start (sim/mail.ts), and their words are in `stdout`.
// Rules host/1 to host/4.
//
// The first start copies the script into the run's folder: a resumed run uses that copy, whatever happens to the
// original. Extra arguments of the start command are ignored: they are for real agents.

import type { RunFiles } from '../../engine/ports.ts';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hasBegun, limitOf, makeMailbox, mailboxIn, READY, sendMail } from '../../sim/mail.ts';
import type { AgentMessage } from '../../ir/prompt-text.ts';
import { agentFolderOf, wasEndedByUs } from './files.ts';
import type { AgentStart } from './files.ts';
import type {
  AgentExit,
  AgentHost,
  Concluded,
  HandRequest,
  Handover,
  HostedAgent,
  Readiness,
  StartRequest,
  WorkEnd,
} from './host.ts';
import { agentShellRequest } from './agent-shell.ts';
import { tail } from '../capture-outputs.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import { crash } from '../../sys/throw-uncaught.ts';
import { livingLeader, whenGone } from '../session-leader.ts';
import { watchPath } from '../../sys/watch.ts';
import { startProcess } from '../../sys/process.ts';
import { killProcessTree } from '../../sys/kill-process-tree.ts';
import type { Termination } from '../../sys/kill-process-tree.ts';
import { fileName, readExit, readProcess } from '../step-folder.ts';
import { replacePrivate } from '../../sys/private-file.ts';
import { findShell, NOT_BEGUN } from '../recording-shell.ts';

/** Name of the script among a workflow's attachments, and in the run's folder. */
export const SIM_SCRIPT = 'sim.toml';

export interface SimHostOptions {
  readonly files: RunFiles;
  /** Program and first arguments: the path of `meow`, and `sim-agent`. */
  readonly command: readonly string[];
  /** Null: agents do what they are asked. */
  readonly script: string | null;
  /** PATH to find `sh` on. */
  readonly searchPath: string;
}

export function simHost(options: SimHostOptions): AgentHost {
  return {
    start: (request) => {
      const agent = new SimulatedAgent(request.start);
      agent.begin(request, options);
      return agent;
    },
    find: (start) => {
      const { folder, marker } = start;
      // Read once: the file may be written between two reads.
      const record = readProcess(folder);
      if (livingLeader(record, marker) !== null) {
        const agent = new SimulatedAgent(start);
        agent.adopt();
        return { kind: 'alive', agent };
      }
      if (record.kind === 'absent') return { kind: 'never' };
      const exit = { status: readExit(folder), refusal: null, output: tail(folder) };
      return { kind: 'gone', wasReady: existsSync(join(folder.path, READY)), exit };
    },
    clear,
  };
}

function clear(start: AgentStart, graceMs: number): Termination {
  const leader = livingLeader(readProcess(start.folder), start.marker)?.pid ?? null;
  return killProcessTree({ marker: start.marker, leader }, { graceMs });
}

class SimulatedAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal = null;
  readonly ended: Promise<AgentExit>;
  #tellEnd: (exit: AgentExit) => void = () => undefined;
  readonly #gone = new AbortController();

  constructor(start: AgentStart) {
    this.start = start;
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve;
    });
  }

  get alive(): boolean {
    return !this.#gone.signal.aborted;
  }

  begin({ start, environment }: StartRequest, options: SimHostOptions): void {
    const { folder, workdir } = start;
    const shell = findShell('sh', `${options.searchPath}:/bin:/usr/bin`);
    if (shell === null) {
      this.#end(null, 'there is no shell sh on PATH');
      return;
    }
    let script: string;
    try {
      makeMailbox(mailboxIn(folder.path));
      script = keptScript(options);
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      this.#end(null, error.message);
      return;
    }
    const command = [...options.command, folder.path, script, join(agentFolderOf(start), 'memory.json')];
    let ownPid = 0;
    startProcess(agentShellRequest({ shell, command, workdir, folder: folder.path, environment }), {
      begun: (pid) => {
        ownPid = pid;
      },
      refused: (error) => this.#end(null, error.message),
      ended: (status) => this.#leaderEnded(ownPid, status),
    });
  }

  /** Not our child process. */
  adopt(): void {
    const { folder, marker } = this.start;
    const leader = livingLeader(readProcess(folder), marker);
    if (leader === null) this.#end(null, null);
    else whenGone(leader, folder, (status) => this.#end(status, null));
  }

  get session(): string | null {
    return this.start.session;
  }

  async ready(timeoutMs: number): Promise<Readiness> {
    const { path } = this.start.folder;
    if (await this.#until(path, timeoutMs, () => existsSync(join(path, READY)))) return { kind: 'ready' };
    return this.alive ? { kind: 'unready', reason: 'it said nothing' } : { kind: 'gone' };
  }

  /** It stays in its first session. */
  watchSession(): void {}

  async hand(message: AgentMessage, { timeoutMs, givenUp }: HandRequest): Promise<Handover> {
    if (!this.alive) return { kind: 'agent-gone' };
    const mailbox = mailboxIn(this.start.folder.path);
    let letter: ReturnType<typeof sendMail>;
    try {
      letter = sendMail(mailbox, fileName(message.id), message);
    } catch (error) {
      if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return notTaken(error.message);
      throw error;
    }
    await this.#until(mailbox, timeoutMs, () => letter.state() !== 'waiting', givenUp);
    letter.withdraw();
    if (letter.state() === 'taken') return { kind: 'taken' };
    return this.alive ? notTaken('its time was up') : { kind: 'agent-gone' };
  }

  hasBegun(id: string): boolean {
    try {
      return hasBegun(mailboxIn(this.start.folder.path), fileName(id));
    } catch (error) {
      if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return false;
      throw error;
    }
  }

  atWork({ id }: AgentMessage, over: AbortSignal): Promise<WorkEnd> {
    const { path } = this.start.folder;
    return new Promise((resolve) => {
      const stop = (): void => {
        clearInterval(looks);
        watcher?.close();
      };
      const look = (): void => {
        const limit = limitOf(path, id);
        if (limit === null) return;
        stop();
        resolve({ kind: 'limit', limit });
      };
      const watcher = watchPath(path, look, { background: true });
      const looks = watcher === null ? setInterval(look, LOOK_MS).unref() : undefined;
      over.addEventListener('abort', stop);
      look();
    });
  }

  /** It never shows dialogs. */
  decide(): void {}

  conclude(): Promise<Concluded> {
    return Promise.resolve({ session: this.session, usage: null });
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    const press = { kind: 'key', id: `${id} interrupt`, key: 'C-c' } as const;
    await this.hand(press, { timeoutMs, note: () => Promise.resolve(), givenUp: new Promise(() => {}) });
  }

  /** Of two shells for one start only one runs (shell/1): ours may be the other. */
  #leaderEnded(pid: number, status: number): void {
    const record = readProcess(this.start.folder);
    const isOurs = record.kind === 'written' && record.pid === pid;
    if (status !== NOT_BEGUN || isOurs) this.#end(status, null);
    else if (record.kind === 'written') this.adopt();
    else this.#end(null, `${join(this.start.folder.path, 'status')} could not be written`);
  }

  #end(status: number | null, refusal: string | null): void {
    const tell = async (): Promise<void> => {
      // A shell that could not record the exit may have left the agent alive.
      const isRecorded = readExit(this.start.folder) !== null;
      if (!isRecorded && refusal === null && !wasEndedByUs(this.start)) await clear(this.start, 0).done;
      this.#gone.abort();
      this.#tellEnd({ status, refusal, output: tail(this.start.folder) });
    };
    tell().catch(crash);
  }

  /** Whether the condition became true before the time limit, the agent's exit, or giving up. */
  #until(folder: string, timeoutMs: number, isTrue: () => boolean, givenUp?: Promise<unknown>): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        clearInterval(looks);
        watcher?.close();
        this.#gone.signal.removeEventListener('abort', end);
        resolve(isTrue());
      };
      const look = (): void => {
        if (isTrue()) end();
      };
      const timer = setTimeout(end, timeoutMs);
      const watcher = watchPath(folder, look, { background: true });
      const looks = setInterval(look, watcher === null ? LOOK_UNWATCHED_MS : LOOK_MS);
      this.#gone.signal.addEventListener('abort', end);
      void givenUp?.then(end);
      if (!this.alive) end();
      else look();
    });
  }
}

function notTaken(reason: string): Handover {
  return { kind: 'not-taken', delivery: 'not-ready', reason };
}

const LOOK_MS = 1_000;
const LOOK_UNWATCHED_MS = 50;

/** Path of the run's copy; a script without rules if there is none. */
export function keptScript({ files, script }: Pick<SimHostOptions, 'files' | 'script'>): string {
  const path = files.localPath(SIM_SCRIPT);
  if (existsSync(path)) return path;
  replacePrivate(path, script ?? '');
  return path;
}
