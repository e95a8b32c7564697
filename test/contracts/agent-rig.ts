// Agents under test: a temporary run, the simulated agent as a real process, and a `meow` on its PATH that records its
// calls and answers as configured.

import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { AgentsDriver } from '../../src/drivers/agent/driver.ts';
import { processesOfRun } from '../../src/drivers/environment.ts';
import { fileName } from '../../src/drivers/step-folder.ts';
import type { Effect, EffectSpec, Outcome, PromptSpec, SpawnSpec } from '../../src/ir/effect.ts';
import type { Expectation } from '../../src/ir/output.ts';
import type { FilledText } from '../../src/ir/text.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { type AgentRigOptions, driverOf } from '../fixtures/agents/driver.ts';
import { bundled } from '../rig/bundle.ts';
import { appears, gone } from './driver-command-rig.ts';
import { type DriverRig, find, start } from './driver.ts';

const SIM_AGENT = new URL('../fixtures/agents/sim-agent.ts', import.meta.url);

let rigs = 0;

export class AgentRig implements DriverRig {
  driver: AgentsDriver;
  readonly runId = `wf-agents-${process.pid}-${++rigs}`;
  /** Working directory of agents. */
  readonly folder: string;
  readonly runFolder: string;
  readonly options: AgentRigOptions;
  readonly #root: string;
  #effects = 0;

  constructor(more: Partial<AgentRigOptions> = {}) {
    const root = mkdtempSync(join(tmpdir(), 'meow-agents-'));
    this.#root = root;
    this.folder = join(root, 'work');
    this.runFolder = join(root, "it's a run");
    for (const folder of [this.folder, this.runFolder, join(root, 'bin')]) mkdirSync(folder);
    writeProgram(join(root, 'bin', 'meow'), FAKE_MEOW);
    writeProgram(join(root, 'bin', 'sim'), `${HOLDING}exec ${process.execPath} ${bundled(SIM_AGENT)} "$@"\n`);
    this.options = {
      runId: this.runId,
      mark: 'm',
      files: localRunFiles(this.runFolder),
      cwd: this.folder,
      environment: { PATH: process.env['PATH'] ?? '', HOME: root, TEST: root, MEOW_STEP: 'outer', MEOW_ATTEMPT: '7' },
      binFolder: join(root, 'bin'),
      socket: join(root, 'sock'),
      inbox: join(root, 'inbox'),
      command: [join(root, 'bin', 'sim')],
      script: null,
      ...more,
    };
    this.driver = driverOf(this.options);
  }

  nextLife(): void {
    this.driver = driverOf(this.options);
  }

  spawning(agent: string, more: Partial<SpawnSpec<FilledText>> & { id?: string } = {}): Effect {
    const { id = `spawn-${agent}#1`, ...spec } = more;
    const plain = {
      agent,
      adapter: 'sim',
      cwd: null,
      env: {},
      channel: null,
      resumeSession: null,
      forks: false,
      args: null,
    };
    return this.#asked(id, { kind: 'spawn', ...plain, ...spec });
  }

  prompting(agent: string, prompt: string, more: Partial<PromptSpec<FilledText>> & { id?: string } = {}): Effect {
    const { id = `prompt-${++this.#effects}#1`, ...spec } = more;
    return this.#asked(id, { kind: 'prompt', agent, prompt, mode: 'autonomous', expects: [], ...spec });
  }

  attending(agent: string, generation = 1): Effect {
    return this.#asked(`@${agent}#${generation}`, { kind: 'attend', agent, adapter: 'sim' });
  }

  killing(agent: string, graceMs = 600_000): Effect {
    return this.#asked(`kill-${++this.#effects}#1`, { kind: 'kill', agent, graceful: graceMs > 0, graceMs });
  }

