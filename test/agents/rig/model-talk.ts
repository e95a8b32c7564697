// Requests to a model and its replies, independent of the provider's protocol.

import type { IncomingHttpHeaders } from 'node:http';

import type { JsonMap } from '../../../src/base/json.ts';

export type Provider = 'anthropic' | 'openai';

/** One turn that an agent requests from its model: the last message of a person or a tool, and everything before it. */
export interface ModelRequest {
  readonly provider: Provider;
  readonly model: string;
  /** The agent's own session id, if its headers contain it. */
  readonly session: string | undefined;
  /** The last message of a person or a tool. */
  readonly last: string;
  /** From the beginning, in order. An agent's own additions (rules, reminders, its environment) are by `system`. */
  readonly conversation: readonly Said[];
  /** Names of tools that the model may call; those of an MCP server as `mcp__SERVER__TOOL`. */
  readonly tools: readonly string[];
  readonly headers: IncomingHttpHeaders;
}

export interface Said {
  readonly by: 'system' | 'user' | 'model' | 'tool';
  readonly text: string;
}

/** The model's reply: it waits, then either fails, or sends text and calls tools. */
export interface Reply {
  readonly say?: string;
  readonly call?: readonly Call[];
  /** Before anything is sent. */
  readonly delayMs?: number;
  /** Only the text is sent until this is fulfilled, so that the agent is visibly at work meanwhile. */
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

/** In the provider's format: an HTTP status, and a body with `message`. */
export interface ModelError {
  readonly status: number;
  readonly message: string;
  /** The provider's own name of the error: `rate_limit_error`, `usage_limit_reached`. */
  readonly type?: string;
  /** More fields of the error. */
  readonly details?: JsonMap;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Holds a reply, and releases it. */
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
  /** Null if it is an agent's own request (a title, a warm-up): then `aside` is the answer. */
  understand(body: JsonMap, headers: IncomingHttpHeaders): ModelRequest | null;
  aside(body: JsonMap): Reply;
  /** The events of a streamed reply up to the hold, and those after it. `id` is unique in the server. */
  stream(
    reply: Reply,
    body: JsonMap,
    id: string,
  ): { readonly begin: readonly JsonMap[]; readonly end: readonly JsonMap[] };
  /** The same as one object. */
  whole(reply: Reply, body: JsonMap, id: string): JsonMap;
  error(error: ModelError): JsonMap;
}

/** The last message, without the agent's own additions. */
export function lastOf(conversation: readonly Said[]): string {
  return conversation.findLast(({ by }) => by === 'user' || by === 'tool')?.text ?? '';
}
