// Codex, `exec --json`. Items of type `error` and events `error` are warnings; only `turn.failed` is final. It reports
// tokens of the whole thread and no price.

import {
  error,
  essentialFields,
  EventReader,
  type Fields,
  partsOf,
  type ProgramExit,
  SILENT,
  UNNAMED_ERROR,
} from './reader.ts';
import type { RawUsage, Verdict } from './reader.ts';

export class CodexReader extends EventReader {
  readonly essential = essentialFields('"type":"agent_message"', '"type":"turn.');
  usage: RawUsage | null = null;
  #end: { readonly error: string | null } | null = null;

  protected onEvent(event: Fields): void {
    const item = event.map('item');
    switch (event.text('type') ?? '') {
      case 'thread.started':
        this.session = event.id('thread_id');
        return;
      case 'turn.started':
        this.#end = null;
        return;
      case 'item.started':
        this.beginCall(item.id('id'));
        return;
      case 'item.completed':
        this.calls.delete(item.id('id'));
        if (item.text('type') === 'agent_message') this.message.begin(item.text('text') ?? '');
        return;
      case 'turn.completed': {
        const usage = event.map('usage');
        this.calls.clear();
        this.#end = { error: null };
        // Cached tokens are part of the input tokens.
        if (usage.amount('input_tokens') === null) return;
        const cached = usage.amount('cached_input_tokens') ?? 0;
        this.usage = {
          usd: null,
          tokens: usage.sum('input_tokens', 'output_tokens'),
          scope: 'session',
          ...partsOf((usage.amount('input_tokens') ?? 0) - cached, cached, usage.amount('output_tokens')),
        };
        return;
      }
      case 'turn.failed':
        this.calls.clear();
        this.#end = { error: event.map('error').text('message') ?? UNNAMED_ERROR };
    }
  }

  protected verdict({ status }: ProgramExit): Verdict {
    const failed = this.#end?.error ?? null;
    if (failed !== null) return error(failed, /\bstatus: 429\b/.test(failed) ? { until: null } : null);
    return this.#end !== null && status === 0 ? this.message.verdict() : SILENT;
  }
}
