// Headless agents under test: the agent driver over the headless host, with agents that are shells which run their
// prompt (turn-rig.ts). An `exit` cuts off the report instructions at the end of a prompt.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ok } from '../../src/base/errors.ts';
import { agentDriver, type AgentsDriver } from '../../src/drivers/agent/driver.ts';
import { headlessHost } from '../../src/drivers/agent/headless/host.ts';
import { SessionRegistry } from '../../src/drivers/agent/headless/sessions.ts';
import { fileName } from '../../src/drivers/step-folder.ts';
import type { Adapter } from '../../src/ir/adapter.ts';
import type { Effect, EffectSpec, Outcome, Progress, PromptSpec, SpawnSpec } from '../../src/ir/effect.ts';
import type { FilledText } from '../../src/ir/text.ts';
import type { DriverRig } from './driver.ts';
import { FUNCTIONS, shellAdapter, TurnRig } from './turn-rig.ts';

export class HeadlessRig implements DriverRig {
  driver: AgentsDriver;
  /** Owns the run, its folders and its processes. */
  readonly run: TurnRig;
  readonly #adapter: Adapter;
  readonly #more: { readonly graceMs?: number };
  #effects = 0;

  constructor(adapter: Adapter = shellAdapter(), more: { readonly graceMs?: number } = {}) {
    this.run = new TurnRig(adapter);
    this.#adapter = adapter;
    this.#more = more;
    this.driver = this.#life();
  }

  nextLife(): void {
    this.driver = this.#life();
  }

  #life(): AgentsDriver {
    const options = { ...this.run.options, ...this.#more };
    const sessions = new SessionRegistry(options.files);
    const host = headlessHost({ ...options, adapter: this.#adapter, sessions, heard: () => Promise.resolve() });
    const sessionId = this.#adapter.headless?.sessionId ?? 'none';
    const choice = { host, adapter: this.#adapter, channel: 'headless', sessionId } as const;
    return agentDriver({ ...options, hosts: () => ok(choice) });
  }

  spawning(agent: string, more: Partial<SpawnSpec<FilledText>> & { id?: string } = {}): Effect {
    const { id = `spawn-${agent}#1`, ...spec } = more;
    const none = { cwd: null, env: {}, channel: null, resumeSession: null, forks: false, args: null };
    return asked(id, { kind: 'spawn', agent, adapter: 'shell', ...none, ...spec });
  }

  prompting(agent: string, script: string, more: Partial<PromptSpec<FilledText>> & { id?: string } = {}): Effect {
    const { id = `prompt-${++this.#effects}#1`, ...spec } = more;
    const prompt = `. '${FUNCTIONS}'\n${script}\nexit`;
    return asked(id, { kind: 'prompt', agent, prompt, mode: 'autonomous', expects: [], ...spec });
  }

  attending(agent: string): Effect {
    return asked(`@${agent}#1`, { kind: 'attend', agent, adapter: 'shell' });
  }

  killing(agent: string, graceMs = 600_000): Effect {
    return asked(`kill-${++this.#effects}#1`, { kind: 'kill', agent, graceful: graceMs > 0, graceMs });
  }

  start(effect: Effect, told: Progress[] = []): Promise<Outcome> {
    return new Promise((resolve) => this.driver.start(effect, resolve, noteIn(told)));
  }

  find(effect: Effect, told: Progress[] = []): Promise<Outcome> {
    return new Promise((resolve) => this.driver.find(effect, resolve, noteIn(told)));
  }

  async spawned(agent: string, more: Partial<SpawnSpec<FilledText>> = {}): Promise<Outcome> {
    const outcome = await this.start(this.spawning(agent, more));
    if (outcome.kind === 'failure') throw new Error(JSON.stringify(outcome.failure));
    return outcome;
  }

  path(name: string): string {
    return this.run.path(name);
  }

  turnFile(effect: Effect, name: string): string {
    return this.run.turnFile(effect, name);
  }

  /** For the driver contract, an effect is a prompt to its own agent, which is started before. */
  effect(what: 'succeeds' | 'fails' | 'holds'): Effect {
    const step = `step-${++this.#effects}`;
    if (what === 'holds') this.run.pipe(step);
    const waits = what === 'holds' ? `read -r line < ${step}.pipe` : '';
    const script = `echo x >> ${step}; init; ${waits}\n${what === 'fails' ? 'error no' : 'result yes'}`;
    return this.prompting('worker', script, { id: `${step}#1` });
  }

  begun(effect: Effect): Promise<void> {
    return this.run.begun(effect);
  }

  release(effect: Effect): Promise<void> {
    return this.run.release(effect);
  }

  lose(effect: Effect): Promise<void> {
    return this.run.lose(effect);
  }

  timesBegun(effect: Effect): number {
    return this.run.timesBegun(effect);
  }

  close(): Promise<void> {
    return this.run.close();
  }

  /** A file of an agent's start. */
  startFile(agent: string, name: string, id = `spawn-${agent}#1`): string {
    return join(this.run.runFolder, 'agents', fileName(agent), fileName(id), name);
  }

  lines(name: string): readonly string[] {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8').trimEnd().split('\n') : [];
  }
}

/** Resolves when the condition is true. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve));
}

function asked(id: string, spec: EffectSpec<FilledText>): Effect {
  const [step = '', attempt = ''] = id.split('#');
  return { id, step, attempt: Number(attempt), spec, session: { kind: 'fresh' }, lane: 'main', variables: {} };
}

function noteIn(told: Progress[]): (progress: Progress) => Promise<void> {
  return (progress) => {
    told.push(progress);
    return Promise.resolve();
  };
}
