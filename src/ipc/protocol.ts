// Messages that agents, steps and people send to a run, and the answers: one JSON object a line, in both directions. Pure:
// this file knows neither sockets nor files, and trusts no input.
//
//   protocol/1  Any bytes are parsed to a message or to a sentence that says what is wrong. Nothing is thrown.
//   protocol/2  Messages are bounded: the length of a line, of a name and of an event, and the depth of values.
//   protocol/3  A message that names another run is refused.
//   protocol/4  No key of a message can reach the prototype of an object.
//
// On the wire a message has a `type` in snake case; here it is the `kind`.

import { hasControlCharacters } from '../base/controls.ts';
import type { Json, JsonMap } from '../base/json.ts';
import { isJsonMap, own } from '../base/json.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { parseDuration } from '../base/time.ts';
import { plainText } from '../ir/text.ts';

export const LINE_BYTES_MAX = 1024 * 1024;
/** For what a run may have thousands of: events, decisions, waits. */
export const SMALL_BYTES_MAX = 64 * 1024;
const NAME_LENGTH_MAX = 256;
const DEPTH_MAX = 64;

export type Message =
  | {
      readonly kind: 'step-done';
      readonly agent: string | null;
      readonly step: string | null;
      readonly outputs: JsonMap;
      readonly notes: string | null;
      readonly message: string | null;
    }
  | { readonly kind: 'get-prompt'; readonly agent: string }
  | { readonly kind: 'get-session-id'; readonly agent: string }
  | EventMessage
  | ({
      readonly kind: 'await-event';
      readonly eventType: string;
      readonly filter: Readonly<Record<string, string>>;
      /** Identifies the request if it is repeated for the next engine; null if the sender gave none. */
      readonly asking: string | null;
      /** Answer with the name that programs written for another engine expect. */
      readonly compat: boolean;
    } & Waiting)
  /** `asker`: the step from which the name is resolved; null means the current step of the agent. */
  | {
      readonly kind: 'step-status';
      readonly step: string;
      readonly asker: string | null;
      readonly agent: string | null;
    }
  /** `prompt`: the question for people. */
  | ({ readonly kind: 'await-approval'; readonly gate: string; readonly prompt: string | null } & Waiting)
  | {
      readonly kind: 'approval';
      readonly gate: string;
      readonly approved: boolean;
      readonly notes: string | null;
      readonly by: string | null;
      readonly message: string | null;
    }
  /** `gate`: null means the only open one. */
  | {
      readonly kind: 'answer';
      readonly gate: string | null;
      readonly text: string;
      readonly by: string | null;
      readonly message: string | null;
    }
  | { readonly kind: 'ping' };

export interface EventMessage {
  readonly kind: 'event';
  /** Identifies the message if it is sent again; null if the sender gave none. */
  readonly id: string | null;
  readonly eventType: string;
  readonly agent: string | null;
  readonly data: JsonMap;
}

/** Fields of every message that waits for its answer. */
export interface Waiting {
  /** The step that waits; null means the current step of the agent. */
  readonly step: string | null;
  readonly attempt: number | null;
  readonly agent: string | null;
  /** Null waits without limit. */
  readonly timeoutMs: number | null;
  /** In milliseconds since 1970. Unlike a duration it stays the same if the message is sent again. */
  readonly deadline: number | null;
}

export type Answer =
  | {
      readonly kind: 'ack';
      readonly success: true;
      /** For people. */
      readonly note?: string;
      readonly warnings?: readonly string[];
    }
  | { readonly kind: 'error'; readonly message: string; readonly code?: ErrorCode }
  | { readonly kind: 'prompt'; readonly content: string; readonly step?: string }
  | { readonly kind: 'session-id'; readonly session_id: string }
  | {
      readonly kind: 'event-received' | 'event-match';
      readonly event_type: string;
      readonly agent: string | null;
      readonly data: JsonMap;
    }
  | { readonly kind: 'step-status'; readonly step: string; readonly status: string }
  | {
      readonly kind: 'gate-decided';
      readonly gate: string;
      readonly approved: boolean;
      readonly by: string;
      readonly notes: string | null;
      readonly answer: string | null;
    }
  | { readonly kind: 'timeout'; readonly message: string }
  /** The run is ending, or the step no longer waits. */
  | { readonly kind: 'released'; readonly message: string }
  | { readonly kind: 'pong'; readonly workflow: string };

