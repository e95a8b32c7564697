// The interface of agent hosts. A host implements the agents of one channel: in terminals, as one process for each
// prompt, or behind a protocol. The driver (driver.ts) knows nothing else about them.
//
// host/1  A start creates at most one agent, however often it is asked for; an agent started by an earlier engine is
//         found again and behaves as if this engine had started it.
// host/2  A message is delivered at most once by its id, across engine restarts. After a crash during delivery,
//         evidence decides whether the agent has the message, never a guess.
// host/3  An agent's exit is reported within a second, whether or not it is our child process.
// host/4  An agent outlives the engine, and does not keep it alive.
// host/5  Which messages an agent has started with, and which are blocked by a limit, is known after every restart.
// host/6  Nothing is typed into an agent's dialog except what a person or the adapter has decided about it.

import { ok, type Result } from '../../base/errors.ts';
import type { DialogVerdict, Note } from '../../engine/ports.ts';
import { type Adapter, type Channel, channelFor } from '../../ir/adapter.ts';
import type { Delivery, Outcome } from '../../ir/effect.ts';
import type { Usage } from '../../ir/output.ts';
import type { AgentMessage } from '../../ir/prompt-text.ts';
import type { Termination } from '../../sys/kill-process-tree.ts';
import type { EnvVariables } from '../environment.ts';
import type { AgentStart } from './files.ts';

export interface AgentHost {
  /** Starts an agent. Failures are reported by `ended`. */
  start(request: StartRequest): HostedAgent;
  find(start: AgentStart): FoundAgent;
  /** Stops everything left of a start, whether or not its agent lives. */
  clear(start: AgentStart, graceMs: number): Termination;
}

export type FoundAgent =
  | { readonly kind: 'alive'; readonly agent: HostedAgent }
  | { readonly kind: 'never' }
  | { readonly kind: 'gone'; readonly wasReady: boolean; readonly exit: AgentExit };

export interface StartRequest {
  readonly start: AgentStart;
  /** Complete, including the marker of the start. */
  readonly environment: EnvVariables;
  /** The session to continue or fork; null starts a new one. */
  readonly resumeSession: string | null;
  readonly forks: boolean;
  /** Arguments that the workflow appends to the start command. */
  readonly args: string | null;
}

export interface HostedAgent {
  readonly start: AgentStart;
  /** Name of its terminal; null if it has none. */
  readonly terminal: string | null;
  readonly alive: boolean;
  /** The session of the start, until the agent reports another. */
  readonly session: string | null;
  /**
   * Resolves when the agent can take a prompt. `timeoutMs` is for adapters without a limit of their own; time during
   * dialogs does not count.
   */
  ready(timeoutMs: number, note: Note): Promise<Readiness>;
  readonly ended: Promise<AgentExit>;
  /** Calls back for the current session, if known, and for each later one. */
  watchSession(onSession: (session: string) => void): void;
  /**
   * Resolves when the agent has the message. Withdraws it after the time limit, or when the sender gives up. The limit
   * starts when the agent is ready; time during dialogs does not count.
   */
  hand(message: AgentMessage, request: HandRequest): Promise<Handover>;
  /**
   * Whether a report could be about a message: not before its delivery. Optional for hosts that cannot be too early.
   */
  couldHave?(id: string): boolean;
  /** Whether it has started with a message; a delivered message may be queued behind another. */
  hasBegun(id: string): boolean;
  /**
   * Monitors the agent during its work on a message, and notes dialogs. Resolves when the work ends without a report: a
   * limit, silence or an exit. `over` stops monitoring.
   */
  atWork(message: AgentMessage, over: AbortSignal, note: Note): Promise<WorkEnd>;
  /** A person's decision about the latest dialog. */
  decide(verdict: DialogVerdict): void;
  /** Types keys of a person into its terminal, as bytes; absent if it has none. An error is a sentence. */
  typeKeys?(keys: Uint8Array, by: string): Promise<Result<null, string>>;
  /** The work on a message was reported: resolves when the agent is idle, or after the time limit. */
  conclude(id: string, timeoutMs: number): Promise<Concluded>;
  /** Interrupts the agent. Resolves when it is idle, or after the time limit. */
  interrupt(id: string, timeoutMs: number): Promise<void>;
}

/** For callers that no longer listen. A new promise each time, so that nothing that waits for it is retained. */
export function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** `reason`: a sentence. */
export type Readiness =
  | { readonly kind: 'ready' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unready'; readonly reason: string };

export interface HandRequest {
  readonly timeoutMs: number;
  readonly note: Note;
  readonly givenUp: Promise<unknown>;
}

export type Handover =
  /** `queued`: behind the agent's current work. */
  | { readonly kind: 'taken'; readonly delivery?: 'accepted' | 'queued' }
  /** `reason`: a clause. */
  | { readonly kind: 'not-taken'; readonly delivery: Delivery; readonly reason: string }
  | { readonly kind: 'agent-gone' };

export function notTaken(reason: string): Handover {
  return { kind: 'not-taken', delivery: 'not-ready', reason };
}

export type WorkEnd =
  | { readonly kind: 'limit'; readonly limit: AgentLimit }
  /** Silent for too long. `reason`: a sentence. */
  | { readonly kind: 'idle'; readonly reason: string }
  /** Ended by itself in a way that needs no report. */
  | { readonly kind: 'over'; readonly outcome: Outcome };

export interface Concluded {
  readonly session: string | null;
  /** Costs of the work on the message; null if not reported. */
  readonly usage: Usage | null;
}

export interface AgentLimit {
  /** A clause. */
  readonly text: string;
  /** End of the limit in milliseconds since 1970; null if unknown. */
  readonly until: number | null;
}

export interface AgentExit {
  /** 128 + N after signal N; null if not recorded. */
  readonly status: number | null;
  /** Why it never started. */
  readonly refusal: string | null;
  readonly output: string | null;
}

/** The host for an adapter and a channel; the error is a sentence. */
export type HostFor = (adapter: string, channel: Channel | null) => Result<HostChoice, string>;

export interface HostChoice {
  readonly host: AgentHost;
  readonly adapter: Adapter;
  readonly channel: Channel;
  /** Who chooses the id of a new session: meow, the agent, or nobody. */
  readonly sessionId: 'chosen' | 'told' | 'none';
}

export type AdapterNamed = (name: string) => Result<Adapter, string>;

/** The requested channel decides, else the adapter's first; `defaultChannel` applies if neither does. */
export function hostsByChannel(
  adapters: AdapterNamed,
  hosts: Readonly<Record<Channel, (adapter: Adapter) => Result<AgentHost, string>>>,
  defaultChannel: Channel | null = null,
): HostFor {
  const made = new Map<string, HostChoice>();
  return (name, wanted) => {
    const found = adapters(name);
    if (!found.ok) return found;
    const adapter = found.value;
    const channel = channelFor(adapter, wanted, defaultChannel);
    if (!channel.ok) return channel;
    const key = `${channel.value} ${name}`;
    const known = made.get(key);
    if (known !== undefined) return ok(known);
    const host = hosts[channel.value](adapter);
    if (!host.ok) return host;
    const sessionIds = {
      terminal: adapter.terminal?.sessionId ?? 'none',
      headless: adapter.headless?.sessionId ?? 'none',
      acp: 'told',
      mailbox: 'chosen',
    } as const;
    const choice = { host: host.value, adapter, channel: channel.value, sessionId: sessionIds[channel.value] };
    made.set(key, choice);
    return ok(choice);
  };
}
