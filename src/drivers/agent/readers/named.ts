// Readers, by the names that adapters use.

import { err, ok, type Result } from '../../../base/errors.ts';
import { own } from '../../../base/json.ts';
import { ClaudeReader } from './claude.ts';
import { CodexReader } from './codex.ts';
import { GeminiReader } from './gemini.ts';
import { OpencodeReader } from './opencode.ts';
import {
  answer,
  error,
  essentialFields,
  EventReader,
  type Fields,
  partsOf,
  type ProgramExit,
  SILENT,
} from './reader.ts';
import type { RawUsage, Reader, Reading, Verdict } from './reader.ts';

const READERS: Readonly<Record<string, () => Reader>> = {
  claude: () => new ClaudeReader(),
  codex: () => new CodexReader(),
  gemini: () => new GeminiReader(),
  opencode: () => new OpencodeReader(),
  text: () => new TextReader(),
  sim: () => new SimReader(),
};

export const READER_NAMES: readonly string[] = Object.keys(READERS);

/** A new reader for each turn. */
export function readerNamed(name: string): Result<Reader, string> {
  const make = own(READERS, name);
  if (make !== undefined) return ok(make());
  return err(`there is no reader ${JSON.stringify(name)} of an agent's output; available: ${READER_NAMES.join(', ')}`);
}

/** Any program that writes its answer to stdout and exits with 0. */
export class TextReader implements Reader {
  readonly essential = [];
  readonly session = null;
  /** Its whole output is its answer. */
  readonly printed = [];
  readonly usage = null;
  readonly toolInFlight = false;
  text = '';

  line(text: string): void {
    this.text = text;
  }

  longLine(): void {}

  end({ status }: ProgramExit): Reading {
    return { verdict: status === 0 ? answer(null) : SILENT, denied: 0, usage: null };
  }
}

/** The simulated agent, `meow sim-turn`: sim/turn-program.ts describes its lines. Costs are those of the turn. */
export class SimReader extends EventReader {
  readonly essential = essentialFields('"kind":"result"');
  usage: RawUsage | null = null;
  #result: Fields | null = null;

  protected onEvent(event: Fields): void {
    switch (event.text('kind') ?? '') {
      case 'begun':
        this.session = event.id('session');
        return;
      case 'text':
        this.message.begin(event.text('text') ?? '');
        return;
      case 'tool':
        this.calls.clear();
        if (event.text('state') === 'begun') this.beginCall('tool');
        return;
      case 'result':
        this.#result = event;
        this.usage = {
          usd: event.amount('usd'),
          tokens: event.amount('tokens'),
          scope: 'turn',
          ...partsOf(event.amount('input'), event.amount('cached'), event.amount('output')),
        };
    }
  }

  override longLine(): void {}

  protected verdict({ status }: ProgramExit): Verdict {
    const result = this.#result;
    if (result === null) return SILENT;
    const text = result.text('text') ?? '';
    if (result.value('ok') === true) return status === 0 ? answer(text) : SILENT;
    return error(text, result.has('limit') ? { until: result.map('limit').amount('until') } : null);
  }
}
