// Readers, by the names that adapters use.

import { own } from '../../../base/json.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import { claudeReader } from './claude.ts';
import { codexReader } from './codex.ts';
import { geminiReader } from './gemini.ts';
import { opencodeReader } from './opencode.ts';
import { SILENT, answer } from './reader.ts';
import type { ProgramExit, Reader, Reading } from './reader.ts';
import { simReader } from './sim.ts';

const READERS: Readonly<Record<string, () => Reader>> = {
  claude: claudeReader,
  codex: codexReader,
  gemini: geminiReader,
  opencode: opencodeReader,
  text: textReader,
  sim: simReader,
};

export const READER_NAMES: readonly string[] = Object.keys(READERS);

/** A new reader for each turn. The error is a sentence. */
export function readerNamed(name: string): Result<Reader, string> {
  const make = own(READERS, name);
  if (make !== undefined) return ok(make());
  return err(`there is no reader ${JSON.stringify(name)} of an agent's output; available: ${READER_NAMES.join(', ')}`);
}

// Any program that writes its answer to stdout and exits with 0.

export function textReader(): Reader {
  return new TextReader();
}

class TextReader implements Reader {
  readonly essential = [];
  readonly session = null;
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
