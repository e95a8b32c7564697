// The side of JSON-RPC 2.0 that is asked, with one message a line. It knows nothing of what is asked.
//
//   Q1  Any bytes are answered or passed over; none of them end it. A line that is too long is not kept.
//   Q2  Requests are answered as they are ready, not in their order: one that waits holds up no other. Only those that came
//       in one line are answered in one.
//   Q3  A request that was cancelled, or is still open when the input ends, is told so and not answered.

import type { Readable } from 'node:stream';
import { isErrno } from '../../sys/errno.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { isJsonMap } from '../../base/json.ts';
import type { Result } from '../../base/result.ts';
import { err, ok } from '../../base/result.ts';

export interface Refusal {
  readonly code: number;
  readonly message: string;
}

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;

/** Whoever calls a tool with more than fits into a message to a run is told so by the tool; quoted, a character takes six. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

type Id = string | number;

export interface JsonRpcOptions {
  answer(method: string, params: JsonMap, gone: AbortSignal): Promise<Result<Json, Refusal>>;
  notified(method: string, params: JsonMap): void;
  /** With the line's end. */
  send(line: string): void;
}

export class JsonRpcServer {
  readonly #options: JsonRpcOptions;
  readonly #open = new Map<Id, AbortController>();
  readonly #pending = new Set<Promise<void>>();
  /** Of the line that is coming in. */
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(options: JsonRpcOptions) {
    this.#options = options;
  }

  /** Until the input has ended, and everything is answered that still will be. */
  async serve(input: Readable): Promise<void> {
    input.on('data', (chunk: Buffer) => this.#take(chunk));
    await endOf(input);
    for (const gone of this.#open.values()) gone.abort();
    await Promise.all(this.#pending);
  }

  /** Nobody waits for the answer to this request any more. */
  cancel(id: Json | undefined): void {
    if (isId(id)) this.#open.get(id)?.abort();
  }

  #take(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes <= LINE_BYTES_MAX) this.#chunks.push(part);
    else this.#chunks = [];
  }

  #endLine(): void {
    const isTooLong = this.#bytes > LINE_BYTES_MAX;
    const line = Buffer.concat(this.#chunks).toString('utf8');
    this.#chunks = [];
    this.#bytes = 0;
    if (isTooLong) this.#send(refused(null, PARSE_ERROR, `a line has more than ${LINE_BYTES_MAX} bytes`));
    else if (line.trim() !== '') this.#hear(line);
  }

  #hear(line: string): void {
    const message = parseJson(line);
    if (!message.ok) {
      this.#send(refused(null, PARSE_ERROR, message.error));
      return;
    }
    const answering = this.#respond(message.value).then((response) => {
      this.#pending.delete(answering);
      if (response !== null) this.#send(response);
    });
    this.#pending.add(answering);
  }

  /** To one message, or to several in a list. Null where there is nothing to say. */
  async #respond(message: Json): Promise<Json | null> {
    if (!Array.isArray(message)) return this.#respondToOne(message);
    if (message.length === 0) return refused(null, INVALID_REQUEST, 'the list is empty');
    const responses = await Promise.all(message.map((each: Json) => this.#respondToOne(each)));
    const said = responses.filter((response) => response !== null);
    return said.length === 0 ? null : said;
  }

  async #respondToOne(message: Json): Promise<JsonMap | null> {
    if (!isJsonMap(message)) return refused(null, INVALID_REQUEST, 'a message is an object');
    const { id, method, params = {} } = message;
    // We ask for nothing, so an answer is none of ours.
    if (method === undefined && ('result' in message || 'error' in message)) return null;
    if (typeof method !== 'string' || (id !== undefined && !isId(id))) {
      return refused(
        isId(id) ? id : null,
        INVALID_REQUEST,
        'a request has a method, and an id that is a text or a number',
      );
    }
    if (id === undefined) {
      if (isJsonMap(params)) this.#options.notified(method, params);
      return null;
    }
    if (!isJsonMap(params)) return refused(id, INVALID_PARAMS, '"params" must be an object');
    return this.#ask(id, method, params);
  }

  async #ask(id: Id, method: string, params: JsonMap): Promise<JsonMap | null> {
    const gone = new AbortController();
    this.#open.set(id, gone);
    const answer = await this.#options.answer(method, params, gone.signal);
    if (this.#open.get(id) === gone) this.#open.delete(id);
    if (gone.signal.aborted) return null;
    return answer.ok
      ? { jsonrpc: '2.0', id, result: answer.value }
      : refused(id, answer.error.code, answer.error.message);
  }

  #send(message: Json): void {
    this.#options.send(`${JSON.stringify(message)}\n`);
  }
}

function isId(id: Json | undefined): id is Id {
  return typeof id === 'string' || typeof id === 'number';
}

function refused(id: Id | null, code: number, message: string): JsonMap {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

function parseJson(line: string): Result<Json, string> {
  try {
    return ok(JSON.parse(line) as Json);
  } catch (error) {
    if (error instanceof SyntaxError) return err(`this is no JSON: ${error.message}`);
    throw error;
  }
}

/** Said to its end, closed by us, or cut off. */
function endOf(input: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    input.once('end', resolve);
    input.once('close', resolve);
    input.once('error', (error) => (isErrno(error, 'EIO', 'ECONNRESET') ? resolve() : reject(error)));
  });
}
