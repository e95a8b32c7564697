// Simulated agents: plain processes without a terminal, each in its own session, led by a shell that records their
// exit. Prompts arrive through a mailbox in the folder of their start (sim/mail.ts), and their words are in `stdout`.
// Rules host/1 to host/4.
//
// The first start copies the script into the run's folder: a resumed run uses that copy, whatever happens to the
// original. Extra arguments of the start command are ignored: they are for real agents.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ok } from '../../base/errors.ts';
import type { RunFiles } from '../../engine/ports.ts';
import type { AgentMessage } from '../../ir/prompt-text.ts';
import { costOf, hasBegun, limitOf, mailboxIn, makeMailbox, READY, sendMail } from '../../sim/mail.ts';
import { timeLimit } from '../../sys/clock.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { readUntrustedFile, replacePrivate } from '../../sys/files.ts';
import { watchPath } from '../../sys/watch.ts';
import { ignoreProgress } from '../pending-effect.ts';
import { findShell } from '../recording-shell.ts';
import { fileName, unlessRefused } from '../step-folder.ts';
import { AgentProcess, endBySignal, findAgent } from './agent-process.ts';
import type { AgentStart } from './files.ts';
import { watchOrPoll } from './growing-file.ts';
import { type AgentExit, type AgentHost, type Concluded, type Handover, never, notTaken } from './host.ts';
import type { HandRequest, HostedAgent, Readiness, StartRequest, WorkEnd } from './host.ts';

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
    find: (start) =>
      findAgent(start, READY, () => {
        const agent = new SimulatedAgent(start);
        agent.process.adopt();
        return agent;
      }),
    clear: (start, graceMs) => endBySignal('SIGTERM', start, graceMs),
  };
}

class SimulatedAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal = null;
  readonly session: string | null;
  readonly process: AgentProcess;
  readonly ended: Promise<AgentExit>;
  readonly #gone = new AbortController();

  constructor(start: AgentStart) {
    this.start = start;
    this.session = start.session;
    this.process = new AgentProcess(start, () => this.#gone.abort());
    this.ended = this.process.ended;
  }

  get alive(): boolean {
    return this.process.alive;
  }

  begin({ start, environment }: StartRequest, options: SimHostOptions): void {
    const { path } = start.folder;
    const shell = findShell('sh', `${options.searchPath}:/bin:/usr/bin`);
    if (shell === null) return this.process.refuse('there is no shell sh on PATH');
    const script = unlessRefused(() => {
      makeMailbox(mailboxIn(path));
      return ok(keptScript(options));
    });
    if (!script.ok) return this.process.refuse(script.error);
    const command = [...options.command, path, script.value, join(dirname(path), 'memory.json')];
    this.process.begin({ shell, command, environment });
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
    const sent = unlessRefused(() => ok(sendMail(mailbox, fileName(message.id), message)));
    if (!sent.ok) return notTaken(sent.error);
    const letter = sent.value;
    await this.#until(mailbox, timeoutMs, () => letter.state() !== 'waiting', givenUp);
    letter.withdraw();
    if (letter.state() === 'taken') return { kind: 'taken' };
    return this.alive ? notTaken('its time was up') : { kind: 'agent-gone' };
  }

  hasBegun(id: string): boolean {
    return tolerate(UNUSABLE, false, () => hasBegun(mailboxIn(this.start.folder.path), fileName(id)));
  }

  atWork({ id }: AgentMessage, over: AbortSignal): Promise<WorkEnd> {
    const { path } = this.start.folder;
    return new Promise((resolve) => {
      const look = (): void => {
        const limit = limitOf(path, id);
        if (limit === null) return;
        stop();
        resolve({ kind: 'limit', limit });
      };
      const stop = watchOrPoll(path, look, LOOK_MS);
      over.addEventListener('abort', stop);
      look();
    });
  }

  /** It never shows dialogs. */
  decide(): void {}

  conclude(effectId: string): Promise<Concluded> {
    const { path } = this.start.folder;
    const usage = tolerate(UNUSABLE, null, () => costOf(path, effectId));
    return Promise.resolve({ session: this.session, usage });
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    const press = { kind: 'key', id: `${id} interrupt`, key: 'C-c' } as const;
    await this.hand(press, { timeoutMs, note: ignoreProgress, givenUp: never() });
  }

  /** Whether the condition became true before the time limit, the agent's exit, or giving up. */
  #until(folder: string, timeoutMs: number, isTrue: () => boolean, givenUp?: Promise<unknown>): Promise<boolean> {
    return new Promise((resolve) => {
      const { ended, cancel } = timeLimit({ timeoutMs, givenUp, signal: this.#gone.signal });
      const end = (): void => {
        cancel();
        clearInterval(looks);
        watcher?.close();
        resolve(isTrue());
      };
      const look = (): void => {
        if (isTrue()) end();
      };
      const watcher = watchPath(folder, look, { background: true });
      const looks = setInterval(look, watcher === null ? LOOK_UNWATCHED_MS : LOOK_MS);
      void ended.then(end);
      look();
    });
  }
}

const LOOK_MS = 1_000;
const LOOK_UNWATCHED_MS = 50;

/** Path of the run's copy; a script without rules if there is none. */
export function keptScript({ files, script }: Pick<SimHostOptions, 'files' | 'script'>): string {
  const path = files.localPath(SIM_SCRIPT);
  const text = script ?? '';
  // Absent, or lost in a power failure: the Program has it.
  if (readUntrustedFile(path, Buffer.byteLength(text))?.text !== text) replacePrivate(path, text);
  return path;
}
