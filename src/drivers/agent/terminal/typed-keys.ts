// Keys that a person types into an agent's terminal through meow, not with `meow attach`. That they did is recorded in the file
// `typed` of the agent's start before the first key arrives, so that a delivery, also of a later engine, leaves their text alone.

import { statSync } from 'node:fs';
import { join } from 'node:path';

import { err, ok, type Result } from '../../../base/errors.ts';
import { isErrno, tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { writeJsonFile } from '../../../sys/files.ts';
import type { TerminalPane } from '../tmux/terminal-pane.ts';

const TYPED = 'typed';

/** When a person typed last, by `performance.now`; null if never. `folder`: of the agent's start. */
export function typedAt(folder: string): number | null {
  const stats = tolerate(UNUSABLE, null, () => statSync(join(folder, TYPED)));
  return stats === null ? null : performance.now() - (Date.now() - stats.mtimeMs);
}

/** `pane`: null if the terminal is gone. An error is a sentence. */
export async function typeKeys(
  pane: TerminalPane | null,
  folder: string,
  keys: Uint8Array,
  by: string,
): Promise<Result<null, string>> {
  if (pane === null) return err('the terminal is gone');
  try {
    writeJsonFile(join(folder, TYPED), { by, at: Date.now() });
  } catch (error) {
    if (!isErrno(error, ...UNUSABLE)) throw error;
    return err(`the keys could not be recorded: ${error.message}`);
  }
  return (await pane.keys(keys)) === 'done' ? ok(null) : err('the terminal is gone');
}
