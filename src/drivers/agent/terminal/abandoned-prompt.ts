// A prompt that an agent received, or may have received, and that nothing waits for any more: its run was paused or
// stopped during the work. If the same prompt is sent for the same step again, it means that work, and the agent is not
// prompted twice. At most one exists, in the file `left` in the folder of the agent's start.

import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { PromptMessage } from '../../../ir/prompt-text.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';

interface AbandonedRecord {
  readonly id: string;
  readonly step: string;
  readonly digest: string;
}

export class AbandonedPrompt {
  readonly #path: string;

  constructor(startFolder: string) {
    this.#path = join(startFolder, 'left');
  }

  abandon({ id, step, text }: PromptMessage): void {
    try {
      writeJsonFile(this.#path, { id, step, digest: digestOf(text) } satisfies AbandonedRecord);
    } catch (error) {
      // The agent is then prompted twice.
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    }
  }

  /** The work was reported or interrupted, or something waits for it again. */
  forget(id: string): void {
    if (this.#read()?.id === id) rmSync(this.#path, { force: true });
  }

  /** The id of the abandoned prompt that this message repeats; null if none. */
  matching({ id, step, text }: PromptMessage): string | null {
    const left = this.#read();
    const isSame = left !== null && left.id !== id && left.step === step && left.digest === digestOf(text);
    return isSame ? left.id : null;
  }

  #read(): AbandonedRecord | null {
    return readJsonFile(this.#path) as AbandonedRecord | null;
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
