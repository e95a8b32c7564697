// Agents in terminals under test: a temporary run, its own tmux server, and programs that replace agents.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { present } from '../../src/base/errors.ts';
import { AgentFolder, type AgentStart } from '../../src/drivers/agent/files.ts';
import { SessionRegistry } from '../../src/drivers/agent/headless/sessions.ts';
import type { AgentHost, Handover, HostedAgent, WorkEnd } from '../../src/drivers/agent/host.ts';
import { terminalHost, type TerminalHostOptions } from '../../src/drivers/agent/terminal/host.ts';
import { Tmux } from '../../src/drivers/agent/tmux/tmux.ts';
import { markerOf, processesOfRun } from '../../src/drivers/environment.ts';
import { findProgram } from '../../src/drivers/recording-shell.ts';
import {
  type Adapter,
  DEFAULT_TIMING,
  type DialogPattern,
  type HookNames,
  NEVER_ASKS,
  type TerminalProfile,
} from '../../src/ir/adapter.ts';
import type { Progress } from '../../src/ir/effect.ts';
import type { PromptMessage } from '../../src/ir/prompt-text.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { MARKER } from '../../src/sys/process.ts';
import { gone } from './driver-command-rig.ts';

export const FIXTURES = resolve(import.meta.dirname, '../fixtures/terminal');
const PATH = process.env['PATH'] ?? '';
const PROGRAM = present(findProgram('tmux', PATH), 'these tests need tmux');

export type WaysWish = Partial<Omit<TerminalProfile, 'injection' | 'acknowledge' | 'stop' | 'timing'>> & {
  readonly injection?: Partial<TerminalProfile['injection']>;
  readonly acknowledge?: Partial<TerminalProfile['acknowledge']>;
  readonly stop?: Partial<TerminalProfile['stop']>;
  readonly timing?: Partial<TerminalProfile['timing']>;
};

export interface AdapterWish {
  readonly terminal: WaysWish;
  readonly hooks?: Partial<HookNames>;
  readonly limits?: Adapter['limits'];
}

let rigs = 0;

export class TerminalRig {
  readonly runId = `wf-term-${process.pid}-${++rigs}`;
  readonly root: string;
  /** Working directory of agents. */
  readonly folder: string;
  readonly runFolder: string;
  readonly socket: string;
  /** Progress that agents report. */
  readonly notes = new Notes();
  #lives: Tmux[] = [];
  #tmux: Tmux;

