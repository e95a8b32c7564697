// Answers to requests, as data, and how they are sent: with the headers of every response, compressed if that pays.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import { UsageError } from '../base/errors.ts';
import { isErrno } from '../sys/errors.ts';
import { type ResponseKind, securityHeaders } from './headers.ts';
import type { Refusal } from './protocol.ts';

export interface Reply {
  readonly status: number;
  readonly kind: ResponseKind;
  readonly type: string;
  /** Pieces are sent as fast as the reader takes them. */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
}

const JSON_TYPE = 'application/json; charset=utf-8';
export const TEXT_TYPE = 'text/plain; charset=utf-8';

export function jsonReply(value: unknown, status = 200): Reply {
  return { status, kind: 'page', type: JSON_TYPE, body: JSON.stringify(value) };
}

export function refusalReply(status: number, message: string, cure: string | null = null): Reply {
  return jsonReply({ message, cure } satisfies Refusal, status);
}

/** A request that is refused with this status. */
export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
  readonly status: number;
  readonly refusal: Refusal;

  constructor(status: number, message: string, cure: string | null = null, more: Partial<Refusal> = {}) {
    super(message);
    this.status = status;
    this.refusal = { message, cure, ...more };
  }
}

/** The reply to a request that failed in an expected way; any other error is thrown. */
export function replyToError(error: unknown): Reply {
  if (error instanceof RequestRefused) return jsonReply(error.refusal, error.status);
  if (error instanceof UsageError) return refusalReply(409, error.message, error.hint);
  throw error;
}

/** Smaller ones gain nothing. */
const COMPRESSED_FROM = 1_000;

/** Resolves when it is sent, or nobody reads it any more. */
export async function send(request: IncomingMessage, response: ServerResponse, reply: Reply): Promise<void> {
  const { status, kind, type, body, headers = {} } = reply;
  const all: Record<string, string> = { ...securityHeaders(kind), 'content-type': type, ...headers };
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    response.writeHead(status, all);
    await tolerateGoneReader(pipeline(Readable.from(body), response));
    return;
  }
  let bytes: Uint8Array = typeof body === 'string' ? Buffer.from(body) : body;
  const isPlain = all['content-encoding'] === undefined;
  if (isPlain && bytes.length >= COMPRESSED_FROM && accepts(request, 'gzip')) {
    bytes = await compress(bytes, { level: GZIP_LEVEL });
    all['content-encoding'] = 'gzip';
  }
  if (isPlain) all['vary'] = 'accept-encoding';
  response.writeHead(status, { ...all, 'content-length': String(bytes.length) });
  response.end(bytes);
}

const compress = promisify(gzip);
/** Decisions of a run of 2,000 steps: a twentieth of their size in 10 ms. */
const GZIP_LEVEL = 4;

export function accepts(request: IncomingMessage, encoding: string): boolean {
  const offered = request.headers['accept-encoding'] ?? '';
  return offered.split(',').some((each) => {
    const [name, quality = ''] = each.trim().split(';');
    return name === encoding && !/^\s*q=0(?:\.0*)?$/.test(quality);
  });
}

async function tolerateGoneReader(sending: Promise<void>): Promise<void> {
  try {
    await sending;
  } catch (error) {
    if (!isErrno(error, 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE', 'ABORT_ERR')) throw error;
  }
}
