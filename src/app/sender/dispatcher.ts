// Sends messages through the channels of a configuration: each when it is due, and again until it was accepted.

import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { UsageError } from '../../base/errors.ts';
import { formatMoment } from '../../base/time.ts';
import type { NotifyConfig } from '../../languages/notify-config.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import type { Notice } from '../../view/notices.ts';
import { ownEnvironment, type Project } from '../project.ts';
import { servedEnvironment } from '../serve/environment-file.ts';
import { readSettings } from '../sources.ts';
import { type Channel, channelsOf, deliver } from './channels.ts';
import { Deliveries, GIVE_UP_MS } from './deliveries.ts';
import { type Message, messageId } from './message.ts';

export interface NoticeFacts extends Pick<Notice, 'kind' | 'since' | 'overAt'> {
  /** Unique among all messages, and the same whenever it is computed. */
  readonly key: string;
  compose(): Omit<Message, 'id' | 'at' | 'repeat'>;
}

/** Messages of one dispatcher that are on their way at once. */
const AT_ONCE = 8;
const BUSY_MS = 1_000;
/** Ends of attempts wake it; this is for a clock that jumps. */
const IN_FLIGHT_LOOK_MS = 60_000;

export class Dispatcher {
  readonly #deliveries: Deliveries;
  readonly #wake: () => void;
  readonly #sending = new Set<string>();
  #config: NotifyConfig | null = null;
  #channels: readonly Channel[] = [];
  #cwd = '/';
  #stamp = '';

  /** `wake` is called when an attempt has ended. */
  constructor(path: string, wake: () => void) {
    this.#deliveries = new Deliveries(path);
    this.#wake = wake;
  }

  /** Reads the configuration, which may have changed. False if it has no channel. */
  prepare(project: Project): boolean {
    const paths = [project.shared, project.meow].map((folder) => join(folder, 'config.toml'));
    const stamp = paths.map((path) => tolerate(UNUSABLE, null, () => statSync(path))?.mtimeMs ?? 0).join(' ');
    if (this.#config === null || stamp !== this.#stamp) this.#config = readSettings(project).config.notify;
    this.#stamp = stamp;
    this.#cwd = dirname(project.meow);
    this.#channels = channelsOf(this.#config);
    return this.#channels.length > 0;
  }

  /** Starts what is due of a notice. Returns when the next is due; null if nothing is left. */
  send(notice: NoticeFacts, now: number): number | null {
    if (this.#config === null || !this.#config.on.includes(notice.kind)) return null;
    const { afterMs, repeatMs } = this.#config;
    const { since, overAt } = notice;
    const firstAt = since + afterMs;
    const wakes: number[] = [];
    const waitedMs = (overAt ?? now) - firstAt;
    const repeats = repeatMs === null || waitedMs < 0 ? 0 : Math.floor(waitedMs / repeatMs);
    // Of repetitions that were missed, only the last is sent.
    for (const repeat of repeats === 0 ? [0] : [0, repeats]) {
      const id = messageId(notice.key, String(repeat));
      const dueAt = firstAt + repeat * (repeatMs ?? 0);
      const isUnwanted = now - dueAt > GIVE_UP_MS || (overAt !== null && (repeat > 0 || overAt < dueAt));
      for (const channel of this.#channels) {
        const hasBegun = this.#deliveries.hasBegun(id, channel);
        if (isUnwanted && !hasBegun) continue;
        const at = this.#deliveries.dueAt(id, channel, now);
        if (at === null) continue;
        if (this.#sending.has(`${id} ${channel}`)) wakes.push(now + IN_FLIGHT_LOOK_MS);
        else if (!hasBegun && dueAt > now) wakes.push(dueAt);
        else if (at > now) wakes.push(at);
        else if (this.#sending.size >= AT_ONCE) wakes.push(now + BUSY_MS);
        else {
          wakes.push(now + IN_FLIGHT_LOOK_MS);
          const message = { id, ...notice.compose(), at: formatMoment(now), repeat };
          void this.#deliver(channel, message, this.#config);
        }
      }
    }
    if (repeatMs !== null && overAt === null) wakes.push(firstAt + (repeats + 1) * repeatMs);
    return wakes.length === 0 ? null : Math.min(...wakes);
  }

  async #deliver(channel: Channel, message: Message, config: NotifyConfig): Promise<void> {
    const key = `${message.id} ${channel}`;
    this.#sending.add(key);
    const result = await deliver(channel, message, { config, cwd: this.#cwd, environment: environmentOfSender() });
    this.#deliveries.note(message, channel, result.ok ? null : result.error, Date.now());
    this.#sending.delete(key);
    this.#wake();
  }
}

/** Without `~/.meow/env` if that is refused: `meow serve` says why. */
export function environmentOfSender(): Readonly<Record<string, string>> {
  try {
    return servedEnvironment();
  } catch (error) {
    if (error instanceof UsageError) return ownEnvironment();
    throw error;
  }
}
