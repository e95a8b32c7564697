// Messages that agents, steps and people send to a run, and the answers: one JSON object a line, in both directions. Pure:
// this file knows neither sockets nor files, and trusts no input.
//
//   protocol/1  Any bytes are parsed to a message or to a sentence that says what is wrong. Nothing is thrown.
//   protocol/2  Messages are bounded: the length of a line, of a name and of an event, and the depth of values.
//   protocol/3  A message that names another run is refused.
//   protocol/4  No key of a message can reach the prototype of an object.
//
// On the wire a message has a `type` in snake case; here it is the `kind`.

import { err, ok, type Result } from '../base/errors.ts';
import { isJsonMap, type Json, type JsonMap, own, parseJson } from '../base/json.ts';
import { hasControlCharacters } from '../base/sanitize.ts';
import { parseDuration } from '../base/time.ts';
import { APPROVER_FORMS, isApprover } from '../ir/approvers.ts';
import { plainText } from '../ir/text.ts';
import type { GateVerdict } from '../kernel/input.ts';

export const LINE_BYTES_MAX = 1024 * 1024;
/** For what a run may have thousands of: events, decisions, waits. */
export const SMALL_BYTES_MAX = 64 * 1024;
const NAME_LENGTH_MAX = 256;
const NAMES_MAX = 64;
/** Longer than any signature of a common key. */
const SIGNATURE_LENGTH_MAX = 16 * 1024;
const DEPTH_MAX = 64;

export type Message = Readonly<ReturnType<(typeof MESSAGES)[keyof typeof MESSAGES]>>;

export type Waiting = Readonly<ReturnType<typeof waiting>>;

/** That a person made a decision. `asking`: which question of the gate it answers. `time`: ISO 8601, in UTC. */
export type DecisionProof = Readonly<
  { asking: number; time: string } & ({ kind: 'key'; hmac: string } | { kind: 'signature'; signature: string })
>;

export type Answer =
  /** `note`: for people. */
  | { readonly kind: 'ack'; readonly success: true; readonly note?: string; readonly warnings?: readonly string[] }
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
  | ({ readonly kind: 'gate-decided'; readonly gate: string } & GateVerdict)
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

export function errorAnswer(message: string, code: ErrorCode = 'refused'): Answer {
  return { kind: 'error', message, code };
}

/** Includes the line end. */
export function encodeAnswer(answer: Answer): string {
  const { kind, ...fields } = answer;
  return `${JSON.stringify({ type: kind.replaceAll('-', '_'), ...fields })}\n`;
}

export function decodeAnswer(line: string): Answer | null {
  const map = parseJson(line);
  if (!isJsonMap(map) || typeof map['type'] !== 'string') return null;
  const { type, ...fields } = map;
  return { kind: type.replaceAll('_', '-'), ...fields } as unknown as Answer;
}

/** Passes a message to the run. Null: the sender has gone away, or the engine has ended. */
export type AnswerMessage = (message: Message, gone: AbortSignal) => Promise<Answer | null>;

/** An error is a sentence. */
export function parseMessage(line: string, runId: string): Result<Message, string> {
  const map = parseJson(line);
  if (!isJsonMap(map)) return err('a message is one JSON object on one line');
  if (!isSafe(map, DEPTH_MAX)) return err(`nested deeper than ${DEPTH_MAX} levels, or with the key "__proto__"`);
  const fields = new Fields(map);
  const workflow = fields.name('workflow');
  const type = fields.word('type');
  const message = own<(fields: Fields) => Message>(MESSAGES, type)?.(fields);
  if (fields.problem !== null) return err(fields.problem);
  if (workflow !== null && workflow !== runId) return err(`this is the run ${runId}, not ${workflow}`);
  return message === undefined ? err(`there is no message of type ${JSON.stringify(type)}`) : ok(message);
}

