// The JSON of a POST, read with a bound and checked field by field.

import type { IncomingMessage } from 'node:http';

import { isJsonMap, type JsonMap, parseJson } from '../base/json.ts';
import { MESSAGE_BYTES_MAX, type RunName } from './protocol.ts';
import { RequestRefused } from './reply.ts';

/** Throws a refusal with status 413 or 400. */
export async function readBody(request: IncomingMessage): Promise<JsonMap> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > MESSAGE_BYTES_MAX) throw new RequestRefused(413, 'the request is longer than 1 MiB', 'send less');
    chunks.push(chunk as Buffer);
  }
  const body = parseJson(Buffer.concat(chunks).toString('utf8'));
  if (!isJsonMap(body)) throw new RequestRefused(400, 'the request is not a JSON object', 'send a JSON object');
  return body;
}

export function textIn(body: JsonMap, key: string): string {
  const value = body[key];
  if (typeof value === 'string') return value;
  throw new RequestRefused(400, `the request needs ${key}, a string`);
}

/** Null if it is absent or null. */
export function optionalTextIn(body: JsonMap, key: string): string | null {
  return body[key] === undefined || body[key] === null ? null : textIn(body, key);
}

/** Of strings by name; empty if it is absent. */
export function textsIn(body: JsonMap, key: string): Readonly<Record<string, string>> {
  const value = body[key] ?? {};
  if (isJsonMap(value)) {
    const texts = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    if (texts.length === Object.keys(value).length) return Object.fromEntries(texts);
  }
  throw new RequestRefused(400, `${key} of the request must be an object of strings`);
}

export function flagIn(body: JsonMap, key: string): boolean {
  const value = body[key] ?? false;
  if (typeof value === 'boolean') return value;
  throw new RequestRefused(400, `${key} of the request must be true or false`);
}

export function runNameIn(body: JsonMap): RunName {
  return { project: textIn(body, 'project'), run: textIn(body, 'run') };
}
