// Where agents live. A host keeps the agents of one channel: in terminals, as processes that come and go with each prompt,
// behind a protocol. The driver of agents (driver.ts) knows no more of them than this.
//
// H1  A start begins at most one agent, however often it is asked for; one that was begun in an earlier life of the
//     engine is found again, and then behaves as if this life had begun it.
// H2  A message is handed over at most once by its id, in this life and in all others. Where an earlier life died while it
//     did so, what the agent shows and has left behind decides whether it has the message; a guess does not.
// H3  An agent that ends is told of within a second, whether or not it is our child.
// H4  An agent outlives the engine, and does not keep it from ending.
// H5  Which messages an agent has begun with, and which it cannot work on for a limit, is known in every later life.
// H6  Nothing is ever typed into a question that an agent asks, save what a person or the adapter has decided about it.

import type { Result } from '../../base/result.ts';
import type { Adapter, Channel } from '../../ir/adapter.ts';
import type { Delivery, Outcome } from '../../ir/effect.ts';
import type { AgentMessage } from '../../ir/prompt-text.ts';
import type { Usage } from '../../ir/usage.ts';
import type { DialogVerdict, Note } from '../../engine/ports.ts';
import type { AgentStart } from './files.ts';
import type { Ending } from '../kill-process-tree.ts';

export interface AgentHost {
  /** Begins an agent. Whatever keeps it from living is told by `ended`. */
  start(request: StartRequest): HostedAgent;
  find(start: AgentStart): FoundAgent;
  /** Ends whatever is left of a start, whether or not its agent lives. */
  clear(start: AgentStart, graceMs: number): Ending;
}

export type FoundAgent =
  | { readonly kind: 'alive'; readonly agent: HostedAgent }
  /** Nothing of this start has ever run. */
  | { readonly kind: 'never' }
  /** It lived, and does not any more. */
  | { readonly kind: 'gone'; readonly wasReady: boolean; readonly exit: AgentExit };

export interface StartRequest {
  readonly start: AgentStart;
  /** Complete, with the marker of the start. */
  readonly environment: Readonly<Record<string, string>>;
  /** The session of an earlier agent that it goes on with, or forks from; null begins one. */
  readonly resumeSession: string | null;
  readonly forks: boolean;
  /** What the workflow wants behind the start command. */
  readonly args: string | null;
}

export interface HostedAgent {
  readonly start: AgentStart;
  /** Where people find it; null where it has no terminal. */
  readonly terminal: string | null;
  readonly alive: boolean;
  /** That of the start, until the agent tells another. */
  readonly session: string | null;
  /**
   * Resolves when it can take a prompt. The time given is for a host whose adapter names none; a question that it asks a
   * person stops the clock.
   */
  ready(timeoutMs: number, note: Note): Promise<Readiness>;
  readonly ended: Promise<AgentExit>;
  /** Tells of every session that it is in from now on, the present one included where it is known. */
  watchSession(told: (session: string) => void): void;
  /**
   * Resolves when the agent has it. What it has not taken in time, or when the sender gives up, is taken back. The time
   * given is for being taken by an agent that is ready for it; a question that it asks a person stops the clock.
   */
  hand(message: AgentMessage, request: HandRequest): Promise<Handover>;
  /** Whether what it reports could be about a message: not before it was told. Those that leave this out cannot be too early. */
  couldHave?(id: string): boolean;
  /** Whether it has begun with a message: one that it has may wait with it until it is done with another. */
  hasBegun(id: string): boolean;
  /**
   * Watches the agent at work on a message that it has, and notes what it asks. Resolves when that work has come to
   * something without a report: a limit, silence, or an end. Stops watching on `over`.
   */
  atWork(message: AgentMessage, over: AbortSignal, note: Note): Promise<WorkEnd>;
  /** What a person has decided about the dialog that was noted last. */
  decide(verdict: DialogVerdict): void;
  /** Its work on a message has been reported: resolves when it has come to rest, or after the time given. */
  conclude(id: string, timeoutMs: number): Promise<Concluded>;
  /** Makes it leave what it is doing. Resolves when it is idle, or after the time given. */
  interrupt(id: string, timeoutMs: number): Promise<void>;
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
  /** `queued`: it waits behind what the agent is doing. */
  | { readonly kind: 'taken'; readonly delivery?: 'accepted' | 'queued' }
  /** `reason`: why not, as a part of a sentence. */
  | { readonly kind: 'not-taken'; readonly delivery: Delivery; readonly reason: string }
  | { readonly kind: 'agent-gone' };

export type WorkEnd =
  | { readonly kind: 'limit'; readonly limit: AgentLimit }
  /** No sign of life for too long. `reason`: a sentence. */
  | { readonly kind: 'idle'; readonly reason: string }
  /** It has come to an end by itself, in a way that needs no report. */
  | { readonly kind: 'over'; readonly outcome: Outcome };

export interface Concluded {
  readonly session: string | null;
  /** What the work on the message has cost; null where that is not told. */
  readonly usage: Usage | null;
}

export interface AgentLimit {
  /** A part of a sentence. */
  readonly text: string;
  /** When it ends, in milliseconds since 1970; null where that is not known. */
  readonly until: number | null;
}

export interface AgentExit {
  /** 128 + N where signal N ended it; null where it left none. */
  readonly status: number | null;
  /** Why it never lived. */
  readonly refusal: string | null;
  /** The end of what it said. */
  readonly output: string | null;
}

/** The host for an adapter, and the channel that was asked for or is the adapter's first; a refusal is a sentence. */
export type HostFor = (adapter: string, channel: Channel | null) => Result<HostChoice, string>;

export interface HostChoice {
  readonly host: AgentHost;
  readonly adapter: Adapter;
  readonly channel: Channel;
  /** Who says the id of a new session: we, the agent, or nobody. */
  readonly sessionId: 'chosen' | 'told' | 'none';
}
