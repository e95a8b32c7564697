// What agents, steps and people can say to a run, and what they are answered: one JSON object a line, either way. Pure:
// this file knows neither sockets nor files, and trusts nothing that it is given.
//
//   T1  Any bytes are a message or a sentence that says what is wrong with them. Nothing is thrown.
//   T2  What is accepted is bounded: the length of a line, of a name, of an event, and how deep its values are nested.
//   T3  A message that names another run is not for this one.
//   T4  No key of a message can reach the prototype of an object.
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
/** Of what is kept by the thousand: an event, a decision, what somebody waits for. None may be as large as a line. */
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
      /** The same question, asked again of the next engine, has the same. Null where who asks gave it none. */
      readonly asking: string | null;
      /** What the answer is called by programs that were written for another engine. */
      readonly compat: boolean;
    } & Waiting)
  /** `asker`: the step that asks, from which the name is looked up; null means what the agent is working on. */
  | {
      readonly kind: 'step-status';
      readonly step: string;
      readonly asker: string | null;
      readonly agent: string | null;
    }
  /** `prompt`: what people are asked. */
  | ({ readonly kind: 'await-approval'; readonly gate: string; readonly prompt: string | null } & Waiting)
  | {
      readonly kind: 'approval';
      readonly gate: string;
      readonly approved: boolean;
      readonly notes: string | null;
      readonly by: string | null;
      readonly message: string | null;
    }
  /** `gate`: null means the only one that is open. */
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
  /** The same message, sent again, has the same. Null where its sender gave it none. */
  readonly id: string | null;
  readonly eventType: string;
  readonly agent: string | null;
  readonly data: JsonMap;
}

/** What every message has that is answered later. */
export interface Waiting {
  /** On behalf of whom: a step, or the one that the agent works on. */
  readonly step: string | null;
  readonly attempt: number | null;
  readonly agent: string | null;
  /** Null waits for ever. */
  readonly timeoutMs: number | null;
  /** A moment, in place of a duration: it stays the same when the message is sent again. */
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
  /** The run is ending: what was waited for will not come. */
  | { readonly kind: 'released'; readonly message: string }
  | { readonly kind: 'pong'; readonly workflow: string };

/**
 * `malformed`: it is no message. `refused`: it is one, and says what cannot be. `unknown-step`: it names a step that does
 * not exist. `ending`: the run is about to end, and can be taken up again. `ended`: it takes nothing in any more. `busy`: too
 * many are connected; the inbox is still open.
 */
export type ErrorCode = 'malformed' | 'refused' | 'unknown-step' | 'ending' | 'ended' | 'busy';

export function errorAnswer(message: string, code: ErrorCode): Answer {
  return { kind: 'error', message, code };
}

/** With the line's end. */
export function encodeAnswer(answer: Answer): string {
  const { kind, ...fields } = answer;
  return `${JSON.stringify({ type: kind.replaceAll('-', '_'), ...fields })}\n`;
}

/** Null where the line is no answer of ours. */
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
  if (!isTame(map, DEPTH_MAX)) return err(`nested deeper than ${DEPTH_MAX} levels, or with the key "__proto__"`);
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
        approved: fields.yesOrNo('approved'),
        // A rejection has a reason, an approval has notes; they are the same to us.
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

/** The fields of a message. The first that is not what it should be is the problem; what is returned then does not matter. */
class Fields {
  problem: string | null = null;
  readonly #map: JsonMap;

  constructor(map: JsonMap) {
    this.#map = map;
  }

  /** Null where it is left out, or empty: a variable that is not set reaches us so. */
  name(key: string): string | null {
    const text = this.text(key);
    if (text === null || text === '') return null;
    if (text.length > NAME_LENGTH_MAX) return this.#wrong(key, `is longer than ${NAME_LENGTH_MAX} characters`);
    if (hasControlCharacters(text)) return this.#wrong(key, 'contains control characters');
    return text;
  }

  /** Of a step or an agent. Ids grow as a workflow calls itself; one that is not known is never kept, so the line is bound enough. */
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
    return this.#wrong(key, 'must be a text');
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
    // In UTF-16 units, which is close enough to tell large from small.
    if (JSON.stringify(value).length > SMALL_BYTES_MAX) this.#tooLarge(key);
    return value;
  }

  texts(key: string): Readonly<Record<string, string>> {
    const entries = Object.entries(this.smallMap(key));
    const odd = entries.find(([, value]) => typeof value === 'object');
    if (odd !== undefined) this.#wrong(`${key}.${odd[0]}`, 'must be a text');
    return Object.fromEntries(entries.map(([name, value]) => [name, plainText(value)]));
  }

  yesOrNo(key: string): boolean {
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

/** Journals and views walk through values by recursion, so the depth is bounded here. */
function isTame(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  if (Array.isArray(value)) return value.every((item: Json) => isTame(item, depth - 1));
  return Object.entries(value).every(([key, item]) => key !== '__proto__' && isTame(item, depth - 1));
}
