// The interface of readers. A reader folds the stdout lines of an agent's program: it reports progress during the turn
// and the result at the end. It has no side effects and never throws on its input: it skips lines that it does not
// understand.

import { isJsonMap, type Json, type JsonMap, own, parseJson } from '../../../base/json.ts';
import { hasControlCharacters } from '../../../base/sanitize.ts';
import type { TokenParts } from '../../../ir/output.ts';
import { printedTexts } from '../../../ir/answer-transitions.ts';

export interface Reader {
  /** A very long line is parsed only if it contains one of these. */
  readonly essential: readonly string[];
  /** Without line end. */
  line(text: string): void;
  /** A line was skipped because of its length; if it is not essential, it is probably tool output. */
  longLine(isEssential: boolean): void;
  /** Null until reported. */
  readonly session: string | null;
  /** A tool call is in flight, so silence is expected. */
  readonly toolInFlight: boolean;
  readonly text: string;
  /** Texts that all its messages show to the user. */
  readonly printed: readonly string[];
  /** As far as reported; null before. */
  readonly usage: RawUsage | null;
  end(exit: ProgramExit): Reading;
}

export interface ProgramExit {
  /** 128 + N after signal N; null if not recorded. */
  readonly status: number | null;
  /** Last bytes of stderr. */
  readonly stderr: string;
  /** Time of exit in milliseconds since 1970. */
  readonly at: number;
}

export interface Reading {
  readonly verdict: Verdict;
  readonly denied: number;
  /** Null if not reported. */
  readonly usage: RawUsage | null;
}

export type Verdict =
  /** `text` null: all of stdout. */
  | { readonly kind: 'answer'; readonly text: string | null; readonly structured: Json }
  | { readonly kind: 'error'; readonly message: string; readonly limit: Limit | null }
  /** No result: the exit code decides. */
  | { readonly kind: 'silent' };

export interface Limit {
  /** End of the limit in milliseconds since 1970; null if not reported. */
  readonly until: number | null;
}

/**
 * What the program counts: this turn alone, or the whole session. `untold`: one of the two, unknown which; in the first
 * turn of a session they are equal.
 */
export interface RawUsage {
  readonly usd: number | null;
  readonly tokens: number | null;
  readonly scope: 'turn' | 'session' | 'untold';
  /** Absent if not reported; counted like `tokens`. */
  readonly parts?: TokenParts;
  readonly model?: string;
}

/** Nothing if the program reports no kinds of tokens. Cached input is not part of `input`. */
export function partsOf(
  input: number | null,
  cached: number | null,
  output: number | null,
): { readonly parts?: TokenParts } {
  if (input === null || output === null) return {};
  return { parts: { input: Math.max(0, input), cached: cached ?? 0, output } };
}

export function answer(text: string | null, structured: Json = null): Verdict {
  return { kind: 'answer', text, structured };
}

export function error(message: string, limit: Limit | null = null): Verdict {
  return { kind: 'error', message, limit };
}

export const SILENT: Verdict = { kind: 'silent' };

export const UNNAMED_ERROR = 'it tells of an error, and not of which';

/** A reader of events, each a JSON object in a line. */
export abstract class EventReader implements Reader {
  abstract readonly essential: readonly string[];
  session: string | null = null;
  protected readonly message = new LatestMessage();
  /** Ids of tool calls in flight. */
  protected readonly calls = new Set<string | null>();
  protected denied = 0;
  abstract readonly usage: RawUsage | null;

  line(text: string): void {
    const event = Fields.parse(text);
    if (event !== null) this.onEvent(event);
  }

  longLine(isEssential: boolean): void {
    this.calls.clear();
    if (isEssential) this.message.skip();
  }

  get toolInFlight(): boolean {
    return this.calls.size > 0;
  }

  get text(): string {
    return this.message.text;
  }

  get printed(): readonly string[] {
    return this.message.printed;
  }

  end(exit: ProgramExit): Reading {
    return { verdict: this.verdict(exit), denied: this.denied, usage: this.usage };
  }

  protected abstract onEvent(event: Fields): void;

  protected abstract verdict(exit: ProgramExit): Verdict;

  protected beginCall(id: string | null): void {
    if (id !== null && this.calls.size < CALLS_MAX) this.calls.add(id);
  }
}