  #asked(id: string, spec: EffectSpec<FilledText>): Effect {
    const [step = '', attempt = ''] = id.split('#');
    return { id, step, attempt: Number(attempt), spec, session: { kind: 'fresh' }, lane: 'main', variables: {} };
  }

  /** Starts an agent; the start itself is not under test. */
  async spawned(agent: string, more: Partial<SpawnSpec<FilledText>> & { id?: string } = {}): Promise<Outcome> {
    const outcome = await this.start(this.spawning(agent, more));
    if (outcome.kind === 'failure') throw new Error(JSON.stringify(outcome.failure));
    return outcome;
  }

  start(effect: Effect): Promise<Outcome> {
    return start(this, effect);
  }

  find(effect: Effect): Promise<Outcome> {
    return find(this, effect);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** A file of an agent's start. */
  startFile(agent: string, name: string, id = `spawn-${agent}#1`): string {
    return join(this.runFolder, 'agents', fileName(agent), fileName(id), name);
  }

  transcript(agent: string, id?: string): string {
    return readFileSync(this.startFile(agent, 'stdout', id), 'utf8');
  }

  /** Resolves when the agent has printed this text. */
  async says(agent: string, text: string, id?: string): Promise<void> {
    const file = this.startFile(agent, 'stdout', id);
    // Once it exists, its own folder is watched.
    await appears(file, () => true);
    await appears(file, (said) => said.includes(text));
  }

  /** Calls of `meow`: the step, a bar, the arguments. */
  calls(): readonly string[] {
    const file = join(this.#root, 'calls');
    return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  }

  async called(line: string): Promise<void> {
    const file = join(this.#root, 'calls');
    await appears(file, (text) => text.split('\n').includes(line));
  }

  /** Rejects the next `times` calls of `meow done`. */
  refuseDone(times: number): void {
    for (let time = 1; time <= times; time += 1) mkdirSync(join(this.#root, `refusal-${time}`));
  }

  /** Output of `meow prime`. */
  primeWith(text: string): void {
    writeFileSync(join(this.#root, 'prime'), text);
  }

  /** The pid of the agent's shell. */
  leader(agent: string, id?: string): number {
    return Number(readFileSync(this.startFile(agent, 'status', id), 'utf8').split(' ')[0]);
  }

  left(): readonly number[] {
    return processesOfRun(this.runId).map(({ pid }) => pid);
  }

  effect(what: 'succeeds' | 'fails' | 'holds'): Effect {
    const agent = `agent-${++this.#effects}`;
    if (what === 'holds') execFileSync('sh', ['-c', 'mkfifo "$0"', this.path(`${agent}.pipe`)]);
    return this.spawning(agent, { id: `${agent}#1`, env: { FAILS: what === 'fails' ? '3' : '' } });
  }

  async begun(effect: Effect): Promise<void> {
    await appears(this.path(effect.step));
  }

  async release(effect: Effect): Promise<void> {
    await writeFile(this.path(`${effect.step}.pipe`), 'go\n');
    await appears(this.startFile(effect.step, 'ready', effect.id), () => true);
  }

  async lose(effect: Effect): Promise<void> {
    const pid = this.leader(effect.step, effect.id);
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

export function expected(name: string, type: Expectation['type'] = 'string'): Expectation {
  return { name, type, required: true, description: null };
}

export const SUCCESS = { kind: 'success' };
export const failedWith = (kind: string) => ({ kind: 'failure', failure: { kind } });
export const TIME_UP = { force: false, why: 'timeout' } as const;
export const RUN_ENDS = { force: false, why: 'run-ending' } as const;

const FAKE_MEOW = `#!/bin/sh
printf '%s\\n' "$MEOW_STEP|$*" >> "$TEST/calls"
case $1 in
  done) for refusal in "$TEST"/refusal-*; do if rmdir "$refusal" 2>/dev/null; then echo 'not so' >&2; exit 1; fi; done ;;
  prime) cat "$TEST/prime" 2>/dev/null || : ;;
  await-approval) exit 0 ;;
esac
`;

/** An agent reports its start, and if it has a pipe it waits there before it works. */
const HOLDING = `#!/bin/sh
echo x >> "$TEST/work/$MEOW_AGENT"
if [ -n "$FAILS" ]; then exit "$FAILS"; fi
if [ -p "$TEST/work/$MEOW_AGENT.pipe" ]; then read -r line < "$TEST/work/$MEOW_AGENT.pipe"; fi
`;

function writeProgram(path: string, text: string): void {
  appendFileSync(path, text);
  chmodSync(path, 0o755);
}
