// Terminals: the time until an agent has acknowledged a prompt, compared with pasting it blindly; and the cost of fifty
// idle terminals.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { present } from '../src/base/errors.ts';
import { AgentFolder } from '../src/drivers/agent/files.ts';
import { SessionRegistry } from '../src/drivers/agent/headless/sessions.ts';
import type { AgentHost, HostedAgent } from '../src/drivers/agent/host.ts';
import { terminalHost } from '../src/drivers/agent/terminal/host.ts';
import { Tmux } from '../src/drivers/agent/tmux/tmux.ts';
import { markerOf, processesOfRun } from '../src/drivers/environment.ts';
import { findProgram } from '../src/drivers/recording-shell.ts';
import { type Adapter, DEFAULT_TIMING, type HookNames, NEVER_ASKS, type TerminalProfile } from '../src/ir/adapter.ts';
import { localRunFiles } from '../src/stores/local-run-files.ts';
import { MARKER } from '../src/sys/process.ts';
import type { Bench, Figure, Measurement } from './measure.ts';
import { atMost, duration, environment, figure, interleaveWarm, median, ratios, ROOT } from './measure.ts';

/** They are short, so there are more rounds than elsewhere. */
const MORE_ROUNDS = 6;
const TERMINALS = 50;
const IDLE_S = 10;

export const delivery: Measurement = {
  name: 'delivery',
  method:
    'A prompt of 300 bytes, from the request until the agent has it, against `tmux load-buffer`, `paste-buffer -p` and ' +
    '`send-keys Enter` in sequence, until the same program has it. The program has an input box, and writes a file for ' +
    `each accepted prompt. ${MORE_ROUNDS} times the rounds of the other measurements. Then ${TERMINALS} terminals in which \`cat\` waits: ` +
    `the CPU time that they, tmux and the watching process use in ${IDLE_S} seconds, against those seconds. One round.`,
  async measure(bench) {
    const terminals = new Terminals(bench);
    try {
      return [await acknowledged(bench, terminals), await idle(terminals)];
    } finally {
      await terminals.close();
    }
  },
};

const RUN = { runId: `wf-bench-${process.pid}`, mark: 'm' };

class Terminals {
  readonly tmux: Tmux;
  readonly socket: string;
  readonly program = present(findProgram('tmux', process.env['PATH'] ?? ''), 'there is no tmux on PATH');
  readonly #folder: string;
  readonly #environment: Readonly<Record<string, string>>;