/**
 * `malformed`: not a message. `refused`: a message that cannot be accepted. `unknown-step`: the step does not exist. `ending`:
 * the run is about to end, and can be resumed. `ended`: the run accepts nothing more. `busy`: too many connections; the inbox
 * still works.
 */
export type ErrorCode = 'malformed' | 'refused' | 'unknown-step' | 'ending' | 'ended' | 'busy';

export function errorAnswer(message: string, code: ErrorCode): Answer {
  return { kind: 'error', message, code };
}

/** Includes the line end. */
export function encodeAnswer(answer: Answer): string {
  const { kind, ...fields } = answer;
  return `${JSON.stringify({ type: kind.replaceAll('-', '_'), ...fields })}\n`;
}

/** Null if the line is not an answer. */
export function decodeAnswer(line: string): Answer | null {
  const parsed = parseJson(line);
  if (!parsed.ok || !isJsonMap(parsed.value)) return null;
  const { type, ...fields } = parsed.value;
  return typeof type === 'string' ? ({ kind: type.replaceAll('_', '-'), ...fields } as unknown as Answer) : null;
}

/** An error is a sentence. */
export function parseMessage(line: string, runId: string): Result<Message, string> {
  const parsed = parseJson(line);
  if (!parsed.ok) return parsed;
  const map = parsed.value;
  if (!isJsonMap(map)) return err('a message is one JSON object on one line');
  if (!isSafe(map, DEPTH_MAX)) return err(`nested deeper than ${DEPTH_MAX} levels, or with the key "__proto__"`);
  const fields = new Fields(map);
  const workflow = fields.name('workflow');
  const type = fields.word('type');
  const message = messageOf(type, fields);
  if (fields.problem !== null) return err(fields.problem);
  if (workflow !== null && workflow !== runId) return err(`this is the run ${runId}, not ${workflow}`);
  return message === null ? err(`there is no message of type ${JSON.stringify(type)}`) : ok(message);
}

function messageOf(type: string, fields: Fields): Message | null {
  switch (type) {
    case 'step_done':
      return {
        kind: 'step-done',
        agent: fields.id('agent'),
        step: fields.id('step'),
        outputs: fields.map('outputs'),
        notes: fields.text('notes'),
        message: fields.name('id'),
      };
    case 'get_prompt':
      return { kind: 'get-prompt', agent: fields.id('agent') ?? fields.missing('agent') };
    case 'get_session_id':
      return { kind: 'get-session-id', agent: fields.id('agent') ?? fields.missing('agent') };
    case 'event':
      return {
        kind: 'event',
        id: fields.name('id'),
        eventType: fields.word('event_type'),
        agent: fields.name('agent'),
        data: fields.smallMap('data'),
      };
    case 'await_event':
      return {
        kind: 'await-event',
        eventType: fields.word('event_type'),
        filter: fields.texts('filter'),
        asking: fields.name('asking'),
        compat: fields.truthy('compat'),
        ...waiting(fields),
      };
    case 'step_status':
      return {
        kind: 'step-status',
        step: fields.id('step') ?? fields.missing('step'),
        asker: fields.id('asker'),
        agent: fields.id('agent'),
      };
    case 'await_approval':
      return {
        kind: 'await-approval',
        gate: fields.word('gate_id'),
        prompt: fields.smallText('prompt'),
        ...waiting(fields),
      };
    case 'approval':
      return {
        kind: 'approval',
        gate: fields.word('gate_id'),
        approved: fields.boolean('approved'),
        // The reason of a rejection and the notes of an approval are the same field here.
        notes: fields.smallText('notes') ?? fields.smallText('reason'),
        by: fields.name('by'),
        message: fields.name('id'),
      };
    case 'answer':
      return {
        kind: 'answer',
        gate: fields.name('gate_id'),
        text: fields.smallText('text') ?? fields.missing('text'),
        by: fields.name('by'),
        message: fields.name('id'),
      };
    case 'ping':
      return { kind: 'ping' };
    default:
      return null;
  }
}

