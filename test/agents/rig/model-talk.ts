// What a model is asked and what it answers, whichever provider's protocol carries it.

import type { IncomingHttpHeaders } from 'node:http';
import type { JsonMap } from '../../../src/base/json.ts';

export type Provider = 'anthropic' | 'openai';

/** One turn that an agent wants of its model: what a person or a tool has said, and everything before it. */
export interface ModelRequest {
  readonly provider: Provider;
  readonly model: string;
  /** The agent's own id of its session, where its headers tell. */
  readonly session: string | undefined;
  /** The last thing that a person or a tool has said. */
  readonly last: string;
  /** From the beginning, in order. What an agent adds of its own (rules, reminders, its surroundings) is by `system`. */
  readonly conversation: readonly Said[];
  /** Names of tools that the model may call; those of an MCP server as `mcp__SERVER__TOOL`. */
  readonly tools: readonly string[];
  readonly headers: IncomingHttpHeaders;
}

export interface Said {
  readonly by: 'system' | 'user' | 'model' | 'tool';
  readonly text: string;
}

/** What the model does: waits, then either fails, or speaks and calls tools. */
export interface Reply {
  readonly say?: string;
  readonly call?: readonly Call[];
  /** Before anything is sent. */
  readonly delayMs?: number;
  /** Nothing more than the text is sent until this is fulfilled, so that the agent is seen at work for as long as it takes. */
  readonly hold?: Promise<unknown>;
  readonly error?: ModelError;
}

export interface Call {
  readonly tool: string;
  readonly input: JsonMap;
}

/** The agent's own tool for a shell command. */
export function shellCall({ provider }: ModelRequest, command: string): Call {
  return provider === 'anthropic'
    ? { tool: 'Bash', input: { command, description: 'Run a command' } }
    : { tool: 'exec_command', input: { cmd: command } };
}

/** As the provider would send it: an HTTP status, and a body that says `message`. */
export interface ModelError {
  readonly status: number;
  readonly message: string;
  /** The provider's own name of the error: `rate_limit_error`, `usage_limit_reached`. */
  readonly type?: string;
  /** More members of the error. */
  readonly details?: JsonMap;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Something to hold a reply with, and to let it go by. */
export function latch(): { readonly hold: Promise<void>; readonly letGo: () => void } {
  let letGo = (): void => undefined;
  const hold = new Promise<void>((fulfil) => {
    letGo = fulfil;
  });
  return { hold, letGo };
}

/** Every reply costs the same, so that tests can count. */
export const INPUT_TOKENS = 1000;
export const OUTPUT_TOKENS = 10;

/** The protocol of one provider. */
export interface Protocol {
  /** Null where the agent asks for something on its own account (a title, a warm-up): then `aside` is the answer. */
  understand(body: JsonMap, headers: IncomingHttpHeaders): ModelRequest | null;
  aside(body: JsonMap): Reply;
  /** The events of a streamed reply up to where it is held, and those after. `id` is unique in the server. */
  stream(
    reply: Reply,
    body: JsonMap,
    id: string,
  ): { readonly begin: readonly JsonMap[]; readonly end: readonly JsonMap[] };
  /** The same as one object. */
  whole(reply: Reply, body: JsonMap, id: string): JsonMap;
  error(error: ModelError): JsonMap;
}

/** The last thing said, without the agent's own additions. */
export function lastOf(conversation: readonly Said[]): string {
  return conversation.findLast(({ by }) => by === 'user' || by === 'tool')?.text ?? '';
}
