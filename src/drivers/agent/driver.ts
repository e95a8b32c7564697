// The driver of long-lived agents: spawned once, prompted step by step, monitored, stopped. One object performs all
// four kinds of effects, since they share the agents. Hosts (host.ts) implement the agents.
//
// agent/1  An attempt spawns at most one agent, however often it is asked for (host/1).
// agent/2  A prompt is delivered at most once for each effect, across engine restarts (host/2), and only to the agent
//          that it was first addressed to.
// agent/3  A delivered prompt stays open until it is concluded or stopped. The agent's exit is reported once, by the
//          `attend` effect.
// agent/4  Agents keep working after the run ends. Only `kill` stops them.
// agent/5  Problems of the world are failures in the outcome; an exception is a bug and ends the engine.

import { randomUUID } from 'node:crypto';
import { assert } from '../../base/assert.ts';
import { ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Answer, DialogVerdict, Driver, Note, StopHow } from '../../engine/ports.ts';
import type { Adapter, Channel } from '../../ir/adapter.ts';
import { success } from '../../ir/effect.ts';
import type { AttendSpec, Effect, KillSpec, Outcome, PromptSpec, SpawnSpec } from '../../ir/effect.ts';
import { failure } from '../../ir/failure.ts';
import type { Failure, FailureKind } from '../../ir/failure.ts';
import { keyName, promptText } from '../../ir/prompt-text.ts';
import type { AgentMessage } from '../../ir/prompt-text.ts';
import type { FilledText } from '../../ir/text.ts';
import { AgentFolder, markEnded, wasEndedByUs } from './files.ts';
import type { AgentStart } from './files.ts';
import type { AgentExit, AgentHost, FoundAgent, HostedAgent, HostFor, WorkEnd } from './host.ts';
import { agentName, spawnRequest, missingProgram } from './spawn-request.ts';
import { PendingEffects } from '../pending-effect.ts';
import type { PendingEffect } from '../pending-effect.ts';
import { markerOf } from '../environment.ts';
import type { DriverContext } from '../environment.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import { endedWith } from '../command-outcome.ts';
import { resolveText } from '../resolve-text.ts';

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
  readonly #open = new PendingEffects();
  /** Agents seen by this engine, dead or alive, by name. */
  readonly #agents = new Map<string, HostedAgent>();

  constructor(options: AgentDriverOptions) {
    this.#options = options;
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

  #ask(how: How, effect: Effect, answer: Answer, note: Note): void {
    this.#open.ask(effect.id, answer, (asked) => this.#perform(how, effect, asked, note));
  }

  async #perform(how: How, effect: Effect, asked: PendingEffect, note: Note): Promise<Outcome> {
    const { spec } = effect;
    switch (spec.kind) {
      case 'spawn':
        return this.#spawn(effect, spec, asked, note);
      case 'attend':
        return this.#attend(spec, asked, note);
      case 'prompt':
        return this.#prompt(how, effect, spec, asked, note);
      case 'kill':
        return this.#kill(spec, asked);
      default:
        assert(false, `nothing about an agent: ${effect.id} is a ${spec.kind}`);
    }
  }

  async #spawn(effect: Effect, spec: SpawnSpec<FilledText>, asked: PendingEffect, note: Note): Promise<Outcome> {
    if (asked.isStopped) return this.#neverSpawned(effect, spec);
    const begun = this.#begin(effect, spec);
    if ('kind' in begun) return { kind: 'failure', failure: begun };
    const { start, agent } = begun;
    if ('kind' in agent) {
      if (agent.exit.status === null || agent.wasReady) return this.#lost(start);
      return this.#unready(begun, agent.exit);
    }
    this.#agents.set(start.agent, agent);
    asked.whenDecided((verdict) => agent.decide(verdict));
    const first = await Promise.race([agent.ready(this.#options.readyMs ?? READY_MS, note), asked.stopped]);
    if ('force' in first) {
      markEnded(start);
      await this.#clear(start, first.force ? 0 : this.#graceMs, asked.forced);
      return failed('stopped', `agent ${start.agent} was stopped before it was ready`);
    }
    if (first.kind === 'ready') {
      const { agent: name, adapter, workdir } = start;
      const { session, terminal } = agent;
      return success({ agent: name, adapter, workdir, session_id: session, terminal }, { session });
    }
    if (first.kind === 'gone') {
      const exit = await agent.ended;
      if (exit.status === null && !begun.isNew) return this.#lost(start);
      return this.#unready(begun, exit);
    }
    markEnded(start);
    await this.#clear(start, 0, asked.forced);
    return failed('spawn-failed', `agent ${start.agent} was not ready in time: ${first.reason}`);
  }

  #unready({ start, adapter }: Begun, exit: AgentExit): Outcome {
    const { status, output: said } = exit;
    const refusal = exit.refusal ?? missingProgram(adapter, { status, said }, this.#options.environment);
    const what = refusal === null ? `${ended(exit)} before it was ready` : `could not be started: ${refusal}`;
    return failed('spawn-failed', `agent ${start.agent} ${what}`, details(exit));
  }

  /** Also stops leftovers of the agent. */
  async #lost(start: AgentStart): Promise<Outcome> {
    await this.#clear(start, 0);
    return failed('lost', `agent ${start.agent} was started in an earlier life of the engine, and is gone`);
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
  #begin(effect: Effect, spec: SpawnSpec<FilledText>): Begun | Failure {
    const refuse = (reason: string): Failure => failure('spawn-failed', `the agent could not be started: ${reason}`);
    const name = agentName(spec, this.#options.files);
    if (!name.ok) return refuse(name.error);
    const choice = this.#options.hosts(name.value.adapter, spec.channel);
    if (!choice.ok) return refuse(choice.error);
    const { host, adapter, channel, sessionId } = choice.value;
    const kept = this.#folderOf(name.value.agent);
    const earlier = kept.start(effect.id);
    const found = earlier === null ? null : host.find(earlier);
    if (earlier !== null && found !== null && found.kind !== 'never') {
      return { start: earlier, adapter, agent: found.kind === 'alive' ? found.agent : found, isNew: false };
    }
    const other = this.#known(name.value.agent);
    if (other?.alive === true) return refuse(`${other.start.agent} is there already, started by ${other.start.effect}`);
    const request = spawnRequest(effect, spec, adapter, this.#options);
    if (!request.ok) return refuse(request.error);
    const { workdir, args, environmentOf } = request.value;
    const resumeSession = isRevival(effect) && !canResume(adapter, channel) ? null : request.value.resumeSession;
    const begins = resumeSession === null || spec.forks;
    // Keeps a session that was announced before the agent started.
    const session = earlier?.session ?? (begins ? (sessionId === 'chosen' ? randomUUID() : null) : resumeSession);
    try {
      const start = kept.makeStart({ ...name.value, channel, effect: effect.id, workdir, session });
      const environment = environmentOf(start);
      if (!environment.ok) return refuse(environment.error);
      const request = { start, environment: environment.value, resumeSession, forks: spec.forks, args };
      return { start, adapter, agent: host.start(request), isNew: true };
    } catch (error) {
      if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return refuse(error.message);
      throw error;
    }
  }

  async #attend(spec: AttendSpec, asked: PendingEffect, note: Note): Promise<Outcome> {
    const agent = this.#known(spec.agent);
    if (agent === null) {
      const start = this.#folderOf(spec.agent).current();
      if (start !== null && wasEndedByUs(start)) return success();
      return failed('lost', `agent ${spec.agent} is gone, and nobody saw it end`);
    }
    agent.watchSession((session) => void note({ session }));
    const exit = await Promise.race([agent.ended, asked.stopped.then(() => null)]);
    if (exit === null) return failed('stopped', `agent ${spec.agent} is not watched any more`);
    if (wasEndedByUs(agent.start)) return success();
    return failed('agent-crashed', `agent ${spec.agent} ${ended(exit)}`, details(exit));
  }

  async #prompt(
    how: How,
    effect: Effect,
    spec: PromptSpec<FilledText>,
    asked: PendingEffect,
    note: Note,
  ): Promise<Outcome> {
    const { files } = this.#options;
    const [name, prompt] = [resolveText(spec.agent, files), resolveText(spec.prompt, files)];
    if (!name.ok) return failed('not-delivered', name.error);
    if (!prompt.ok) return failed('not-delivered', prompt.error);
    const agent = this.#known(name.value);
    const kept = this.#folderOf(name.value);
    const meantFor = kept.promptedStart(effect.id);
    const isOther = meantFor !== null && meantFor !== agent?.start.effect;
    if (agent === null || !agent.alive || isOther) {
      // An agent that died with an earlier engine may be restarted. A death during this engine was reported, and an
      // agent that we stopped is not wanted.
      const current = agent === null ? kept.current() : null;
      if (how === 'find' || (current !== null && !wasEndedByUs(current))) {
        return failed('lost', `agent ${name.value} had the prompt, or was to have it, and is gone`);
      }
      return failed('agent-not-found', `there is no agent ${name.value} that could be prompted`);
    }
    if (asked.isStopped && meantFor === null) return NOT_GIVEN;
    try {
      if (meantFor === null) kept.recordPrompt(effect.id, agent.start);
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      return failed('not-delivered', `the prompt could not be kept: ${error.message}`);
    }
    const message = messageOf(effect, spec, prompt.value);
    asked.whenDecided((verdict) => agent.decide(verdict));
    // Before the first key press.
    if (meantFor === null) await note({ delivery: 'sending' });
    // A reported step needs no prompt any more.
    const givenUp = Promise.race([asked.stopped, asked.concluded]);
    const timeoutMs = this.#options.deliveryMs ?? DELIVERY_MS;
    const first = await Promise.race([agent.hand(message, { timeoutMs, note, givenUp }), asked.concluded]);
    if (first === null) return this.#concluded(agent, effect.id);
    if (first.kind === 'not-taken') {
      if (asked.isStopped) return NOT_GIVEN;
      void note({ delivery: first.delivery });
      return failed('not-delivered', `agent ${name.value} did not take the prompt: ${first.reason}`);
    }
    void note({ delivery: first.kind === 'taken' ? (first.delivery ?? 'accepted') : 'dead' });
    if (spec.mode === 'fire-forget') {
      if (first.kind === 'taken') return success();
      return failed('not-delivered', `agent ${name.value} ended before it took the prompt`);
    }
    const over = new AbortController();
    // The `attend` effect reports the exit (agent/3).
    const work = first.kind === 'taken' ? agent.atWork(message, over.signal, note) : asked.concluded;
    const last = await Promise.race([asked.stopped, asked.concluded, work]);
    over.abort();
    if (last === null) return this.#concluded(agent, effect.id);
    if ('kind' in last) return workEnded(name.value, last);
    if (last.why === 'run-ending') return failed('stopped', `the run ends; agent ${name.value} was left at its work`);
    if (agent.alive) {
      await Promise.race([agent.interrupt(effect.id, last.force ? 0 : this.#graceMs), asked.forced]);
    }
    return failed('stopped', `agent ${name.value} was interrupted`);
  }

  async #concluded(agent: HostedAgent, effectId: string): Promise<Outcome> {
    if (!agent.alive) return success();
    const { session, usage } = await agent.conclude(effectId, this.#graceMs);
    return success({}, { session, usage });
  }

  async #kill(spec: KillSpec<FilledText>, asked: PendingEffect): Promise<Outcome> {
    const name = resolveText(spec.agent, this.#options.files);
    if (!name.ok) return failed('agent-not-found', name.error);
    const start = this.#folderOf(name.value).current();
    if (start === null) return success();
    const host = this.#hostOf(start);
    if (!host.ok) return failed('agent-not-found', `agent ${name.value} cannot be ended: ${host.error}`);
    markEnded(start);
    const left = await this.#clear(start, spec.graceful ? spec.graceMs : 0, asked.stopped);
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

  get #graceMs(): number {
    return this.#options.graceMs ?? GRACE_MS;
  }
}

interface Begun {
  readonly start: AgentStart;
  readonly adapter: Adapter;
  readonly agent: HostedAgent | Extract<FoundAgent, { kind: 'gone' }>;
  readonly isNew: boolean;
}

/** A restart that no step asked for: continues the agent's session if possible. */
function isRevival({ step }: Effect): boolean {
  return step.startsWith('@');
}

function canResume({ terminal, headless }: Adapter, channel: Channel): boolean {
  switch (channel) {
    case 'terminal':
      return terminal?.resumeCommand !== null;
    case 'headless':
      return headless?.resume !== null;
    case 'acp':
    case 'mailbox':
      return true;
  }
}

function messageOf(effect: Effect, spec: PromptSpec<FilledText>, prompt: string): AgentMessage {
  const key = spec.mode === 'fire-forget' ? keyName(prompt) : null;
  if (key !== null) return { kind: 'key', id: effect.id, key };
  const { mode, expects } = spec;
  return {
    kind: 'prompt',
    id: effect.id,
    step: effect.step,
    prompt,
    text: promptText(prompt, mode, expects),
    mode,
    expects,
  };
}

function workEnded(agent: string, end: WorkEnd): Outcome {
  switch (end.kind) {
    case 'limit': {
      const message = `agent ${agent} has reached a usage limit: ${end.limit.text}`;
      return failed('limit-reached', message, { retryAt: end.limit.until });
    }
    case 'idle':
      return failed('idle', `agent ${agent} gives no sign of life: ${end.reason}`);
    case 'over':
      return end.outcome;
  }
}

/** For callers that ignore progress. */
const ignoreProgress: Note = () => Promise.resolve();

const NOT_GIVEN = failed('stopped', 'the prompt was not given any more');

function ended({ status }: AgentExit): string {
  return status === null ? 'is gone without leaving its status' : endedWith(status);
}

function details({ status, output }: AgentExit): Partial<Failure> {
  return { code: status, output };
}

function failed(kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(kind, message, more) };
}
