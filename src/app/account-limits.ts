// Usage limits that the runs of a user share: what one has met keeps the others from starting turns with the same account.
//
//   account/1  Limits stand in the journals of the runs that have met them. `~/.meow/limits` repeats them, a file for each account,
//              so that nobody need read all journals before each turn.
//   account/2  Those who wait start at different times after the reset: the first at once, the others at even distances, however
//              many they become.
//   account/3  Nothing is locked: each line is appended whole, and a line says by its place how many wait before it.

import { createHash, randomUUID } from 'node:crypto';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

import type { JsonMap } from '../base/json.ts';
import { fields, isNumber, isText, nullable, optional } from '../base/shape.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { appendLine, makeFolder, readLines } from '../sys/files.ts';

export interface SharedLimit {
  /** In milliseconds since 1970. */
  readonly until: number;
  /** A run. */
  readonly reportedBy: string;
}

/** The adapter, and a fingerprint of the credential by which its program is known to the provider. */
export function accountOf(adapter: string, environment: Readonly<Record<string, string>>): string {
  const prefix = adapter.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
  const isOfProgram = new RegExp(`^(?:HOME|${prefix}_(?:HOME|CONFIG_DIR))$|(?:API_KEY|AUTH_TOKEN|OAUTH_TOKEN)$`, 'u');
  const values = Object.entries(environment)
    .filter(([name, value]) => isOfProgram.test(name) && value !== '')
    .map(([name, value]) => `${name}=${value}`)
    .toSorted();
  const print = createHash('sha256').update(values.join('\n')).digest('hex').slice(0, 8);
  return `${adapter} ${print}`;
}

/** A longer file is one of limits that are over. */
const BYTES_MAX = 200_000;

export class AccountLimits {
  readonly #folder: string;
  readonly #spreadMs: number;

  /** `shared`: `~/.meow`. */
  constructor(shared: string, spreadMs: number) {
    this.#folder = join(shared, 'limits');
    this.#spreadMs = spreadMs;
  }

  /** The limit that now applies; null if there is none. */
  of(account: string, now: number): SharedLimit | null {
    return this.#read(account).reduce<SharedLimit | null>((longest, { until, by }) => {
      if (by === null || until <= now || until <= (longest?.until ?? 0)) return longest;
      return { until, reportedBy: by };
    }, null);
  }

  report(account: string, { until, reportedBy }: SharedLimit, now: number): void {
    const lines = this.#read(account);
    const path = this.#path(account);
    const isLong = (tolerate(UNUSABLE, null, () => statSync(path))?.size ?? 0) > BYTES_MAX;
    if (isLong && lines.every((line) => line.until <= now)) tolerate(UNUSABLE, undefined, () => rmSync(path));
    this.#append(account, { account, until, reported_by: reportedBy });
  }

  /** When a turn that waits for the limit may start (account/2). */
  slot(account: string, until: number, now: number): number {
    const mark = randomUUID();
    this.#append(account, { until, waits: mark });
    const waiting = this.#read(account).filter((line) => line.mark !== null && line.until > now);
    const place = waiting.findIndex((line) => line.mark === mark);
    return until + Math.round(this.#spreadMs * evenPlace(Math.max(0, place)));
  }

  #append(account: string, line: JsonMap): void {
    // A run that cannot write there knows of its own limits only.
    tolerate(UNUSABLE, undefined, () => {
      makeFolder(this.#folder);
      appendLine(this.#path(account), line);
    });
  }

  #read(account: string): readonly LimitLine[] {
    const lines = tolerate(UNUSABLE, [], () => readLines(this.#path(account), isStoredLine));
    return lines.map(({ until, reported_by: by = null, waits: mark = null }) => ({ until, by, mark }));
  }

  #path(account: string): string {
    return join(this.#folder, `${createHash('sha256').update(account).digest('hex').slice(0, 16)}.jsonl`);
  }
}

interface StoredLine {
  readonly until: number;
  readonly reported_by?: string | null;
  readonly waits?: string | null;
}

const isStoredLine = fields<StoredLine>({
  until: isNumber,
  reported_by: optional(nullable(isText)),
  waits: optional(nullable(isText)),
});

interface LimitLine {
  readonly until: number;
  /** The run that reported it; null for one that waits. */
  readonly by: string | null;
  readonly mark: string | null;
}

/** 0, 1/2, 1/4, 3/4, 1/8 …: the first so many are always about evenly spaced. */
export function evenPlace(index: number): number {
  let [place, share] = [0, 0.5];
  for (let rest = index; rest > 0; rest = Math.floor(rest / 2)) {
    place += (rest % 2) * share;
    share /= 2;
  }
  return place;
}
