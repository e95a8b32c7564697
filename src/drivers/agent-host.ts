// Where agents live. A host keeps the agents of an adapter: as plain processes, or in terminals. The driver of agents
// (agents.ts) knows no more of them than this.
//
// H1  A start begins at most one agent, however often it is asked for; one that was begun in an earlier life of the
//     engine is found again, and then behaves as if this life had begun it.
// H2  A message is handed over at most once by its id, in this life and in all others.
// H3  An agent that ends is told of within a second, whether or not it is our child.
// H4  An agent outlives the engine, and does not keep it from ending.
// H5  Which messages an agent has begun with, and which it cannot work on for a limit, is known in every later life.

import type { Result } from '../base/result.ts';
import type { AgentMessage } from '../ir/prompt-text.ts';
import type { AgentStart } from './agent-folder.ts';
import type { Ending } from './remains.ts';

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
  /** It goes on with the session of an earlier agent. */
  readonly resumes: boolean;
  /** What the workflow wants behind the start command. */
  readonly args: string | null;
}

export interface HostedAgent {
  readonly start: AgentStart;
  /** Where people find it; null where it has no terminal. */
  readonly terminal: string | null;
  readonly alive: boolean;
  /** Resolves when it can take a prompt; to false when it has ended before it could, or took too long. */
  ready(timeoutMs: number): Promise<boolean>;
  readonly ended: Promise<AgentExit>;
  /** Resolves when the agent has it. What it has not taken in time, or when the sender gives up, is taken back. */
  hand(message: AgentMessage, timeoutMs: number, givenUp?: Promise<unknown>): Promise<Handover>;
  /** Whether it has begun with a message: one that it has may wait with it until it is done with another. */
  hasBegun(id: string): boolean;
  /** Resolves when it says that it may not work on this message: not any more, or not now. Stops looking on `over`. */
  limited(id: string, over: AbortSignal): Promise<AgentLimit>;
  /** Makes it leave what it is doing. Resolves when it is idle, or after the time given. */
  interrupt(id: string, timeoutMs: number): Promise<void>;
}

export type Handover = 'taken' | 'not-taken' | 'agent-gone';

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

/** Hosts by the names of adapters; a refusal is a sentence. */
export type HostFor = (adapter: string) => Result<AgentHost, string>;
