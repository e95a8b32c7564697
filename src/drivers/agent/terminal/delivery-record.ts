// Stores the delivery state of each message in `deliveries/`, in the folder of the agent's start: enough for a later
// engine to know what may have reached the agent. A state is written before the act that it describes.

import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentLimit } from '../host.ts';
import type { FailedDelivery } from './delivery-machine.ts';
import type { DialogDecision } from './post-dialog.ts';
import { fileName } from '../../step-folder.ts';
import type { PromptMessage } from '../../../ir/prompt-text.ts';
import { ABSENT, EXHAUSTED, REFUSED, isErrno } from '../../../sys/errno.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import { makeFolder } from '../../../sys/private-file.ts';

export interface DeliveryRecord {
  readonly state: /** Nothing was put in. */
    | { readonly kind: 'begun' }
    /** The text may be in the input. */
    | { readonly kind: 'put' }
    /** The text may have been submitted. */
    | { readonly kind: 'submitted' }
    | { readonly kind: 'accepted' }
    | { readonly kind: 'queued' }
    | { readonly kind: 'failed'; readonly delivery: FailedDelivery; readonly reason: string };
  /** Prompts that hooks had reported as accepted before this one. */
  readonly acceptedBefore: number;
  /** Limits on the screen before the message: they do not belong to it. */
  readonly limitsBefore: readonly string[];
  /** Errors on the screen before the message. */
  readonly failuresBefore: readonly string[];
  /** The agent is told to read the text from a file; null while undecided. */
  readonly isFile: boolean | null;
  /** A usage limit that blocks the message. */
  readonly limit: AgentLimit | null;
  /** The latest decision about a dialog during this message; absent if none. */
  readonly decided?: DialogDecision;
}

export class DeliveryRecords {
  readonly #folder: string;

  constructor(startFolder: string) {
    this.#folder = join(startFolder, 'deliveries');
  }

  /** Null if delivery never began. */
  read(id: string): DeliveryRecord | null {
    return readJsonFile(this.#path(id)) as DeliveryRecord | null;
  }

  write(id: string, record: DeliveryRecord): void {
    makeFolder(this.#folder);
    writeJsonFile(this.#path(id), record);
  }

  #path(id: string): string {
    return join(this.#folder, `${fileName(id)}.json`);
  }
}

// A prompt that an agent received, or may have received, and that nothing waits for any more: its run was paused or
// stopped during the work. If the same prompt is sent for the same step again, it means that work, and the agent is not
// prompted twice. At most one exists, in the file `left` in the folder of the agent's start.

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
