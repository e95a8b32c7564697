// opencode, `run --format json`. It reports a tool only after its answer, so none is ever in flight. Each step of a
// turn has its own tokens and price; a price of 0 for tokens means unknown.

import {
  error,
  essentialFields,
  EventReader,
  type Fields,
  plus,
  type ProgramExit,
  SILENT,
  UNNAMED_ERROR,
} from './reader.ts';
import type { RawUsage, Verdict } from './reader.ts';

export class OpencodeReader extends EventReader {
  readonly essential = essentialFields('"type":"text"', '"type":"error"');
  /** Sum over finished steps. */
  usage: RawUsage | null = null;
  #error: Fields | null = null;

  protected onEvent(event: Fields): void {
    this.session = event.id('sessionID') ?? this.session;
    const part = event.map('part');
    switch (event.text('type') ?? '') {
      case 'step_start':
        this.message.begin();
        return;
      case 'text':
        this.message.add(part.text('text') ?? '');
        return;
      case 'step_finish':
        this.#error = null;
        this.#spend(part);
        return;
      case 'error':
        this.#error = event.map('error');
    }
  }

  #spend(part: Fields): void {
    const counts = part.map('tokens');
    const tokens = counts.amount('total') ?? counts.sum('input', 'output', 'reasoning');
    const cost = part.amount('cost');
    const usd = cost === 0 && tokens !== 0 ? null : cost;
    const before = this.usage ?? { usd: 0, tokens: 0 };
    this.usage = { usd: plus(before.usd, usd), tokens: plus(before.tokens, tokens), scope: 'turn' };
  }

  protected verdict({ status, at }: ProgramExit): Verdict {
    if (this.#error !== null) {
      const data = this.#error.map('data');
      const message = data.text('message') ?? this.#error.text('name') ?? UNNAMED_ERROR;
      if (data.amount('statusCode') !== 429) return error(message);
      const seconds = Number(data.map('responseHeaders').text('retry-after') ?? Number.NaN);
      return error(message, { until: seconds >= 0 && Number.isFinite(seconds) ? at + seconds * 1_000 : null });
    }
    return status !== 0 || this.usage === null ? SILENT : this.message.verdict();
  }
}