/** How each type is read. `message`, and the id of an event, identify a message that is sent again; null if it has none. */
const MESSAGES = {
  step_done: (fields: Fields) => ({
    kind: 'step-done' as const,
    agent: fields.id('agent'),
    step: fields.id('step'),
    outputs: fields.map('outputs'),
    notes: fields.text('notes'),
    message: fields.name('id'),
  }),
  get_prompt: (fields: Fields) => ({ kind: 'get-prompt' as const, agent: fields.requiredId('agent') }),
  get_session_id: (fields: Fields) => ({ kind: 'get-session-id' as const, agent: fields.requiredId('agent') }),
  event: (fields: Fields) => ({
    kind: 'event' as const,
    id: fields.name('id'),
    eventType: fields.word('event_type'),
    agent: fields.name('agent'),
    data: fields.smallMap('data'),
  }),
  await_event: (fields: Fields) => ({
    kind: 'await-event' as const,
    eventType: fields.word('event_type'),
    filter: fields.texts('filter'),
    /** Identifies the request if it is repeated for the next engine; null if the sender gave none. */
    asking: fields.name('asking'),
    /** Answer with the name that programs written for another engine expect. */
    compat: fields.truthy('compat'),
    ...waiting(fields),
  }),
  step_status: (fields: Fields) => ({
    kind: 'step-status' as const,
    step: fields.requiredId('step'),
    /** The step from which the name is resolved; null means the current step of the agent. */
    asker: fields.id('asker'),
    agent: fields.id('agent'),
  }),
  await_approval: (fields: Fields) => ({
    kind: 'await-approval' as const,
    gate: fields.word('gate_id'),
    prompt: fields.smallText('prompt'),
    /** Only these may decide; null: any person. */
    approvers: fields.approvers('approvers'),
    ...waiting(fields),
  }),
  approval: (fields: Fields) => ({
    kind: 'approval' as const,
    gate: fields.word('gate_id'),
    approved: fields.boolean('approved'),
    // The reason of a rejection and the notes of an approval are the same field here.
    notes: fields.smallText('notes') ?? fields.smallText('reason'),
    ...decider(fields),
  }),
  answer: (fields: Fields) => ({
    kind: 'answer' as const,
    /** Null means the only open one. */
    gate: fields.name('gate_id'),
    text: fields.smallText('text') ?? fields.missing('text'),
    ...decider(fields),
  }),
  type_keys: (fields: Fields) => ({
    kind: 'type-keys' as const,
    agent: fields.requiredId('agent'),
    /** As a terminal sends them, in base64. */
    keys: fields.smallText('keys') ?? fields.missing('keys'),
    by: fields.name('by'),
    /** The person typed while they saw that the agent asks something. */
    intoDialog: fields.truthy('into_dialog'),
    proof: fields.proof('proof'),
    message: fields.word('id'),
  }),
  ping: () => ({ kind: 'ping' as const }),
};

/** Fields of every decision about a gate. */
function decider(fields: Fields) {
  return {
    by: fields.name('by'),
    /** The agent that decides in its own session, without a proof. */
    agent: fields.name('agent'),
    /** That a person decided; null if it has none, or one that cannot be read. */
    proof: fields.proof('proof'),
    /** Where it was decided, such as `page`; null: in a terminal. */
    via: fields.name('via'),
    message: fields.name('id'),
  };
}

/** Fields of every message that waits for its answer. */
function waiting(fields: Fields) {
  return {
    /** The step that waits; null means the current step of the agent. */
    step: fields.id('step'),
    attempt: fields.count('attempt'),
    agent: fields.id('agent'),
    /** Null waits without limit. */
    timeoutMs: fields.count('timeout_ms') ?? fields.duration('timeout'),
    /** In milliseconds since 1970. Unlike a duration it stays the same if the message is sent again. */
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
    const isLong = (this.text(key) ?? '').length > NAME_LENGTH_MAX;
    return isLong ? this.#wrong(key, `is longer than ${NAME_LENGTH_MAX} characters`) : this.id(key);
  }

  /** Id of a step or an agent. Not limited in length, because ids grow with recursion, and an unknown id is never stored. */
  id(key: string): string | null {
    const text = this.text(key);
    if (text === null || text === '') return null;
    return hasControlCharacters(text) ? this.#wrong(key, 'contains control characters') : text;
  }

  requiredId(key: string): string {
    return this.id(key) ?? this.missing(key);
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

  approvers(key: string): readonly string[] | null {
    const value = this.#value(key);
    if (value === null) return null;
    const names = Array.isArray(value) ? value : [value];
    const isWrong = (name: Json): boolean =>
      typeof name !== 'string' || name.length > NAME_LENGTH_MAX || hasControlCharacters(name) || !isApprover(name);
    if (names.length > 0 && names.length <= NAMES_MAX && !names.some(isWrong)) return names as readonly string[];
    return this.#wrong(key, `must be a list of 1 to ${NAMES_MAX} names, each ${APPROVER_FORMS}`);
  }

  /** Null as well if it cannot be read. */
  proof(key: string): DecisionProof | null {
    const value = this.#value(key);
    if (!isJsonMap(value)) return null;
    const [asking, time, hmac, signature] = ['asking', 'time', 'hmac', 'signature'].map((part) => own(value, part));
    if (typeof asking !== 'number' || !Number.isSafeInteger(asking) || asking < 0) return null;
    if (typeof time !== 'string' || !TIME.test(time)) return null;
    if (typeof hmac === 'string' && signature === undefined) {
      return HMAC.test(hmac) ? { kind: 'key', asking, time, hmac } : null;
    }
    if (typeof signature !== 'string' || hmac !== undefined || signature.length > SIGNATURE_LENGTH_MAX) return null;
    return SIGNATURE.test(signature) ? { kind: 'signature', asking, time, signature } : null;
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

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?Z$/;
const HMAC = /^[0-9a-f]{64}$/;
const SIGNATURE = /^-----BEGIN SSH SIGNATURE-----\n[A-Za-z0-9+/=\n]+\n-----END SSH SIGNATURE-----\n?$/;

/** Bounds the depth, because journals and views process values recursively. */
function isSafe(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  if (Array.isArray(value)) return value.every((item: Json) => isSafe(item, depth - 1));
  return Object.entries(value).every(([key, item]) => key !== '__proto__' && isSafe(item, depth - 1));
}
