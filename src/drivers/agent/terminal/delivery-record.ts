// Stores the delivery state of each message in `deliveries/`, in the folder of the agent's start: enough for a later
// engine to know what may have reached the agent. A state is written before the act that it describes. The abandoned
// prompt is in the file `left`, and the file `prepared` exists once the adapter's keys before a text were pressed.

import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';

import type { PromptMessage } from '../../../ir/prompt-text.ts';
import { tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { makeFolder, readJsonFile, readRecord, writeJsonFile } from '../../../sys/files.ts';
import { fileName } from '../../step-folder.ts';
import type { AgentLimit } from '../host.ts';
import type { DeliveryOutcome } from './delivery-machine.ts';
import type { DialogDecision } from './post-dialog.ts';
import {
  fields,
  isBoolean,
  isNumber,
  isText,
  listOf,
  nullable,
  oneOf,
  optional,
  type Shape,
} from '../../../base/shape.ts';

export interface DeliveryRecord {
  /** `begun`: nothing was put in. `put`: the text may be in the input. `submitted`: it may have been submitted. */
  readonly state:
    | { readonly kind: 'begun' }
    | { readonly kind: 'put' }
    | { readonly kind: 'submitted' }
    | Exclude<DeliveryOutcome, { kind: 'assumed-delivered' }>;
  /** Prompts that hooks had reported as accepted before this one. */
  readonly acceptedBefore: number;
  /** Limits and errors on the screen before the message: they do not belong to it. */
  readonly limitsBefore: readonly string[];
  readonly failuresBefore: readonly string[];
  /** The agent is told to read the text from a file; null while undecided. */
  readonly isFile: boolean | null;
  /** A usage limit that blocks the message. */
  readonly limit: AgentLimit | null;
  /** The latest decision about a dialog during this message; absent if none. */
  readonly decided?: DialogDecision;
}

type State = DeliveryRecord['state'];
const isState: Shape<State> = (value): value is State => isEarlierState(value) || isFailedState(value);
const isEarlierState = fields<{ readonly kind: Exclude<State['kind'], 'failed'> }>({
  kind: oneOf('begun', 'put', 'submitted', 'accepted', 'queued'),
});
const isFailedState = fields<Extract<State, { kind: 'failed' }>>({
  kind: oneOf('failed'),
  delivery: oneOf('draft-stuck', 'blocked-on-dialog', 'not-ready', 'dead'),
  reason: isText,
});
const isDeliveryRecord = fields<DeliveryRecord>({
  state: isState,
  acceptedBefore: isNumber,
  limitsBefore: listOf(isText),
  failuresBefore: listOf(isText),
  isFile: nullable(isBoolean),
  limit: nullable(fields<AgentLimit>({ text: isText, until: nullable(isNumber) })),
  decided: optional(
    fields<DialogDecision>({
      number: isNumber,
      name: isText,
      isRejected: isBoolean,
      reason: nullable(isText),
      isOver: isBoolean,
    }),
  ),
});

interface AbandonedPrompt {
  readonly id: string;
  readonly step: string;
  readonly digest: string;
}

const isAbandonedPrompt = fields<AbandonedPrompt>({ id: isText, step: isText, digest: isText });

export class DeliveryRecords {
  readonly #startFolder: string;

  constructor(startFolder: string) {
    this.#startFolder = startFolder;
  }

  /** Null if delivery never began. */
  read(id: string): DeliveryRecord | null {
    return readRecord(this.#path(id), isDeliveryRecord);
  }

  write(id: string, record: DeliveryRecord): void {
    makeFolder(join(this.#startFolder, 'deliveries'));
    writeJsonFile(this.#path(id), record);
  }

  get isPrepared(): boolean {
    return readJsonFile(this.#preparedPath) !== null;
  }

  savePrepared(): void {
    if (!this.isPrepared) writeJsonFile(this.#preparedPath, true);
  }

  get #preparedPath(): string {
    return join(this.#startFolder, 'prepared');
  }

  #path(id: string): string {
    return join(this.#startFolder, 'deliveries', `${fileName(id)}.json`);
  }

  /**
   * Nothing waits any more for a prompt that the agent received, or may have received: its run was paused or stopped
   * during the work. If the same prompt is sent for the same step again, it means that work, and the agent is not
   * prompted twice. At most one prompt is abandoned.
   */
  abandon({ id, step, text }: PromptMessage): void {
    // If this fails, the agent is prompted twice.
    tolerate(UNUSABLE, undefined, () => writeJsonFile(this.#abandonedPath, { id, step, digest: digestOf(text) }));
  }

  /** The work was reported or interrupted, or something waits for it again. */
  forgetAbandoned(id: string): void {
    if (this.#abandoned?.id === id) rmSync(this.#abandonedPath, { force: true });
  }

  /** The id of the abandoned prompt that this message repeats; null if none. */
  abandonedBefore({ id, step, text }: PromptMessage): string | null {
    const abandoned = this.#abandoned;
    if (abandoned === null || abandoned.id === id || abandoned.step !== step) return null;
    return abandoned.digest === digestOf(text) ? abandoned.id : null;
  }

  get #abandonedPath(): string {
    return join(this.#startFolder, 'left');
  }

  get #abandoned(): AbandonedPrompt | null {
    return readRecord(this.#abandonedPath, isAbandonedPrompt);
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