function waiting(fields: Fields): Waiting {
  return {
    step: fields.id('step'),
    attempt: fields.count('attempt'),
    agent: fields.id('agent'),
    timeoutMs: fields.count('timeout_ms') ?? fields.duration('timeout'),
    deadline: fields.count('deadline'),
  };
}

/** Reads the fields of a message. `problem` is the first wrong one; the returned values do not matter then. */
class Fields {
  problem: string | null = null;
  readonly #map: JsonMap;

  constructor(map: JsonMap) {
    this.#map = map;
  }

  /** Null if it is absent, or empty because a variable was not set. */
  name(key: string): string | null {
    const text = this.text(key);
    if (text === null || text === '') return null;
    if (text.length > NAME_LENGTH_MAX) return this.#wrong(key, `is longer than ${NAME_LENGTH_MAX} characters`);
    if (hasControlCharacters(text)) return this.#wrong(key, 'contains control characters');
    return text;
  }

  /** Of a step or an agent. Not limited in length, because ids grow with recursion, and an unknown id is never stored. */
  id(key: string): string | null {
    const text = this.text(key);
    if (text === null || text === '') return null;
    return hasControlCharacters(text) ? this.#wrong(key, 'contains control characters') : text;
  }

  word(key: string): string {
    return this.name(key) ?? this.missing(key);
  }

  text(key: string): string | null {
    const value = this.#value(key);
    if (value === null || typeof value === 'string') return value;
    return this.#wrong(key, 'must be a string');
  }

  missing(key: string): string {
    this.#wrong(key, 'is missing');
    return '';
  }

  map(key: string): JsonMap {
    const value = this.#value(key) ?? {};
    if (isJsonMap(value)) return value;
    this.#wrong(key, 'must be an object');
    return {};
  }

  smallText(key: string): string | null {
    const text = this.text(key);
    return text === null || text.length <= SMALL_BYTES_MAX ? text : this.#tooLarge(key);
  }

  smallMap(key: string): JsonMap {
    const value = this.map(key);
    // In UTF-16 units, which is precise enough for a bound.
    if (JSON.stringify(value).length > SMALL_BYTES_MAX) this.#tooLarge(key);
    return value;
  }

  texts(key: string): Readonly<Record<string, string>> {
    const entries = Object.entries(this.smallMap(key));
    const wrong = entries.find(([, value]) => typeof value === 'object');
    if (wrong !== undefined) this.#wrong(`${key}.${wrong[0]}`, 'must be a string');
    return Object.fromEntries(entries.map(([name, value]) => [name, plainText(value)]));
  }

  boolean(key: string): boolean {
    const value = this.#value(key);
    if (typeof value !== 'boolean') this.#wrong(key, 'must be true or false');
    return value === true;
  }

  truthy(key: string): boolean {
    const value = this.#value(key);
    return value !== null && value !== false;
  }

  count(key: string): number | null {
    const value = this.#value(key);
    if (value === null || (Number.isSafeInteger(value) && Number(value) >= 0)) return value as number | null;
    return this.#wrong(key, 'must be a whole number, 0 or more');
  }

  /** `30s`, or a number of seconds. */
  duration(key: string): number | null {
    const value = this.#value(key);
    if (value === null) return null;
    const ms = typeof value === 'string' || typeof value === 'number' ? parseDuration(String(value)) : null;
    return ms ?? this.#wrong(key, 'must be a duration, like 30s');
  }

  #value(key: string): Json {
    return own(this.#map, key) ?? null;
  }

  #tooLarge(key: string): null {
    return this.#wrong(key, `is larger than ${SMALL_BYTES_MAX} bytes`);
  }

  #wrong(key: string, what: string): null {
    this.problem ??= `${JSON.stringify(key.slice(0, NAME_LENGTH_MAX))} ${what}`;
    return null;
  }
}

function parseJson(line: string): Result<Json, string> {
  try {
    return ok(JSON.parse(line) as Json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return err('a message is one JSON object on one line');
  }
}

/** Bounds the depth, because journals and views process values recursively. */
function isSafe(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  if (Array.isArray(value)) return value.every((item: Json) => isSafe(item, depth - 1));
  return Object.entries(value).every(([key, item]) => key !== '__proto__' && isSafe(item, depth - 1));
}
