// Codex, `exec --json`. Items of type `error` and events `error` are warnings; only `turn.failed` is final. It reports
// tokens of the whole thread and no price.

import { amountAt, idAt, mapAt, parseMap, sumAt, textAt } from './foreign.ts';
import { LatestMessage, OpenCalls, SILENT, answer, error } from './reader.ts';
import type { ProgramExit, RawUsage, Reader, Reading, Verdict } from './reader.ts';

export function codexReader(): Reader {
  return new CodexReader();
}

class CodexReader implements Reader {
  readonly essential = ['"type":"agent_message"', '"type":"turn.'];
  session: string | null = null;
  readonly #words = new LatestMessage();
  readonly #calls = new OpenCalls();
  #end: { readonly error: string | null } | null = null;
  #usage: RawUsage | null = null;

  line(text: string): void {
    const event = parseMap(text);
    if (event === null) return;
    const item = mapAt(event, 'item');
    switch (textAt(event, 'type')) {
      case 'thread.started':
        this.session = idAt(event, 'thread_id');
        return;
      case 'turn.started':
        this.#end = null;
        return;
      case 'item.started':
        this.#calls.begin(idAt(item, 'id'));
        return;
      case 'item.completed':
        this.#calls.end(idAt(item, 'id'));
        if (textAt(item, 'type') !== 'agent_message') return;
        this.#words.begin();
        this.#words.add(textAt(item, 'text') ?? '');
        return;
      case 'turn.completed': {
        const usage = mapAt(event, 'usage');
        this.#calls.endAll();
        this.#end = { error: null };
        // Cached tokens are part of the input tokens.
        if (amountAt(usage, 'input_tokens') === null) return;
        this.#usage = { usd: null, tokens: sumAt(usage, ['input_tokens', 'output_tokens']), scope: 'session' };
        return;
      }
      case 'turn.failed':
        this.#calls.endAll();
        this.#end = { error: textAt(mapAt(event, 'error'), 'message') ?? 'it tells of an error, and not of which' };
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

  end({ status }: ProgramExit): Reading {
    return { verdict: this.#verdict(status), denied: 0, usage: this.#usage };
  }

  #verdict(status: number | null): Verdict {
    const failed = this.#end?.error ?? null;
    if (failed !== null) return error(failed, /\bstatus: 429\b/.test(failed) ? { until: null } : null);
    return this.#end !== null && status === 0 ? answer(this.text) : SILENT;
  }
}