/** Fields as JSON writes them, without and with a blank after the colon: `"type":"result"`. */
export function essentialFields(...fields: readonly string[]): readonly string[] {
  return fields.flatMap((field) => [field, field.replace('":', '": ')]);
}

/** More than any agent makes at once. */
const CALLS_MAX = 1_000;

/** The agent's latest message, joined from its pieces. A message over the size limit is not an answer. */
class LatestMessage {
  #pieces: string[] = [];
  #length = 0;
  /** By the messages before. */
  #printed: readonly string[] = [];

  begin(text = ''): void {
    this.#printed = this.printed;
    this.#pieces = [];
    this.#length = 0;
    this.add(text);
  }

  add(piece: string): void {
    this.#length += piece.length;
    if (this.#length <= LENGTH_MAX) this.#pieces.push(piece);
  }

  /** A new message that is too long to be read. */
  skip(): void {
    this.begin();
    this.#length = Infinity;
  }

  get text(): string {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join('')];
    return this.#pieces[0] ?? '';
  }

  get printed(): readonly string[] {
    const latest = printedTexts(this.text);
    return latest.length === 0 ? this.#printed : [...this.#printed, ...latest];
  }

  /** The message as the answer of its turn. */
  verdict(structured: Json = null): Verdict {
    if (this.#length <= LENGTH_MAX) return answer(this.text, structured);
    return error(`its answer has more than ${LENGTH_MAX} characters`);
  }
}

const LENGTH_MAX = 64_000_000;

/** A JSON object from a foreign program: any field may be missing or of another type. */
export class Fields {
  readonly #map: JsonMap;

  constructor(map: JsonMap) {
    this.#map = map;
  }

  /** Null if the text is not a JSON object. */
  static parse(text: string): Fields | null {
    const value = parseJson(text);
    return isJsonMap(value) ? new Fields(value) : null;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#map, key);
  }

  get isEmpty(): boolean {
    return Object.keys(this.#map).length === 0;
  }

  /** Its fields that are maps. */
  get maps(): readonly Fields[] {
    return mapsIn(Object.values(this.#map));
  }

  /** Empty if absent. */
  map(key: string): Fields {
    const value = own(this.#map, key);
    return new Fields(isJsonMap(value) ? value : {});
  }

  mapsAt(key: string): readonly Fields[] {
    return mapsIn(this.#list(key));
  }

  text(key: string): string | null {
    const value = own(this.#map, key);
    return typeof value === 'string' ? value : null;
  }

  texts(key: string): readonly string[] {
    return this.#list(key).filter((item) => typeof item === 'string');
  }

  /** A finite number, not negative. */
  amount(key: string): number | null {
    const value = own(this.#map, key);
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
  }

  /** Sum of the amounts that exist; null if none does. */
  sum(...keys: readonly string[]): number | null {
    const amounts = keys.flatMap((key) => this.amount(key) ?? []);
    return amounts.length === 0 ? null : amounts.reduce((sum, amount) => sum + amount, 0);
  }

  /** Ids are short and without control characters. */
  id(key: string): string | null {
    const value = this.text(key);
    return value !== null && value !== '' && value.length <= ID_MAX && !hasControlCharacters(value) ? value : null;
  }

  /** Null if absent or nested too deeply. */
  value(key: string): Json {
    const value = own(this.#map, key) ?? null;
    return isNested(value, DEPTH_MAX) ? null : value;
  }

  #list(key: string): readonly Json[] {
    const value = own(this.#map, key);
    return Array.isArray(value) ? (value as readonly Json[]) : [];
  }
}

const ID_MAX = 200;
const DEPTH_MAX = 200;

function mapsIn(values: readonly Json[]): readonly Fields[] {
  return values.filter(isJsonMap).map((map) => new Fields(map));
}

function isNested(value: Json, deeperThan: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return deeperThan === 0 || Object.values(value).some((inner: Json) => isNested(inner, deeperThan - 1));
}

/** Unknown if one of the two is. */
export function plus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

/** A moment in seconds or in milliseconds since 1970, in milliseconds. */
export function epochMs(moment: number): number {
  return moment < 1e12 ? moment * 1_000 : moment;
}
