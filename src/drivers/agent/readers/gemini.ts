// Gemini CLI, `-o stream-json`. It reports errors as JSON on stderr, and exits with the HTTP status of the API, of
// which the system keeps eight bits. It reports tokens and no price; whether a resumed session includes earlier tokens
// is unknown.

import {
  error,
  essentialFields,
  EventReader,
  Fields,
  type ProgramExit,
  type RawUsage,
  SILENT,
  type Verdict,
} from './reader.ts';

export class GeminiReader extends EventReader {
  readonly essential = essentialFields('"type":"result"', '"role":"assistant"');
  #result: Fields | null = null;

  protected onEvent(event: Fields): void {
    switch (event.text('type') ?? '') {
      case 'init':
        this.session = event.id('session_id');
        return;
      case 'message':
        if (event.text('role') === 'assistant') this.message.add(event.text('content') ?? '');
        return;
      case 'tool_use':
        // Text after a tool's answer is a new message.
        this.message.begin();
        this.beginCall(event.id('tool_id'));
        return;
      case 'tool_result':
        this.calls.delete(event.id('tool_id'));
        return;
      case 'result':
        this.calls.clear();
        this.#result = event;
    }
  }

  get usage(): RawUsage | null {
    const tokens = this.#result?.map('stats').amount('total_tokens') ?? null;
    return tokens === null ? null : { usd: null, tokens, scope: 'untold' };
  }

  protected verdict({ status, stderr }: ProgramExit): Verdict {
    if (this.#result?.text('status') === 'success' && status === 0) return this.message.verdict();
    const details = errorIn(stderr) ?? this.#result?.map('error');
    const code = details?.amount('code') ?? API_STATUSES.find((each) => each % 256 === status) ?? null;
    const message = details?.text('message') ?? (code === null ? null : `the API answered with status ${code}`);
    return message === null ? SILENT : error(message, code === 429 ? { until: null } : null);
  }
}

const API_STATUSES = [400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504];

/** The `error` of the last object on stderr; null if none. */
function errorIn(stderr: string): Fields | null {
  const begins = [...stderr.matchAll(/^\{/gm)].map(({ index }) => index).slice(-OBJECTS_MAX);
  const end = stderr.lastIndexOf('}') + 1;
  const errors = begins.flatMap((begin) => Fields.parse(stderr.slice(begin, end))?.map('error') ?? []);
  return errors.findLast(({ isEmpty }) => !isEmpty) ?? null;
}

/** Bounds the search from the end. */
const OBJECTS_MAX = 20;
