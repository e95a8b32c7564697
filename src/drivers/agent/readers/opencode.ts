// opencode, `run --format json`. It reports a tool only after its answer, so none is ever in flight. Each step of a
// turn has its own tokens and price; a price of 0 for tokens means unknown.

import type { JsonMap } from '../../../base/json.ts';
import { amountAt, idAt, mapAt, parseMap, sumAt, textAt } from './foreign.ts';
import { LatestMessage, SILENT, TOO_LONG, answer, error } from './reader.ts';
import type { ProgramExit, RawUsage, Reader, Reading, Verdict } from './reader.ts';

export function opencodeReader(): Reader {
  return new OpencodeReader();
}

class OpencodeReader implements Reader {
  readonly essential = ['"type":"text"', '"type":"error"'];
  readonly toolInFlight = false;
  session: string | null = null;
  readonly #words = new LatestMessage();
  /** Sum over finished steps. */
  #spent: { readonly usd: number | null; readonly tokens: number | null } | null = null;
  #error: JsonMap | null = null;

  line(text: string): void {
    const event = parseMap(text);
    if (event === null) return;
    this.session = idAt(event, 'sessionID') ?? this.session;
    const part = mapAt(event, 'part');
    switch (textAt(event, 'type')) {
      case 'step_start':
        this.#words.begin();
        return;
      case 'text':
        this.#words.add(textAt(part, 'text') ?? '');
        return;
      case 'step_finish':
        this.#error = null;
        this.#spend(part);
        return;
      case 'error':
        this.#error = mapAt(event, 'error');
        return;
      default:
        return;
    }
  }

  longLine(): void {}

  get text(): string {
    return this.#words.text;
  }

  end(exit: ProgramExit): Reading {
    const usage: RawUsage | null = this.#spent === null ? null : { ...this.#spent, scope: 'turn' };
    return { verdict: this.#verdict(exit), denied: 0, usage };
  }

  #spend(part: JsonMap): void {
    const told = mapAt(part, 'tokens');
    const tokens = amountAt(told, 'total') ?? sumAt(told, ['input', 'output', 'reasoning']);
    const cost = amountAt(part, 'cost');
    const usd = cost === 0 && tokens !== 0 ? null : cost;
    const before = this.#spent ?? { usd: 0, tokens: 0 };
    this.#spent = { usd: plus(before.usd, usd), tokens: plus(before.tokens, tokens) };
  }

  #verdict({ status, at }: ProgramExit): Verdict {
    if (this.#error !== null) {
      const data = mapAt(this.#error, 'data');
      const message =
        textAt(data, 'message') ?? textAt(this.#error, 'name') ?? 'it tells of an error, and not of which';
      if (amountAt(data, 'statusCode') !== 429) return error(message);
      const seconds = Number(textAt(mapAt(data, 'responseHeaders'), 'retry-after') ?? Number.NaN);
      return error(message, { until: seconds >= 0 && Number.isFinite(seconds) ? at + seconds * 1_000 : null });
    }
    if (status !== 0 || this.#spent === null) return SILENT;
    return this.#words.isTooLong ? error(TOO_LONG) : answer(this.text);
  }
}

function plus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}
