// What is kept of the delivery of each message, in `deliveries/` in the folder of the agent's start: enough for a later life
// to tell what may have reached the agent. A state is written before the act that it tells of.

import { join } from 'node:path';
import { fileName } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import type { AgentLimit } from '../host.ts';
import type { Decided } from './post-dialog.ts';
import type { FailedDelivery } from './delivery-machine.ts';

export interface DeliveryRecord {
  readonly state: /** Nothing of it was put in. */
    | { readonly kind: 'begun' }
    /** It may be in the input. */
    | { readonly kind: 'put' }
    /** It may have been submitted. */
    | { readonly kind: 'submitted' }
    | { readonly kind: 'accepted' }
    | { readonly kind: 'queued' }
    | { readonly kind: 'failed'; readonly delivery: FailedDelivery; readonly reason: string };
  /** How many prompts the agent's hooks had told of as accepted before. */
  readonly acceptedBefore: number;
  /** Limits that were on the screen before: they are not those of this message. */
  readonly limitsBefore: readonly string[];
  /** Errors that were; absent in what an older meow has kept. */
  readonly failuresBefore?: readonly string[];
  /** Whether the agent is told to read it from a file; null: that is not decided yet. */
  readonly isFile: boolean | null;
  /** What keeps the agent from it. */
  readonly limit: AgentLimit | null;
  /** What was decided last about something that the agent asked over it; absent where nothing was. */
  readonly decided?: Decided;
}

export class DeliveryRecords {
  readonly #folder: string;

  constructor(startFolder: string) {
    this.#folder = join(startFolder, 'deliveries');
  }

  /** Null where its delivery was never begun. */
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
