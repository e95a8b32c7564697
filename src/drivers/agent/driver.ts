// The driver of long-lived agents: spawned once, prompted step by step, monitored, stopped. One object performs all
// four kinds of effects, since they share the agents. Hosts (host.ts) implement the agents.
//
// agent/1  An attempt spawns at most one agent, however often it is asked for (host/1), and only when nothing is left of the
//          agent's earlier life.
// agent/2  A prompt is delivered at most once for each effect, across engine restarts (host/2), and only to the agent
//          that it was first addressed to.
// agent/3  A delivered prompt stays open until it is concluded or stopped. The agent's exit is reported once, by the
//          `attend` effect.
// agent/4  Agents keep working after the run ends. Only `kill` stops them.
// agent/5  Problems of the world are failures in the outcome; an exception is a bug and ends the engine.

import { randomUUID } from 'node:crypto';

import { assert, err, ok, type Result } from '../../base/errors.ts';
import type { Answer, DialogVerdict, Driver, Note, StopHow } from '../../engine/ports.ts';
import type { Adapter, Channel } from '../../ir/adapter.ts';
import type { AttendSpec, Effect, KillSpec, Outcome, PromptSpec, SpawnSpec } from '../../ir/effect.ts';
import { success } from '../../ir/effect.ts';
import type { Failure } from '../../ir/failure.ts';
import { type AgentMessage, keyName, promptText } from '../../ir/prompt-text.ts';
import type { FilledText } from '../../ir/text.ts';
import { type DriverContext, markerOf } from '../environment.ts';
import { endedWith, failed, resolveText, resolveTexts } from '../outputs.ts';
import { ignoreProgress, type PendingEffect, PendingEffects } from '../pending-effect.ts';
import { unlessRefused } from '../step-folder.ts';
import { AgentFolder, type AgentStart, markEnded, wasEndedByUs } from './files.ts';
import type { AgentExit, AgentHost, FoundAgent, HostFor, HostedAgent, WorkEnd } from './host.ts';
import { agentName, missingProgram, spawnRequest } from './spawn-request.ts';

export interface AgentDriverOptions extends DriverContext {
  readonly hosts: HostFor;
  /** Time for an agent to stop its work after a timeout; 10 seconds except in tests. */
  readonly graceMs?: number;
  /** Time limits for delivery and readiness; 30 and 60 seconds except in tests. */
  readonly deliveryMs?: number;
  readonly readyMs?: number;
}

export interface AgentsDriver extends Driver {
  /** Whether the agent has started with the prompt of an effect; false during delivery or if the agent is gone. */
  hasTaken(agent: string, effectId: string): boolean;
  /** Whether a report could be about the prompt of an effect; false during delivery. */
  couldHave(agent: string, effectId: string): boolean;
  /** Types keys of a person into the terminal of an agent. An error is a sentence. */
  typeKeys(agent: string, keys: Uint8Array, by: string): Promise<Result<null, string>>;
}

export function agentDriver(options: AgentDriverOptions): AgentsDriver {
  return new AgentDriver(options);
}

const GRACE_MS = 10_000;
const DELIVERY_MS = 30_000;
const READY_MS = 60_000;

type How = 'start' | 'find';

class AgentDriver implements AgentsDriver {
  readonly #options: AgentDriverOptions;
  readonly #graceMs: number;
  readonly #open = new PendingEffects();
  /** Agents seen by this engine, dead or alive, by name. */
  readonly #agents = new Map<string, HostedAgent>();

  constructor(options: AgentDriverOptions) {
    this.#options = options;
    this.#graceMs = options.graceMs ?? GRACE_MS;
  }

  start(effect: Effect, answer: Answer, note: Note = ignoreProgress): void {
    this.#ask('start', effect, answer, note);
  }

  find(effect: Effect, answer: Answer, note: Note = ignoreProgress): void {
    this.#ask('find', effect, answer, note);
  }

  stop(effectId: string, how: StopHow): void {
    this.#open.get(effectId)?.stop(how);
  }

  conclude(effectId: string): void {
    this.#open.get(effectId)?.conclude();
  }

  decide(effectId: string, verdict: DialogVerdict): void {
    this.#open.get(effectId)?.decide(verdict);
  }

  hasTaken(agent: string, effectId: string): boolean {
    return this.#known(agent)?.hasBegun(effectId) ?? false;
  }

  couldHave(agent: string, effectId: string): boolean {
    return this.#known(agent)?.couldHave?.(effectId) ?? true;
  }

  async typeKeys(agent: string, keys: Uint8Array, by: string): Promise<Result<null, string>> {
    const known = this.#known(agent);
    if (known?.typeKeys !== undefined) return known.typeKeys(keys, by);
    return err(known === null ? `agent ${agent} is not running` : `agent ${agent} has no terminal`);
  }