  constructor() {
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'meow-term-')));
    this.folder = join(this.root, 'work');
    this.runFolder = join(this.root, "it's a run");
    this.socket = join(this.root, 'sock');
    for (const folder of [this.folder, this.runFolder]) mkdirSync(folder);
    this.#tmux = this.nextLife();
  }

  /** The engine dies, and the next one has its own connection. */
  nextLife(): Tmux {
    this.#tmux = new Tmux({ program: PROGRAM, socket: this.socket, environment: this.environment });
    this.#lives.push(this.#tmux);
    return this.#tmux;
  }

  get tmux(): Tmux {
    return this.#tmux;
  }

  get environment(): Readonly<Record<string, string>> & { readonly PATH: string } {
    return { PATH, HOME: this.root, LANG: 'C.UTF-8', WORK: this.folder };
  }

  host(adapter: AdapterWish, more: Partial<TerminalHostOptions> = {}): AgentHost {
    return terminalHost({
      tmux: this.#tmux,
      adapter: adapterOf(adapter),
      sessions: new SessionRegistry(localRunFiles(this.runFolder)),
      runId: this.runId,
      mark: 'm',
      files: localRunFiles(this.runFolder),
      cwd: this.folder,
      environment: this.environment,
      socket: join(this.root, 'run.sock'),
      inbox: join(this.root, 'inbox'),
      ...more,
    });
  }

  begin(host: AgentHost, agent = 'worker', more: { session?: string | null; effect?: string } = {}): HostedAgent {
    const start = this.makeStart(agent, more);
    const environment = { ...this.environment, MEOW_AGENT: agent, [MARKER]: start.marker };
    return host.start({ start, environment, resumeSession: null, forks: false, args: null });
  }

  /** Starts an agent; the start itself is not under test. */
  async started(adapter: AdapterWish, more: Partial<TerminalHostOptions> = {}): Promise<HostedAgent> {
    const agent = this.begin(this.host(adapter, more));
    const readiness = await agent.ready(60_000, this.notes.note);
    if (readiness.kind !== 'ready') {
      throw new Error(JSON.stringify([readiness, agent.alive ? null : await agent.ended]));
    }
    return agent;
  }

  /** As the next engine finds it. */
  found(start: AgentStart, adapter: AdapterWish, more: Partial<TerminalHostOptions> = {}): HostedAgent {
    const found = this.host(adapter, more).find(start);
    if (found.kind !== 'alive') throw new Error(`it is ${found.kind}`);
    return found.agent;
  }

  hand(
    agent: HostedAgent,
    id: string,
    text: string,
    timeoutMs = 60_000,
    givenUp: Promise<unknown> = NEVER,
  ): Promise<Handover> {
    return agent.hand(prompt(id, text), { timeoutMs, note: this.notes.note, givenUp });
  }

  makeStart(agent: string, more: { session?: string | null; effect?: string } = {}): AgentStart {
    const { session = null, effect = `spawn-${agent}#1` } = more;
    return this.folderOf(agent).makeStart({
      effect,
      agent,
      adapter: 'test',
      channel: 'terminal',
      workdir: this.folder,
      session,
    });
  }

  folderOf(agent: string): AgentFolder {
    return new AgentFolder(
      {
        files: localRunFiles(this.runFolder),
        markerOf: (effect) => markerOf({ runId: this.runId, mark: 'm' }, effect),
      },
      agent,
    );
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  read(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : '';
  }

  /** As a person would, on the same server. */
  asUser(...args: readonly string[]): string {
    const { stdout, stderr, status } = spawnSync(PROGRAM, ['-N', '-S', this.socket, ...args], {
      env: { PATH },
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    return stdout;
  }

  left(): readonly number[] {
    return processesOfRun(this.runId).map(({ pid }) => pid);
  }

  async close(): Promise<void> {
    for (const life of this.#lives) life.close();
    const server = spawnSync(PROGRAM, ['-N', '-S', this.socket, 'display-message', '-p', '#{pid}'], {
      encoding: 'utf8',
    });
    spawnSync(PROGRAM, ['-N', '-S', this.socket, 'kill-server']);
    if (server.status === 0) await gone(Number(server.stdout));
    for (const pid of this.left()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
      }
    }
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}

function adapterOf({ terminal, hooks, limits = [] }: AdapterWish): Adapter {
  const { injection, acknowledge, stop, timing, ...ways } = terminal;
  return {
    name: 'test',
    description: '',
    isDefault: false,
    alias: null,
    program: null,
    environment: {},
    home: null,
    files: [],
    hooks:
      hooks === undefined
        ? null
        : {
            begun: 'begun',
            accepted: 'accepted',
            toolBegun: 'tool-begun',
            toolEnded: 'tool-ended',
            blocked: ['blocked'],
            stopped: 'stopped',
            failed: 'failed',
            ended: 'ended',
            sessionKey: 'session',
            promptKey: 'prompt',
            messageKey: 'message',
            ...hooks,
          },
    terminal: {
      command: 'cat',
      resumeCommand: null,
      forkCommand: null,
      permissions: NEVER_ASKS,
      sessionId: 'none',
      startupMs: 0,
      ready: null,
      dialogs: [],
      liveness: { firstMs: null, idleMs: null },
      ...ways,
      injection: {
        preKeys: [],
        preDelayMs: 0,
        method: 'paste',
        postDelayMs: 0,
        postKeys: ['Enter'],
        clearKeys: [],
        draft: [],
        alters: [],
        misread: [],
        deadlineMs: null,
        ...injection,
      },
      acknowledge: { byHook: false, busy: [], queued: [], timeoutMs: 2_000, ...acknowledge },
      timing: { ...DEFAULT_TIMING, ...timing },
      stop: { interruptKeys: ['Escape'], keys: [], waitMs: 1_000, signal: 'SIGTERM', ...stop },
    },
    headless: null,
    acp: null,
    mailbox: false,
    limits,
  };
}

export function prompt(id: string, text: string): PromptMessage {
  return { kind: 'prompt', id, step: id.split('#')[0] ?? '', prompt: text, text, mode: 'autonomous', expects: [] };
}

/** Collects progress. */
class Notes {
  readonly told: Progress[] = [];
  readonly #waiting = new Set<() => void>();
  readonly note = (progress: Progress): Promise<void> => {
    this.told.push(progress);
    for (const look of this.#waiting) look();
    return Promise.resolve();
  };

  /** Resolves to the first match, past or future. */
  async until(fits: (progress: Progress) => boolean): Promise<Progress> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.told.find(fits);
        if (found === undefined) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }
}

export const NEVER: Promise<never> = new Promise(() => undefined);

export const TAKEN = { kind: 'taken' };

/** Delivers a prompt, and watches the work. The promise is wrapped in an object so that it is not awaited. */
export async function atWork(
  rig: TerminalRig,
  agent: HostedAgent,
  id: string,
  text: string,
): Promise<{ readonly end: Promise<WorkEnd>; readonly leave: () => void }> {
  const handover = await rig.hand(agent, id, text);
  if (handover.kind !== 'taken') throw new Error(JSON.stringify(handover));
  const over = new AbortController();
  return { end: agent.atWork(prompt(id, text), over.signal, rig.notes.note), leave: () => over.abort() };
}

/**
 * With its own rig, so that several tests can run in parallel. A test that takes too long also leaves nothing behind.
 */
export async function onRig(test: (rig: TerminalRig) => Promise<void>, timeoutMs = TEST_MS): Promise<void> {
  const rig = new TerminalRig();
  let timer: NodeJS.Timeout | undefined;
  const outOfTime = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it takes too long')), timeoutMs);
  });
  try {
    await Promise.race([test(rig), outOfTime]);
  } finally {
    clearTimeout(timer);
    await rig.close();
  }
}

/** Slightly less than the limit of the runner. */
const TEST_MS = 170_000;

/** The program of test/fixtures/terminal/actor.mjs as an agent. */
export function actor(flags: string, wish: WaysWish = {}, limits: Adapter['limits'] = []): AdapterWish {
  const byHook = flags.includes('--hooks');
  return {
    terminal: {
      command: `node '${join(FIXTURES, 'actor.mjs')}' ${flags}`,
      ready: { patterns: ['^─{60}\\n❯'], deadlineMs: 60_000 },
      ...wish,
      injection: { clearKeys: ['C-u'], draft: ['^─{60}\\n❯ (?!Press up)\\S'], ...wish.injection },
      acknowledge: {
        byHook,
        busy: ['esc to interrupt'],
        queued: ['Press up to edit queued messages'],
        timeoutMs: 1_000,
        ...wish.acknowledge,
      },
      dialogs: wish.dialogs ?? [PERMISSION],
    },
    ...(byHook ? { hooks: {} } : {}),
    limits,
  };
}

export const PERMISSION: DialogPattern = {
  name: 'permission',
  pattern: 'Do you want to proceed\\?',
  answer: null,
  approve: ['1'],
  reject: ['Escape'],
  cure: null,
  atStart: false,
};

/** The records of the actor. */
export interface Acted {
  readonly kind: string;
  readonly [key: string]: unknown;
}

export function actedBy(rig: TerminalRig, agent = 'worker'): readonly Acted[] {
  return rig
    .read(`${agent}.record`)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Acted);
}

/** The texts that it received. */
export function givenTo(rig: TerminalRig, agent = 'worker'): readonly string[] {
  return actedBy(rig, agent)
    .filter(({ kind }) => kind === 'accepted')
    .map(({ text }) => Buffer.from(String(text), 'base64').toString());
}
