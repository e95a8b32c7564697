// A prompt that an agent has, or may have, and that nobody waits for any more: its run has paused or been stopped in the middle of
// the work. Whoever gives the agent the same prompt for the same step again means that work, and the agent is not told twice.
// There is one at most, in `left` in the folder of the agent's start.

import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { PromptMessage } from '../../../ir/prompt-text.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';

interface Left {
  readonly id: string;
  readonly step: string;
  readonly digest: string;
}

export class LeftPrompt {
  readonly #path: string;

  constructor(startFolder: string) {
    this.#path = join(startFolder, 'left');
  }

  leave({ id, step, text }: PromptMessage): void {
    try {
      writeJsonFile(this.#path, { id, step, digest: digestOf(text) } satisfies Left);
    } catch (error) {
      // Then the agent is told twice.
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    }
  }

  /** It was reported, interrupted, or is waited for again. */
  forget(id: string): void {
    if (this.#read()?.id === id) rmSync(this.#path, { force: true });
  }

  /** The id of the one that a message says again; null where there is none. */
  of({ id, step, text }: PromptMessage): string | null {
    const left = this.#read();
    const isSame = left !== null && left.id !== id && left.step === step && left.digest === digestOf(text);
    return isSame ? left.id : null;
  }

  #read(): Left | null {
    return readJsonFile(this.#path) as Left | null;
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
