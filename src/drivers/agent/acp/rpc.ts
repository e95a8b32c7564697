// JSON-RPC 2.0 messages of the Agent Client Protocol, one in a line. The types are the protocol's official ones, and are
// used at compile time only. An agent may send anything: what is not a message is ignored.

import type {
  CancelNotification,
  ForkSessionRequest,
  InitializeRequest,
  LoadSessionRequest,
  NewSessionRequest,
  PromptRequest,
  RequestPermissionResponse,
  ResumeSessionRequest,
} from '@agentclientprotocol/sdk/unstable';

import { isJsonMap, type Json, type JsonMap, parseJson } from '../../../base/json.ts';

export type Outgoing =
  | ({ readonly id: string } & AgentRequest)
  | { readonly method: 'session/cancel'; readonly params: CancelNotification }
  | { readonly id: Json; readonly result: RequestPermissionResponse }
  | { readonly id: Json; readonly error: { readonly code: number; readonly message: string } };

export type AgentRequest =
  | { readonly method: 'initialize'; readonly params: InitializeRequest }
  | SessionRequest
  | { readonly method: 'session/prompt'; readonly params: PromptRequest };

export type SessionRequest =
  | { readonly method: 'session/new'; readonly params: NewSessionRequest }
  | { readonly method: 'session/fork'; readonly params: ForkSessionRequest }
  | { readonly method: 'session/resume'; readonly params: ResumeSessionRequest }
  | { readonly method: 'session/load'; readonly params: LoadSessionRequest };

/** An object of the schema as it arrives: each of its fields may be absent or hold anything. */
export type Unchecked<T> = { readonly [K in T extends unknown ? keyof T : never]?: Json };

export type Incoming =
  /** To a request of ours. `result`: null if it is an error. */
  | { readonly kind: 'answer'; readonly id: Json; readonly result: Json; readonly error: RpcError | null }
  | RpcRequest
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonMap };

export interface RpcRequest {
  readonly kind: 'request';
  readonly id: Json;
  readonly method: string;
  readonly params: JsonMap;
}

export interface RpcError {
  readonly code: number;
  /** With the details that the error has for people. */
  readonly message: string;
}

export const METHOD_NOT_FOUND = -32_601;

export function lineOf(message: Outgoing): string {
  return JSON.stringify({ jsonrpc: '2.0', ...message });
}

/** Several if the line is a batch, none if it is not JSON-RPC. */
export function parseMessages(line: string): readonly Incoming[] {
  const value = parseJson(line);
  return (Array.isArray(value) ? (value as readonly Json[]) : [value]).flatMap((each) => messageOf(each) ?? []);
}

function messageOf(value: Json): Incoming | null {
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
  const details = isJsonMap(data) ? (data['details'] ?? data['message']) : data;
  const texts = [message, details].filter((text): text is string => typeof text === 'string' && text !== '');
  return {
    code: typeof code === 'number' ? code : 0,
    message: texts.length === 0 ? JSON.stringify(value) : [...new Set(texts)].join(': '),
  };
}
