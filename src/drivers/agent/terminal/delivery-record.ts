// Stores the delivery state of each message in `deliveries/`, in the folder of the agent's start: enough for a later
// engine to know what may have reached the agent. A state is written before the act that it describes.

import { join } from 'node:path';
import { fileName } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import type { AgentLimit } from '../host.ts';
import type { DialogDecision } from './post-dialog.ts';
import type { FailedDelivery } from './delivery-machine.ts';

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
