// Claude Code, `--output-format stream-json`. One process may print several results, of which the last counts: a
// background command wakes the agent again. Neither the exit code nor `subtype` means success: an API error has the
// subtype `success`, and an interrupted turn exits with 0.
//
// Costs are counted in one of two ways. As measured: up to 2.1.197 a result reports the costs of the process, from
// 2.1.325 on those of the session, including the session that it was resumed or forked from. The versions in between
// are unknown.

import type { Json, JsonMap } from '../../../base/json.ts';
import { own } from '../../../base/json.ts';
import { amountAt, idAt, mapAt, mapsAt, parseMap, sumAt, textAt, textsAt, valueAt } from './foreign.ts';
import { LatestMessage, OpenCalls, SILENT, answer, error } from './reader.ts';
import type { ProgramExit, RawUsage, Reader, Reading, Verdict } from './reader.ts';

export function claudeReader(): Reader {
  return new ClaudeReader();
}

interface Result {
  readonly isError: boolean;
  readonly text: string | null;
  readonly structured: Json;
  readonly message: string;
  readonly apiStatus: number | null;
  readonly usd: number | null;
  readonly tokens: number | null;
}

class ClaudeReader implements Reader {
  readonly essential = ['"type":"result"'];
  session: string | null = null;
  #version: string | null = null;
  #message: string | null = null;
  readonly #words = new LatestMessage();
  readonly #calls = new OpenCalls();
  /** Background commands that it waits for. */
  #background = 0;
  #limitUntil: number | null = null;
  #denied = 0;
  #result: Result | null = null;

  line(text: string): void {
    const event = parseMap(text);
    if (event === null) return;
    this.session = idAt(event, 'session_id') ?? this.session;
    switch (textAt(event, 'type')) {
      case 'system':
        this.#system(event);
        return;
      case 'assistant':
        this.#assistant(event);
        return;
      case 'user':
        for (const block of mapsAt(mapAt(event, 'message'), 'content')) this.#calls.end(idAt(block, 'tool_use_id'));
        return;
      case 'rate_limit_event':
        this.#limited(mapAt(event, 'rate_limit_info'));
        return;
      case 'result':
        this.#calls.endAll();
        this.#denied = Math.max(this.#denied, mapsAt(event, 'permission_denials').length);
        this.#result = resultOf(event);
        return;
      default:
        return;
    }
  }

  longLine(): void {
    this.#calls.endAll();
  }

  get toolInFlight(): boolean {
    return this.#calls.any || this.#background > 0;
  }

  get text(): string {
    return this.#words.text;
  }

  end({ status }: ProgramExit): Reading {
    return { verdict: this.#verdict(status), denied: this.#denied, usage: this.#usage() };
  }

  #system(event: JsonMap): void {
    const subtype = textAt(event, 'subtype');
    if (subtype === 'init') this.#version = idAt(event, 'claude_code_version');
    if (subtype === 'background_tasks_changed') this.#background = mapsAt(event, 'tasks').length;
  }

  #assistant(event: JsonMap): void {
    const message = mapAt(event, 'message');
    const isOwn = idAt(event, 'parent_tool_use_id') === null;
    for (const block of mapsAt(message, 'content')) {
      if (textAt(block, 'type') === 'tool_use') this.#calls.begin(idAt(block, 'id'));
      const said = textAt(block, 'type') === 'text' ? textAt(block, 'text') : null;
      if (said === null || !isOwn) continue;
      // Each block of a message is an event of its own.
      if (idAt(message, 'id') !== this.#message) this.#words.begin();
      this.#message = idAt(message, 'id');
      this.#words.add(said);
    }
  }

  #limited(info: JsonMap): void {
    const resets = textAt(info, 'status') === 'rejected' ? amountAt(info, 'resetsAt') : null;
    if (resets !== null) this.#limitUntil = resets < SECONDS_BELOW ? resets * 1_000 : resets;
  }

  #verdict(status: number | null): Verdict {
    const result = this.#result;
    if (result === null) return SILENT;
    if (!result.isError) return status === 0 ? answer(result.text ?? '', result.structured) : SILENT;
    const isLimit = result.apiStatus === 429;
    return error(result.message, isLimit ? { until: this.#limitUntil } : null);
  }

  #usage(): RawUsage | null {
    if (this.#result === null) return null;
    const { usd, tokens } = this.#result;
    return { usd, tokens, scope: scopeOf(this.#version) };
  }
}

/** Separates seconds since 1970 from milliseconds since 1970. */
const SECONDS_BELOW = 1e12;

function resultOf(event: JsonMap): Result {
  const text = textAt(event, 'result');
  const models = Object.values(mapAt(event, 'modelUsage')).flatMap((value) => mapsAt({ value: [value] }, 'value'));
  // A model with an unknown price is counted at the price of another.
  const isPriced = models.every((model) => textAt(model, 'costBasis') !== 'unknown');
  return {
    isError: own(event, 'is_error') !== false,
    text,
    structured: valueAt(event, 'structured_output'),
    message: messageOf(event, text),
    apiStatus: amountAt(event, 'api_error_status'),
    usd: isPriced ? amountAt(event, 'total_cost_usd') : null,
    tokens: own(event, 'modelUsage') === undefined ? sumAt(mapAt(event, 'usage'), USAGE_KEYS) : tokensOf(models),
  };
}

function messageOf(event: JsonMap, text: string | null): string {
  const told = [text, textsAt(event, 'errors').join('; '), textAt(event, 'terminal_reason'), textAt(event, 'subtype')];
  return told.find((each) => each !== null && each !== '') ?? 'it tells of an error, and not of which';
}

const USAGE_KEYS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];
const MODEL_KEYS = ['inputTokens', 'outputTokens', 'cacheReadInputTokens', 'cacheCreationInputTokens'];

function tokensOf(models: readonly JsonMap[]): number | null {
  const each = models.map((model) => sumAt(model, MODEL_KEYS));
  return each.reduce<number | null>((sum, tokens) => (sum === null || tokens === null ? null : sum + tokens), 0);
}

function scopeOf(version: string | null): RawUsage['scope'] {
  const numbers = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})/.exec(version ?? '');
  if (numbers === null) return 'untold';
  const [, major, minor, patch] = numbers.map(Number);
  const comparable = ((major ?? 0) * 1e6 + (minor ?? 0)) * 1e6 + (patch ?? 0);
  if (comparable <= LAST_BY_TURN) return 'turn';
  return comparable >= FIRST_BY_SESSION ? 'session' : 'untold';
}

const LAST_BY_TURN = (2 * 1e6 + 1) * 1e6 + 197;
const FIRST_BY_SESSION = (2 * 1e6 + 1) * 1e6 + 325;
