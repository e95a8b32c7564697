// Readers, by the names that adapters use.

import { own } from '../../../base/json.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import { claudeReader } from './claude.ts';
import { codexReader } from './codex.ts';
import { geminiReader } from './gemini.ts';
import { opencodeReader } from './opencode.ts';
import type { Reader } from './reader.ts';
import { simReader } from './sim.ts';
import { textReader } from './text.ts';

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
  return err(`there is no reader ${JSON.stringify(name)} of an agent's output: there is ${READER_NAMES.join(', ')}`);
}