  #ask(how: How, effect: Effect, answer: Answer, note: Note): void {
    const { id, spec } = effect;
    this.#open.ask(id, answer, async (pending) => {
      switch (spec.kind) {
        case 'spawn':
          return this.#spawn(effect, spec, pending, note);
        case 'attend':
          return this.#attend(spec, pending, note);
        case 'prompt':
          return this.#prompt(how, effect, spec, pending, note);
        case 'kill':
          return this.#kill(spec, pending);
        default:
          assert(false, `nothing about an agent: ${id} is a ${spec.kind}`);
      }
    });
  }

  async #spawn(effect: Effect, spec: SpawnSpec<FilledText>, pending: PendingEffect, note: Note): Promise<Outcome> {
    await this.#clearPrevious(effect, spec);
    if (pending.isStopped) return this.#neverSpawned(effect, spec);
    const begun = this.#begin(effect, spec);
    if (!begun.ok) return failed('spawn-failed', `the agent could not be started: ${begun.error}`);
    const { start, agent, isNew } = begun.value;
    if ('kind' in agent) {
      if (agent.exit.status === null || agent.wasReady) return this.#lost(start);
      return this.#unready(begun.value, agent.exit);
    }
    this.#agents.set(start.agent, agent);
    pending.whenDecided((verdict) => agent.decide(verdict));
    const first = await Promise.race([agent.ready(this.#options.readyMs ?? READY_MS, note), pending.stopped]);
    if ('force' in first) {
      markEnded(start);
      await this.#clear(start, first.force ? 0 : this.#graceMs, pending.forced);
      return failed('stopped', `agent ${start.agent} was stopped before it was ready`);
    }
    if (first.kind === 'ready') {
      const { agent: name, adapter, workdir } = start;
      const { session, terminal } = agent;
      return success({ agent: name, adapter, workdir, session_id: session, terminal }, { session });
    }
    if (first.kind === 'gone') {
      const exit = await agent.ended;
      if (exit.status === null && !isNew) return this.#lost(start);
      return this.#unready(begun.value, exit);
    }
    markEnded(start);
    await this.#clear(start, 0, pending.forced);
    return failed('spawn-failed', `agent ${start.agent} was not ready in time: ${first.reason}`);
  }

  #unready({ start, adapter }: Begun, exit: AgentExit): Outcome {
    const refusal = exit.refusal ?? missingProgram(adapter, exit, this.#options.environment);
    const what = refusal === null ? `${ended(exit)} before it was ready` : `could not be started: ${refusal}`;
    return failed('spawn-failed', `agent ${start.agent} ${what}`, details(exit));
  }

  /** Also stops leftovers of the agent. */
  async #lost(start: AgentStart): Promise<Outcome> {
    await this.#clear(start, 0);
    return failed('lost', `agent ${start.agent} was started in an earlier life of the engine, and is gone`);
  }

  /** Stops leftovers of the agent's earlier life: its shell may be dead, and the agent alive (agent/1). */
  async #clearPrevious(effect: Effect, spec: SpawnSpec<FilledText>): Promise<void> {
    const name = resolveText(spec.agent, this.#options.files);
    const previous = name.ok ? this.#folderOf(name.value).current() : null;
    if (previous === null || previous.effect === effect.id || this.#known(previous.agent)?.alive === true) return;
    await this.#clear(previous, 0);
  }

  /** Stopped in the same tick in which it was requested; an earlier engine may have started it anyway. */
  async #neverSpawned(effect: Effect, spec: SpawnSpec<FilledText>): Promise<Outcome> {
    const name = resolveText(spec.agent, this.#options.files);
    const earlier = name.ok ? this.#folderOf(name.value).start(effect.id) : null;
    if (earlier !== null) {
      markEnded(earlier);
      await this.#clear(earlier, this.#graceMs);
    }
    return failed('stopped', 'the agent was stopped before it was started');
  }

  /** The start of this effect: new or existing. */
  #begin(effect: Effect, spec: SpawnSpec<FilledText>): Result<Begun, string> {
    const name = agentName(spec, this.#options.files);
    if (!name.ok) return name;
    const choice = this.#options.hosts(name.value.adapter, spec.channel);
    if (!choice.ok) return choice;
    const { host, adapter, channel, sessionId } = choice.value;
    const kept = this.#folderOf(name.value.agent);
    const earlier = kept.start(effect.id);
    const found = earlier === null ? null : host.find(earlier);
    if (earlier !== null && found !== null && found.kind !== 'never') {
      return ok({ start: earlier, adapter, agent: found.kind === 'alive' ? found.agent : found, isNew: false });
    }
    const other = this.#known(name.value.agent);
    if (other?.alive === true) return err(`${other.start.agent} exists already, started by ${other.start.effect}`);
    const request = spawnRequest(effect, spec, adapter, this.#options);
    if (!request.ok) return request;
    const { workdir, args, environmentOf } = request.value;
    // A restart that no step asked for continues the agent's session if possible.
    const isRevival = effect.step.startsWith('@');
    const resumeSession = isRevival && !canResume(adapter, channel) ? null : request.value.resumeSession;
    const begins = resumeSession === null || spec.forks;
    // Keeps a session that was announced before the agent started.
    const session = earlier?.session ?? (begins ? (sessionId === 'chosen' ? randomUUID() : null) : resumeSession);
    return unlessRefused(() => {
      const start = kept.makeStart({ ...name.value, channel, effect: effect.id, workdir, session });
      const environment = environmentOf(start);
      if (!environment.ok) return environment;
      const agent = host.start({ start, environment: environment.value, resumeSession, forks: spec.forks, args });
      return ok({ start, adapter, agent, isNew: true });
    });
  }

  async #attend(spec: AttendSpec, pending: PendingEffect, note: Note): Promise<Outcome> {
    const agent = this.#known(spec.agent);
    if (agent === null) {
      const start = this.#folderOf(spec.agent).current();
      if (start !== null && wasEndedByUs(start)) return success();
      // Its shell is dead. The agent itself may be alive, and nobody could use it.
      if (start !== null) await this.#clear(start, 0);
      return failed('lost', `agent ${spec.agent} is gone, and nobody saw it end`);
    }
    agent.watchSession((session) => void note({ session }));
    const exit = await Promise.race([agent.ended, pending.stopped.then(() => null)]);
    if (exit === null) return failed('stopped', `agent ${spec.agent} is not watched any more`);
    if (wasEndedByUs(agent.start)) return success();
    return failed('agent-crashed', `agent ${spec.agent} ${ended(exit)}`, details(exit));
  }

  async #prompt(
    how: How,
    effect: Effect,
    spec: PromptSpec<FilledText>,
    pending: PendingEffect,
    note: Note,
  ): Promise<Outcome> {
    const texts = resolveTexts({ name: spec.agent, prompt: spec.prompt }, this.#options.files);
    if (!texts.ok) return failed('not-delivered', texts.error);
    const { name, prompt } = texts.value;
    const agent = this.#known(name);
    const kept = this.#folderOf(name);
    const meantFor = kept.promptedStart(effect.id);
    const isOther = meantFor !== null && meantFor !== agent?.start.effect;
    if (agent === null || !agent.alive || isOther) {
      // An agent that died with an earlier engine may be restarted. A death during this engine was reported, and an
      // agent that we stopped is not wanted.
      const current = agent === null ? kept.current() : null;
      if (how === 'find' || (current !== null && !wasEndedByUs(current))) {
        return failed('lost', `agent ${name} is gone, and had the prompt or may have had it`);
      }
      return failed('agent-not-found', `there is no agent ${name} that could be prompted`);
    }
    if (pending.isStopped && meantFor === null) return NOT_GIVEN;
    const recorded = unlessRefused(() => {
      if (meantFor === null) kept.recordPrompt(effect.id, agent.start);
      return ok(null);
    });
    if (!recorded.ok) return failed('not-delivered', `the prompt could not be saved: ${recorded.error}`);
    const message = messageOf(effect, spec, prompt);
    pending.whenDecided((verdict) => agent.decide(verdict));
    // Before the first key press.
    if (meantFor === null) await note({ delivery: 'sending' });
    // A reported step needs no prompt any more.
    const givenUp = Promise.race([pending.stopped, pending.concluded]);
    const timeoutMs = this.#options.deliveryMs ?? DELIVERY_MS;
    const first = await Promise.race([agent.hand(message, { timeoutMs, note, givenUp }), pending.concluded]);
    if (first === null) return this.#concluded(agent, effect.id);
    if (first.kind === 'not-taken') {
      if (pending.isStopped) return NOT_GIVEN;
      void note({ delivery: first.delivery });
      return failed('not-delivered', `agent ${name} did not take the prompt: ${first.reason}`);
    }
    void note({ delivery: first.kind === 'taken' ? (first.delivery ?? 'accepted') : 'dead' });
    if (spec.mode === 'fire-forget') {
      if (first.kind === 'taken') return success();
      return failed('not-delivered', `agent ${name} ended before it took the prompt`);
    }
    const over = new AbortController();
    // The `attend` effect reports the exit (agent/3).
    const work = first.kind === 'taken' ? agent.atWork(message, over.signal, note) : pending.concluded;
    const last = await Promise.race([pending.stopped, pending.concluded, work]);
    over.abort();
    if (last === null) return this.#concluded(agent, effect.id);
    if ('kind' in last) return workEnded(name, last);
    if (last.why === 'run-ending') return failed('stopped', `the run ends; agent ${name} was left at its work`);
    if (agent.alive) {
      await Promise.race([agent.interrupt(effect.id, last.force ? 0 : this.#graceMs), pending.forced]);
    }
    return failed('stopped', `agent ${name} was interrupted`);
  }

  async #concluded(agent: HostedAgent, effectId: string): Promise<Outcome> {
    if (!agent.alive) return success();
    const { session, usage } = await agent.conclude(effectId, this.#graceMs);
    return success({}, { session, usage });
  }

  async #kill(spec: KillSpec<FilledText>, pending: PendingEffect): Promise<Outcome> {
    const name = resolveText(spec.agent, this.#options.files);
    if (!name.ok) return failed('agent-not-found', name.error);
    const start = this.#folderOf(name.value).current();
    if (start === null) return success();
    const host = this.#hostOf(start);
    if (!host.ok) return failed('agent-not-found', `agent ${name.value} cannot be ended: ${host.error}`);
    markEnded(start);
    const left = await this.#clear(start, spec.graceful ? spec.graceMs : 0, pending.stopped);
    if (this.#agents.get(name.value)?.start.effect === start.effect) this.#agents.delete(name.value);
    if (left.length === 0) return success();
    return failed('timeout', `agent ${name.value} could not be ended: these processes are left: ${left.join(', ')}`);
  }

  /** Stops leftovers of a start. Resolves to the pids that could not be killed. */
  async #clear(start: AgentStart, graceMs: number, hurry: Promise<unknown> | null = null): Promise<readonly number[]> {
    const host = this.#hostOf(start);
    // Started by another version of meow, or its adapter is gone.
    if (!host.ok) return [];
    const ending = host.value.clear(start, graceMs);
    void hurry?.then(() => ending.atOnce());
    return (await ending.done).map(({ pid }) => pid);
  }

  /** The current agent of this name, dead or alive; null if it does not exist or died with an earlier engine. */
  #known(name: string): HostedAgent | null {
    const met = this.#agents.get(name);
    if (met !== undefined) return met;
    const start = this.#folderOf(name).current();
    const host = start === null ? null : this.#hostOf(start);
    if (start === null || host?.ok !== true) return null;
    const found = host.value.find(start);
    if (found.kind !== 'alive') return null;
    this.#agents.set(name, found.agent);
    return found.agent;
  }

  /** The host that the agent was started with, whatever would be chosen now. */
  #hostOf({ adapter, channel }: AgentStart): Result<AgentHost, string> {
    const choice = this.#options.hosts(adapter, channel);
    return choice.ok ? ok(choice.value.host) : choice;
  }

  #folderOf(name: string): AgentFolder {
    return new AgentFolder({ files: this.#options.files, markerOf: (start) => markerOf(this.#options, start) }, name);
  }
}

interface Begun {
  readonly start: AgentStart;
  readonly adapter: Adapter;
  readonly agent: HostedAgent | Extract<FoundAgent, { kind: 'gone' }>;
  readonly isNew: boolean;
}

function canResume({ terminal, headless }: Adapter, channel: Channel): boolean {
  if (channel === 'terminal') return terminal?.resumeCommand !== null;
  return channel !== 'headless' || headless?.resume !== null;
}

function messageOf({ id, step }: Effect, { mode, expects }: PromptSpec<FilledText>, prompt: string): AgentMessage {
  const key = mode === 'fire-forget' ? keyName(prompt) : null;
  if (key !== null) return { kind: 'key', id, key };
  return { kind: 'prompt', id, step, prompt, text: promptText(prompt, mode, expects), mode, expects };
}

function workEnded(agent: string, end: WorkEnd): Outcome {
  switch (end.kind) {
    case 'limit': {
      const message = `agent ${agent} has reached a usage limit: ${end.limit.text}`;
      const { until } = end.limit;
      // If the end of the limit is unknown, a resume tries again.
      return failed('limit-reached', message, until === null ? { parks: true } : { retryAt: until });
    }
    case 'idle':
      return failed('idle', `agent ${agent} gives no sign of life: ${end.reason}`);
    case 'over':
      return end.outcome;
  }
}

const NOT_GIVEN = failed('stopped', 'the prompt was not given any more');

function ended({ status }: AgentExit): string {
  return status === null ? 'is gone without leaving its status' : endedWith(status);
}

function details({ status, output }: AgentExit): Partial<Failure> {
  return { code: status, output };
}
