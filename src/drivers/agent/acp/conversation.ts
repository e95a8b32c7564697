// Fold of the lines that an agent has written: its answers, its open requests, its present turn and how turns end. Pure: the
// same lines make the same conversation, in every life of the engine.
//
// The text of a turn is its last message: text before a tool call is not the answer. Tokens are reported for each turn. Cost
// is reported as the total of the session, so a turn costs the difference; unknown if the total before it is unknown.

import type { PromptResponse, SessionUpdate, StopReason } from '@agentclientprotocol/sdk/unstable';

import { isJsonMap, type Json, type JsonMap, own } from '../../../base/json.ts';
import type { LimitPattern } from '../../../ir/adapter.ts';
import type { Usage } from '../../../ir/output.ts';
import { limitIn } from '../headless/limit.ts';
import type { AgentLimit } from '../host.ts';
import type { Incoming, RpcError, RpcRequest, Unchecked } from './rpc.ts';

/** To a request of ours. */
export interface Answered {
  readonly result: JsonMap;
  readonly error: RpcError | null;
  /** The last message before it. */
  readonly text: string;
  readonly usage: Usage;
}

export const PERMISSION = 'session/request_permission';

export class Conversation {
  /** By our ids. */
  readonly answers = new Map<string, Answered>();
  /** Requests of the agent that are still open, by their ids as JSON. */
  readonly requests = new Map<string, RpcRequest>();
  /** Tool calls of the present turn, by their ids. */
  readonly #tools = new Map<string, JsonMap>();
  #text: string[] = [];
  #messageId: Json | undefined;
  #isTextOver = true;
  #cost: number | null = null;
  #costBefore: number | null;

  /** `isFresh`: the session is new, so it has cost nothing yet. */
  constructor(isFresh: boolean) {
    this.#costBefore = isFresh ? 0 : null;
  }

  add(message: Incoming): void {
    switch (message.kind) {
      case 'answer':
        if (typeof message.id === 'string') this.#onAnswer(message.id, message.result, message.error);
        return;
      case 'request': {
        const request = message.method === PERMISSION ? this.#withToolCall(message) : message;
        this.requests.set(JSON.stringify(message.id), request);
        return;
      }
      case 'notification': {
        const { update } = message.params;
        if (message.method === 'session/update' && isJsonMap(update)) this.#onUpdate(update);
      }
    }
  }

  #onAnswer(id: string, value: Json, error: RpcError | null): void {
    const result = isJsonMap(value) ? value : {};
    const usd = this.#cost === null || this.#costBefore === null ? null : this.#cost - this.#costBefore;
    const usage = { usd: usd !== null && usd >= 0 ? usd : null, tokens: tokensIn(result) };
    this.answers.set(id, { result, error, text: this.#text.join(''), usage });
    this.#costBefore = this.#cost ?? this.#costBefore;
    this.#text = [];
    this.#isTextOver = true;
    this.#tools.clear();
    // The turn is over, so nobody waits for a permission any more.
    for (const [key, { method }] of this.requests) if (method === PERMISSION) this.requests.delete(key);
  }

  #onUpdate(update: Unchecked<SessionUpdate>): void {
    switch (update.sessionUpdate as SessionUpdate['sessionUpdate']) {
      case 'agent_message_chunk': {
        const { content, messageId } = update;
        if (!isJsonMap(content) || typeof content['text'] !== 'string') return;
        if (this.#isTextOver || messageId !== this.#messageId) this.#text = [];
        this.#isTextOver = false;
        this.#messageId = messageId;
        this.#text.push(content['text']);
        return;
      }
      case 'tool_call':
      case 'tool_call_update': {
        const id = update.toolCallId;
        if (update.sessionUpdate === 'tool_call') this.#isTextOver = true;
        if (typeof id === 'string') this.#tools.set(id, { ...this.#tools.get(id), ...withoutNulls(update) });
        return;
      }
      case 'usage_update': {
        const { cost } = update;
        if (isJsonMap(cost) && cost['currency'] === 'USD' && typeof cost['amount'] === 'number')
          this.#cost = cost['amount'];
        return;
      }
      default:
        // Plans, thoughts and modes are not used.
        return;
    }
  }

  /** A permission request, with everything reported about its tool call so far. */
  #withToolCall(request: RpcRequest): RpcRequest {
    const given = request.params['toolCall'];
    if (!isJsonMap(given)) return request;
    const id = given['toolCallId'];
    const toolCall = { ...(typeof id === 'string' ? this.#tools.get(id) : {}), ...withoutNulls(given) };
    return { ...request, params: { ...request.params, toolCall } };
  }
}

function withoutNulls(map: Readonly<Record<string, Json | undefined>>): JsonMap {
  const entries = Object.entries(map).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries) as JsonMap;
}

/** Tokens of one turn: where the protocol has them, or where agents put them before it had any. */
function tokensIn(result: Unchecked<PromptResponse>): number | null {
  const meta = isJsonMap(result._meta) ? result._meta : {};
  for (const usage of [result.usage, meta['usage']]) {
    if (isJsonMap(usage) && typeof usage['totalTokens'] === 'number') return usage['totalTokens'];
  }
  const count = isJsonMap(meta['quota']) ? meta['quota']['token_count'] : undefined;
  if (!isJsonMap(count)) return null;
  const { input_tokens: input, output_tokens: output } = count;
  return typeof input === 'number' && typeof output === 'number' ? input + output : null;
}

export type TurnEnd =
  /** The agent has finished, as far as it knows. */
  | { readonly kind: 'finished' }
  | { readonly kind: 'limit'; readonly limit: AgentLimit }
  /** `reason`: predicate of a sentence about the agent. */
  | { readonly kind: 'broken'; readonly reason: string };

/** Classifies the answer to a prompt. `now`: milliseconds since 1970. */
export function turnEnd(
  { result, error, text, usage }: Answered,
  limits: readonly LimitPattern[],
  now: number,
): TurnEnd {
  // Some agents report a limit as if it were an answer. An answer that has used tokens is an answer.
  const words = error?.message ?? (usage.tokens === null ? text : '');
  const limit = limitIn(words, limits, now);
  if (limit !== null) return { kind: 'limit', limit };
  if (error !== null) return { kind: 'broken', reason: `ended its turn with an error: ${error.message}` };
  const { stopReason }: Unchecked<PromptResponse> = result;
  if (stopReason === 'end_turn') return { kind: 'finished' };
  const reasons: Readonly<Record<Exclude<StopReason, 'end_turn'>, string>> = {
    cancelled: 'stopped because its turn was cancelled',
    refusal: text === '' ? 'refuses to continue' : `refuses to continue: ${text}`,
    max_tokens: 'has used all the tokens of a turn (max_tokens)',
    max_turn_requests: 'has made all the model requests of a turn (max_turn_requests)',
  };
  const known = typeof stopReason === 'string' ? own<string>(reasons, stopReason) : undefined;
  const reason = known ?? `ended its turn for an unknown reason: ${JSON.stringify(stopReason ?? null)}`;
  return { kind: 'broken', reason };
}