  constructor({ folder }: Bench) {
    this.#folder = folder;
    this.socket = join(folder, 'sock');
    this.#environment = { ...environment(folder), LANG: 'C.UTF-8', WORK: folder };
    this.tmux = new Tmux({ program: this.program, socket: this.socket, environment: this.#environment });
  }

  host(adapter: Adapter): AgentHost {
    const folder = this.#folder;
    const talk = { socket: join(folder, 'run.sock'), inbox: join(folder, 'inbox') };
    return terminalHost({
      ...RUN,
      ...talk,
      tmux: this.tmux,
      adapter,
      sessions: new SessionRegistry(localRunFiles(folder)),
      files: localRunFiles(folder),
      cwd: folder,
      environment: this.#environment,
    });
  }

  async begin(host: AgentHost, agent: string): Promise<HostedAgent> {
    const run = { files: localRunFiles(this.#folder), markerOf: (effect: string) => markerOf(RUN, effect) };
    const wanted = { agent, adapter: 'bench', channel: 'terminal', workdir: this.#folder, session: null } as const;
    const start = new AgentFolder(run, agent).makeStart({ ...wanted, effect: `spawn-${agent}#1` });
    const own = { ...this.#environment, MEOW_AGENT: agent, [MARKER]: start.marker };
    const begun = host.start({ start, environment: own, resumeSession: null, forks: false, args: null });
    const readiness = await begun.ready(20_000, () => Promise.resolve());
    if (readiness.kind !== 'ready') throw new Error(JSON.stringify(readiness));
    return begun;
  }

  async serverPid(): Promise<number> {
    const told = await this.tmux.run(['display-message', '-p', '#{pid}']);
    return Number(told.ok ? told.value[0] : Number.NaN);
  }

  async close(): Promise<void> {
    await this.tmux.run(['kill-server']);
    this.tmux.close();
  }
}

async function acknowledged({ rounds, folder }: Bench, terminals: Terminals): Promise<Figure> {
  const agent = await terminals.begin(terminals.host(ACTOR), 'actor');
  const hooks = join(agent.start.folder.path, 'hooks');
  const text = `say:done ${'and so on '.repeat(29)}`;
  writeFileSync(join(folder, 'prompt'), text);
  const settled = async (): Promise<void> => {
    await agent.conclude('any', 10_000);
    // Until everything of the previous round is drawn.
    await sleep(20);
  };
  let prompts = 0;
  const ours = async (): Promise<number> => {
    await settled();
    const id = `prompt-${prompts++}#1`;
    const message = { kind: 'prompt', id, step: id, prompt: text, text, mode: 'autonomous', expects: [] } as const;
    const began = performance.now();
    const handover = await agent.hand(message, {
      timeoutMs: 10_000,
      note: () => Promise.resolve(),
      givenUp: new Promise(() => undefined),
    });
    const ms = performance.now() - began;
    if (handover.kind !== 'taken') throw new Error(JSON.stringify(handover));
    return ms;
  };
  const bare = async (): Promise<number> => {
    await settled();
    const tmux = `${terminals.program} -S ${terminals.socket}`;
    const script = `${tmux} load-buffer -b p prompt;${tmux} paste-buffer -p -d -b p -t "=$0:";${tmux} send-keys -t "=$0:" Enter`;
    const before = accepted(hooks);
    const began = performance.now();
    const isThere = appearance(hooks, () => accepted(hooks) > before);
    const child = spawn('sh', ['-c', script, present(agent.terminal, 'no terminal')], { cwd: folder, stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await isThere;
    const ms = performance.now() - began;
    await ended;
    return ms;
  };
  const samples = await interleaveWarm(rounds * MORE_ROUNDS, { ours, bare });
  return figure({
    what: 'delivery: a prompt, acknowledged, against pasting it blindly',
    measured: duration(median(samples.ours)),
    against: duration(median(samples.bare)),
    values: ratios(samples.ours, samples.bare),
    unit: '×',
    target: atMost(1.3),
    samples,
  });
}

function accepted(hooks: string): number {
  return readdirSync(hooks).filter((name) => !name.startsWith('.') && name.includes('accepted')).length;
}

function appearance(folder: string, isThere: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(folder, () => {
      if (!isThere()) return;
      watcher.close();
      resolve();
    });
  });
}

async function idle(terminals: Terminals): Promise<Figure> {
  const host = terminals.host(PLAIN);
  for (let number = 0; number < TERMINALS; number += 1) await terminals.begin(host, `idle-${number}`);
  const server = await terminals.serverPid();
  // Until the work of their start is done.
  await sleep(3_000);
  const pids = [server, process.pid, ...processesOfRun(RUN.runId).map(({ pid }) => pid)];
  const before = cpuMs(pids);
  await sleep(IDLE_S * 1_000);
  const usedMs = cpuMs(pids) - before;
  return figure({
    what: `delivery: ${TERMINALS} terminals in which nothing happens, share of a core`,
    measured: duration(usedMs),
    against: `${IDLE_S} s`,
    values: [usedMs / (IDLE_S * 1_000)],
    unit: '×',
    target: atMost(0.02),
    samples: { usedMs: [usedMs] },
  });
}

/** User and system time, in a unit that is the same on every Linux. */
function cpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const path = `/proc/${pid}/stat`;
    if (!existsSync(path)) return sum;
    const text = readFileSync(path, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return sum + (Number(fields[11]) + Number(fields[12])) * 10;
  }, 0);
}

const WAYS: TerminalProfile = {
  command: 'exec cat',
  resumeCommand: null,
  forkCommand: null,
  permissions: NEVER_ASKS,
  sessionId: 'none',
  startupMs: 20,
  ready: null,
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
  },
  acknowledge: { byHook: false, busy: [], queued: [], timeoutMs: 2_000 },
  dialogs: [],
  liveness: { firstMs: null, idleMs: null },
  stop: { interruptKeys: [], keys: [], waitMs: 1_000, signal: 'SIGTERM' },
  timing: DEFAULT_TIMING,
};

const PLAIN: Adapter = {
  name: 'bench',
  description: '',
  isDefault: false,
  alias: null,
  program: null,
  environment: {},
  home: null,
  files: [],
  hooks: null,
  terminal: WAYS,
  headless: null,
  acp: null,
  mailbox: false,
  limits: [],
};

const HOOKS: HookNames = {
  begun: 'begun',
  accepted: 'accepted',
  toolBegun: 'tool-begun',
  toolEnded: 'tool-ended',
  blocked: [],
  stopped: 'stopped',
  failed: 'failed',
  ended: null,
  sessionKey: 'session',
  promptKey: 'prompt',
  messageKey: 'message',
};

const ACTOR: Adapter = {
  ...PLAIN,
  hooks: HOOKS,
  terminal: {
    ...WAYS,
    command: `exec node '${join(ROOT, 'test', 'fixtures', 'terminal', 'actor.mjs')}' --hooks`,
    ready: { patterns: ['^─{60}\\n❯'], deadlineMs: 20_000 },
    injection: { ...WAYS.injection, clearKeys: ['C-u'], draft: ['^─{60}\\n❯ \\S'] },
    acknowledge: { byHook: true, busy: ['esc to interrupt'], queued: [], timeoutMs: 2_000 },
  },
};
