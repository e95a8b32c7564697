// Gemini CLI, `-o stream-json`. It reports errors as JSON on stderr, and exits with the HTTP status of the API, of
// which the system keeps eight bits. It reports tokens and no price; whether a resumed session includes earlier tokens
// is unknown.

import type { JsonMap } from '../../../base/json.ts';
import { amountAt, idAt, mapAt, parseMap, textAt } from './foreign.ts';
import { LatestMessage, OpenCalls, SILENT, TOO_LONG, answer, error } from './reader.ts';
import type { ProgramExit, RawUsage, Reader, Reading, Verdict } from './reader.ts';

export function geminiReader(): Reader {
  return new GeminiReader();
}

class GeminiReader implements Reader {
  readonly essential = ['"type":"result"', '"role":"assistant"'];
  session: string | null = null;
  readonly #words = new LatestMessage();
  readonly #calls = new OpenCalls();
  #result: JsonMap | null = null;

  line(text: string): void {
    const event = parseMap(text);
    if (event === null) return;
    switch (textAt(event, 'type')) {
      case 'init':
        this.session = idAt(event, 'session_id');
        return;
      case 'message':
        if (textAt(event, 'role') === 'assistant') this.#words.add(textAt(event, 'content') ?? '');
        return;
      case 'tool_use':
        // Text after a tool's answer is a new message.
        this.#words.begin();
        this.#calls.begin(idAt(event, 'tool_id'));
        return;
      case 'tool_result':
        this.#calls.end(idAt(event, 'tool_id'));
        return;
      case 'result':
        this.#calls.endAll();
        this.#result = event;
        return;
      default:
        return;
    }
  }

  longLine(): void {
    this.#calls.endAll();
  }

  get toolInFlight(): boolean {
    return this.#calls.any;
  }

  get text(): string {
    return this.#words.text;
  }

  end(exit: ProgramExit): Reading {
    const stats = mapAt(this.#result ?? {}, 'stats');
    const tokens = amountAt(stats, 'total_tokens');
    const usage: RawUsage | null = tokens === null ? null : { usd: null, tokens, scope: 'untold' };
    return { verdict: this.#verdict(exit), denied: 0, usage };
  }

  #verdict({ status, stderr }: ProgramExit): Verdict {
    const result = this.#result;
    const isSuccess = result !== null && textAt(result, 'status') === 'success';
    if (isSuccess && status === 0) return this.#words.isTooLong ? error(TOO_LONG) : answer(this.text);
    const told = errorIn(stderr) ?? mapAt(result ?? {}, 'error');
    const code = amountAt(told, 'code') ?? apiStatusOf(status);
    const message = textAt(told, 'message') ?? (code === null ? null : `the API answered with status ${code}`);
    return message === null ? SILENT : error(message, code === 429 ? { until: null } : null);
  }
}

const API_STATUSES = [400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504];

function apiStatusOf(status: number | null): number | null {
  return API_STATUSES.find((each) => each % 256 === status) ?? null;
}

/** The `error` of the last object on stderr; null if none. */
function errorIn(stderr: string): JsonMap | null {
  const begins = [...stderr.matchAll(/^\{/gm)].map(({ index }) => index).slice(-OBJECTS_MAX);
  for (const begin of begins.toReversed()) {
    const end = stderr.lastIndexOf('}');
    const found = end < begin ? null : parseMap(stderr.slice(begin, end + 1));
    const told = found === null ? null : mapAt(found, 'error');
    if (told !== null && Object.keys(told).length > 0) return told;
  }
  return null;
}

/** Bounds the search from the end. */
const OBJECTS_MAX = 20;
