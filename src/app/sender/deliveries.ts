// What has been sent of a run, and what is due: `RUN/notified.jsonl`, a line for each attempt.
//
//   retry/1  A message counts as sent when its channel has accepted it, and is written down after that: it arrives at least once.
//   retry/2  After a failure it is tried again after 1, 2, 4 … 600 seconds, for 24 hours.

import { closeSync, writeSync } from 'node:fs';

import { fields, isNumber, isText, nullable, oneOf } from '../../base/shape.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { formatMoment, parseMoment } from '../../base/time.ts';
import { openPrivate, readFileEnd, readLines } from '../../sys/files.ts';
import type { Channel as NoticeChannel } from './channels.ts';

/** Of notifications, and that of traces. */
export type Channel = NoticeChannel | 'otlp';

export interface DeliveryLine {
  readonly id: string;
  readonly kind: string;
  readonly channel: string;
  readonly status: 'sent' | 'failed' | 'gave_up';
  readonly attempt: number;
  /** ISO 8601. */
  readonly at: string;
  readonly error: string | null;
}

const isLine = fields<DeliveryLine>({
  id: isText,
  kind: isText,
  channel: isText,
  status: oneOf('sent', 'failed', 'gave_up'),
  attempt: isNumber,
  at: isText,
  error: nullable(isText),
});

const RETRY_MAX_MS = 600_000;
export const GIVE_UP_MS = 86_400_000;

/** After so many failures. */
export function retryDelayMs(attempts: number): number {
  return Math.min(1_000 * 2 ** Math.min(attempts - 1, 20), RETRY_MAX_MS);
}

interface Delivery {
  isOver: boolean;
  attempts: number;
  firstAt: number;
  lastAt: number;
}

export class Deliveries {
  readonly #path: string;
  readonly #byMessage = new Map<string, Delivery>();
  /** The file ends with a line end. */
  #isWhole = false;

  constructor(path: string) {
    this.#path = path;
    for (const line of tolerate(UNUSABLE, [], () => readLines(path, isLine))) this.#note(line);
  }

  /** Those that were tried and are tried again. */
  get pending(): number {
    return [...this.#byMessage.values()].filter(({ isOver }) => !isOver).length;
  }

  hasBegun(id: string, channel: Channel): boolean {
    return this.#byMessage.has(`${id} ${channel}`);
  }

  /** When the next attempt is due; null if it was sent, or given up. */
  dueAt(id: string, channel: Channel, now: number): number | null {
    const delivery = this.#byMessage.get(`${id} ${channel}`);
    if (delivery === undefined) return now;
    if (delivery.isOver) return null;
    // A clock that was set back must not delay it.
    return Math.min(delivery.lastAt, now) + retryDelayMs(delivery.attempts);
  }

  /** `error`: null if it was accepted. */
  note(
    { id, kind }: { readonly id: string; readonly kind: string },
    channel: Channel,
    error: string | null,
    at: number,
  ): void {
    const before = this.#byMessage.get(`${id} ${channel}`);
    const isTooOld = error !== null && at - (before?.firstAt ?? at) >= GIVE_UP_MS;
    const line: DeliveryLine = {
      id,
      kind,
      channel,
      status: error === null ? 'sent' : isTooOld ? 'gave_up' : 'failed',
      attempt: (before?.attempts ?? 0) + 1,
      at: formatMoment(at),
      error,
    };
    this.#note(line);
    // The run may have been removed.
    tolerate(UNUSABLE, undefined, () => this.#append(`${JSON.stringify(line)}\n`));
  }

  #append(text: string): void {
    const file = openPrivate(this.#path);
    try {
      // A line that was cut off by a crash does not count.
      const isCut = !this.#isWhole && !['', '\n'].includes(readFileEnd(this.#path, 1));
      writeSync(file, isCut ? `\n${text}` : text);
      this.#isWhole = true;
    } finally {
      closeSync(file);
    }
  }

  #note({ id, channel, status, attempt, at }: DeliveryLine): void {
    const key = `${id} ${channel}`;
    const moment = parseMoment(at) ?? 0;
    const before = this.#byMessage.get(key);
    this.#byMessage.set(key, {
      isOver: status !== 'failed',
      attempts: attempt,
      firstAt: before?.firstAt ?? moment,
      lastAt: moment,
    });
  }
}
