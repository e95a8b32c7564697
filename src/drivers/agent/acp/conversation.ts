// What an agent has said, line by line, as far as anybody must know it: its answers to us, what it asks of us, and how its
// present turn goes. Pure: the same lines make the same talk, in every life of the engine.
//
// The text of a turn is its last message: what was said before a tool was used is not the answer. Its tokens are told by
// themselves. Its cost is told as the sum of its session so far, and is the difference to what was told before; where that
// is not known, neither is the cost.

import type { Json, JsonMap } from '../../../base/json.ts';
import { isJsonMap } from '../../../base/json.ts';
import type { Usage } from '../../../ir/usage.ts';
import type { Incoming, RpcError, RpcRequest } from './rpc.ts';

/** To a request of ours. */
export interface Answered {
  readonly result: JsonMap;
  readonly error: RpcError | null;
  /** The last message before it. */
  readonly text: string;
  readonly usage: Usage;
}

export const PERMISSION = 'session/request_permission';

export class Talk {
  /** By our ids. */
  readonly answers = new Map<string, Answered>();
  /** What the agent has asked, and as far as it shows still wants to know: by its ids as JSON. */
  readonly requests = new Map<string, RpcRequest>();
  /** What has been told of the tools of the present turn, by their ids. */
  readonly #tools = new Map<string, JsonMap>();
  #text: string[] = [];
  #message: Json | undefined;
  #isTextOver = true;
  #cost: number | null = null;
  #costBefore: number | null;

  /** `isFresh`: its session begins with it. */
  constructor(isFresh: boolean) {
    this.#costBefore = isFresh ? 0 : null;
  }

  take(message: Incoming): void {
    switch (message.kind) {
      case 'answer':
        if (typeof message.id === 'string') this.#answered(message.id, message.result, message.error);
        return;
      case 'request':
        this.requests.set(JSON.stringify(message.id), message.method === PERMISSION ? this.#whole(message) : message);
        return;
      case 'notification':
        if (message.method === 'session/update' && isJsonMap(message.params['update']))
          this.#heard(message.params['update']);
        return;
    }
  }

  #answered(id: string, result: Json, error: RpcError | null): void {
    const told = isJsonMap(result) ? result : {};
    const usd = this.#cost === null || this.#costBefore === null ? null : this.#cost - this.#costBefore;
    const usage = { usd: usd !== null && usd >= 0 ? usd : null, tokens: tokensIn(told) };
    this.answers.set(id, { result: told, error, text: this.#text.join(''), usage });
    this.#costBefore = this.#cost ?? this.#costBefore;
    this.#text = [];
    this.#isTextOver = true;
    this.#tools.clear();
    // Nobody waits for leave in a turn that is over.
    for (const [key, { method }] of this.requests) if (method === PERMISSION) this.requests.delete(key);
  }

  #heard(update: JsonMap): void {
    switch (update['sessionUpdate']) {
      case 'agent_message_chunk': {
        const { content, messageId } = update;
        if (!isJsonMap(content) || typeof content['text'] !== 'string') return;
        if (this.#isTextOver || messageId !== this.#message) this.#text = [];
        this.#isTextOver = false;
        this.#message = messageId;
        this.#text.push(content['text']);
        return;
      }
      case 'tool_call':
        this.#isTextOver = true;
        this.#toolTold(update);
        return;
      case 'tool_call_update':
        this.#toolTold(update);
        return;
      case 'usage_update': {
        const cost = update['cost'];
        if (isJsonMap(cost) && cost['currency'] === 'USD' && typeof cost['amount'] === 'number')
          this.#cost = cost['amount'];
        return;
      }
      default:
        // Plans, thoughts, modes: nobody here needs to know.
        return;
    }
  }

  #toolTold(update: JsonMap): void {
    const id = update['toolCallId'];
    if (typeof id === 'string') this.#tools.set(id, { ...this.#tools.get(id), ...withoutNulls(update) });
  }

  /** A request for leave to use a tool, with all that has been told of the tool by now. */
  #whole(request: RpcRequest): RpcRequest {
    const asked = request.params['toolCall'];
    if (!isJsonMap(asked)) return request;
    const id = asked['toolCallId'];
    const toolCall = { ...(typeof id === 'string' ? this.#tools.get(id) : {}), ...withoutNulls(asked) };
    return { ...request, params: { ...request.params, toolCall } };
  }
}

function withoutNulls(map: JsonMap): JsonMap {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null));
}

/** Of one turn: as the protocol has it, or in the words of those that came before it had any. */
function tokensIn(result: JsonMap): number | null {
  const meta = isJsonMap(result['_meta']) ? result['_meta'] : {};
  for (const usage of [result['usage'], meta['usage']]) {
    if (isJsonMap(usage) && typeof usage['totalTokens'] === 'number') return usage['totalTokens'];
  }
  const count = isJsonMap(meta['quota']) ? meta['quota']['token_count'] : undefined;
  if (!isJsonMap(count)) return null;
  const { input_tokens: input, output_tokens: output } = count;
  return typeof input === 'number' && typeof output === 'number' ? input + output : null;
}
