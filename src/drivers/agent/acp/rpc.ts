// Messages of JSON-RPC 2.0, one in a line. What comes from an agent may be anything: what is no message is no error here,
// it is nothing.

import type { Json, JsonMap } from '../../../base/json.ts';
import { isJsonMap } from '../../../base/json.ts';

export type Incoming = RpcAnswer | RpcRequest | RpcNotification;

/** To a request of ours. */
export interface RpcAnswer {
  readonly kind: 'answer';
  readonly id: Json;
  /** Null where it is an error. */
  readonly result: Json;
  readonly error: RpcError | null;
}

export interface RpcRequest {
  readonly kind: 'request';
  readonly id: Json;
  readonly method: string;
  readonly params: JsonMap;
}

export interface RpcNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonMap;
}

export interface RpcError {
  readonly code: number;
  /** With whatever else it says for people. */
  readonly message: string;
}

export const METHOD_NOT_FOUND = -32_601;

export function requestLine(id: string, method: string, params: JsonMap): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

export function notificationLine(method: string, params: JsonMap): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}

export function answerLine(id: Json, result: JsonMap): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

export function refusalLine(id: Json, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
}

/** Several where the line is a batch, none where it is junk. */
export function messagesIn(line: Buffer): readonly Incoming[] {
  const value = jsonIn(line.toString('utf8'));
  const all = Array.isArray(value) ? (value as readonly Json[]) : [value];
  return all.flatMap((each) => {
    const message = messageOf(each);
    return message === null ? [] : [message];
  });
}

function messageOf(value: Json | undefined): Incoming | null {
  if (!isJsonMap(value)) return null;
  const { id, method } = value;
  const params = isJsonMap(value['params']) ? value['params'] : {};
  if (typeof method === 'string') {
    return id === undefined ? { kind: 'notification', method, params } : { kind: 'request', id, method, params };
  }
  if (id === undefined) return null;
  return { kind: 'answer', id, result: value['result'] ?? null, error: errorOf(value['error']) };
}

function errorOf(value: Json | undefined): RpcError | null {
  if (value === undefined || value === null) return null;
  if (!isJsonMap(value)) return { code: 0, message: JSON.stringify(value) };
  const { code, message, data } = value;
  const more = isJsonMap(data) ? (data['details'] ?? data['message']) : data;
  const words = [message, more].filter((text): text is string => typeof text === 'string' && text !== '');
  return {
    code: typeof code === 'number' ? code : 0,
    message: words.length === 0 ? JSON.stringify(value) : [...new Set(words)].join(': '),
  };
}

/** Undefined where it is no JSON. */
function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
