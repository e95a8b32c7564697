// The simulated agent, `meow sim-turn`: sim/turn-program.ts describes its lines. Costs are those of the turn.

import { amountAt, idAt, mapAt, parseMap, textAt } from './foreign.ts';
import { own } from '../../../base/json.ts';
import { answer, error, SILENT } from './reader.ts';
import type { ProgramExit, RawUsage, Reader, Reading, Verdict } from './reader.ts';

export function simReader(): Reader {
  return new SimReader();
}

class SimReader implements Reader {
  readonly essential = ['"kind":"result"'];
  session: string | null = null;
  toolInFlight = false;
  text = '';
  #verdict: ((status: number | null) => Verdict) | null = null;
  #usage: RawUsage | null = null;

  line(text: string): void {
    const event = parseMap(text);
    if (event === null) return;
    switch (textAt(event, 'kind')) {
      case 'begun':
        this.session = idAt(event, 'session');
        return;
      case 'text':
        this.text = textAt(event, 'text') ?? '';
        return;
      case 'tool':
        this.toolInFlight = textAt(event, 'state') === 'begun';
        return;
      case 'result': {
        const [ok, said] = [own(event, 'ok') === true, textAt(event, 'text') ?? ''];
        const isLimit = own(event, 'limit') !== undefined;
        const limit = isLimit ? { until: amountAt(mapAt(event, 'limit'), 'until') } : null;
        this.#verdict = (status) => (!ok ? error(said, limit) : status === 0 ? answer(said) : SILENT);
        this.#usage = { usd: amountAt(event, 'usd'), tokens: amountAt(event, 'tokens'), scope: 'turn' };
        return;
      }
      default:
        return;
    }
  }

  longLine(): void {}

  end({ status }: ProgramExit): Reading {
    return { verdict: this.#verdict?.(status) ?? SILENT, denied: 0, usage: this.#usage };
  }
}
