// Turns under test: a temporary run, and agents that are shells which run their prompt. So each test writes what its
// agent does, and the agent is a real process that reads its prompt from stdin.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { err, ok } from '../../src/base/errors.ts';
import { SessionRegistry } from '../../src/drivers/agent/headless/sessions.ts';
import { turnDriver, type TurnDriverOptions } from '../../src/drivers/agent/headless/turn-driver.ts';
import { processesOfRun } from '../../src/drivers/environment.ts';
import type { Driver } from '../../src/engine/ports.ts';
import { type Adapter, type HeadlessProfile, NEVER_ASKS } from '../../src/ir/adapter.ts';
import type { Effect, Outcome, Progress, Session, TurnSpec } from '../../src/ir/effect.ts';
import type { FilledText, Part, Text } from '../../src/ir/text.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { appears, gone, hasEnded } from './driver-command-rig.ts';
import type { DriverRig } from './driver.ts';

/** The folder of functions that prompts of these tests may call. */
export const FUNCTIONS = resolve(import.meta.dirname, '../fixtures/turns/claude.sh');

/** A shell that runs its prompt, and gets its session as an argument. */
const SHELL: HeadlessProfile = {
  command: withHoles('sh -s fresh {{session_id}}'),
  resume: withHoles('sh -s resume {{session_id}}'),
  fork: withHoles('sh -s fork {{session_id}} {{new_session_id}}'),
  permissions: NEVER_ASKS,
  modelArgs: withHoles('--model {{model}}'),
  effortArgs: null,
  prompt: 'stdin',
  reader: 'claude',
  sessionId: 'chosen',
  signal: 'SIGTERM',
};

export function shellAdapter(headless: Partial<HeadlessProfile> = {}, more: Partial<Adapter> = {}): Adapter {
  return {
    name: 'shell',
    description: '',
    isDefault: false,
    alias: null,
    program: null,
    environment: {},
    home: null,
    files: [],
    hooks: null,
    terminal: null,
    headless: { ...SHELL, ...headless },
    acp: null,
    mailbox: false,
    limits: [],
    ...more,
  };
}

/** `{{name}}` as a shell word. */
export function withHoles(text: string): Text {
  const parts = text.split(/\{\{(\w+)\}\}/).map((part, index): Part => {
    return index % 2 === 0 ? part : { path: [part], quote: [{ kind: 'bare' }] };
  });
  return { parts };
}

type Wish = Partial<TurnSpec<FilledText>> & { step?: string; attempt?: number; session?: Session };

let rigs = 0;

export class TurnRig implements DriverRig {
  driver: Driver;
  readonly runId = `wf-turns-${process.pid}-${++rigs}`;
  /** Working directory of agents. */
  readonly folder: string;
  readonly runFolder: string;
  readonly options: Omit<TurnDriverOptions, 'sessions'>;
  readonly #root: string;
  #effects = 0;

  constructor(adapter: Adapter = shellAdapter(), more: Partial<TurnDriverOptions> = {}) {
    this.#root = mkdtempSync(join(tmpdir(), 'meow-turns-'));
    this.folder = join(this.#root, 'work');
    this.runFolder = join(this.#root, "it's a run");
    for (const folder of [this.folder, this.runFolder]) mkdirSync(folder);
    this.options = {
      runId: this.runId,
      mark: 'm',
      files: localRunFiles(this.runFolder),
      cwd: this.folder,
      environment: { PATH: process.env['PATH'] ?? '', HOME: this.#root, MEOW_AGENT: 'outer' },
      socket: join(this.#root, 'sock'),
      inbox: join(this.runFolder, 'inbox'),
      adapters: (name) => (name === adapter.name ? ok(adapter) : err(`there is no adapter ${name}`)),
      ...more,
    };
    this.driver = this.#newDriver();
  }

  nextLife(): void {
    this.driver = this.#newDriver();
  }

  #newDriver(): Driver {
    return turnDriver({ ...this.options, sessions: new SessionRegistry(localRunFiles(this.runFolder)) });
  }

  /** The agent runs this, with the functions available. */
  turn(script: string, wish: Wish = {}): Effect {
    const { step = `step-${++this.#effects}`, attempt = 1, session = { kind: 'fresh' }, ...spec } = wish;
    const plain = { adapter: 'shell', cwd: null, model: null, effort: null, idleMs: null, steering: null };
    return {
      id: `${step}#${attempt}`,
      step,
      attempt,
      spec: { kind: 'turn', ...plain, prompt: `. '${FUNCTIONS}'\n${script}\n`, ...spec },
      session,
      lane: 'main',
      variables: {},
    };
  }

  start(effect: Effect, told: Progress[] = []): Promise<Outcome> {
    return new Promise((resolve) => this.driver.start(effect, resolve, noteIn(told)));
  }

  find(effect: Effect, told: Progress[] = []): Promise<Outcome> {
    return new Promise((resolve) => this.driver.find(effect, resolve, noteIn(told)));
  }

  run(script: string, wish: Wish = {}): Promise<Outcome> {
    return this.start(this.turn(script, wish));
  }

  get functions(): string {
    return FUNCTIONS;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  turnFile({ step, attempt }: Effect, name: string): string {
    return join(this.runFolder, 'steps', `${step}.${attempt}.${name}`);
  }

  pipe(name: string): void {
    execFileSync('sh', ['-c', 'mkfifo "$0"', this.path(`${name}.pipe`)]);
  }

  async write(name: string): Promise<void> {
    await writeFile(this.path(`${name}.pipe`), 'go\n');
  }

  left(): readonly number[] {
    return processesOfRun(this.runId).map(({ pid }) => pid);
  }

  effect(what: 'succeeds' | 'fails' | 'holds'): Effect {
    const step = `step-${++this.#effects}`;
    if (what === 'holds') this.pipe(step);
    const waits = what === 'holds' ? `read -r line < ${step}.pipe` : '';
    return this.turn(`echo x >> ${step}; init; ${waits}\n${what === 'fails' ? 'error no' : 'result yes'}`, { step });
  }

  async begun(effect: Effect): Promise<void> {
    await appears(this.path(effect.step));
  }

  async release(effect: Effect): Promise<void> {
    await this.write(effect.step);
    await appears(this.turnFile(effect, 'status'), hasEnded);
  }

  async lose(effect: Effect): Promise<void> {
    const pid = Number(readFileSync(this.turnFile(effect, 'status'), 'utf8').split(' ')[0]);
    process.kill(-pid, 'SIGKILL');
    await gone(pid);
  }

  timesBegun(effect: Effect): number {
    return existsSync(this.path(effect.step)) ? readFileSync(this.path(effect.step), 'utf8').length / 2 : 0;
  }

  close(): Promise<void> {
    for (const pid of this.left()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
      }
    }
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 5 });
    return Promise.resolve();
  }
}

function noteIn(told: Progress[]): (progress: Progress) => Promise<void> {
  return (progress) => {
    told.push(progress);
    return Promise.resolve();
  };
}

/** The outputs of a success; any other outcome fails the test. */
export function outputsOf(outcome: Outcome): Readonly<Record<string, unknown>> {
  if (outcome.kind === 'failure') throw new Error(JSON.stringify(outcome.failure));
  return outcome.outputs;
}
