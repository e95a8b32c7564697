// The sessions of a run's agents, each in `sessions/ID.json` in its folder. A run has one registry, which caches what
// it has read and written.
//
// Some programs report the total cost of a session. The cost of a turn is then the difference, and a fork starts with
// the total of its parent. Totals only grow.
//
// A session whose id we chose may never exist, if its program dies early. It exists once the program's output mentions
// it. Until then, continuing it means starting it, under another id if that was tried before, since it may exist after
// all.

import type { RunFiles } from '../../../engine/ports.ts';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Usage } from '../../../ir/usage.ts';
import { fileName } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import { readJsonFile, writeJsonFileIfWanted } from '../../../sys/json-file.ts';

export interface SessionRecord {
  readonly state: 'chosen' | 'tried' | 'seen';
  /** The parent of a fork. */
  readonly parent: string | null;
  /** Total cost; null if unknown. */
  readonly total: Usage | null;
}

export class SessionRegistry {
  readonly #folder: string;
  /** As on disk. */
  readonly #known = new Map<string, SessionRecord>();

  constructor(files: Pick<RunFiles, 'localPath'>) {
    this.#folder = files.localPath('sessions');
  }

  /** Null if unknown. */
  read(id: string): SessionRecord | null {
    const known = this.#known.get(id) ?? (readJsonFile(this.#path(id)) as SessionRecord | null);
    if (known !== null) this.#known.set(id, known);
    return known;
  }

  /** The id was chosen; nothing was started. */
  choose(id: string, parent: string | null): void {
    if (this.read(id) === null) this.#write(id, { state: 'chosen', parent, total: null });
  }

  /** A program is about to start it. */
  trying(id: string, parent: string | null): void {
    this.#write(id, { state: 'tried', parent, total: null });
  }

  saw(id: string): void {
    const known = this.read(id);
    if (known?.state !== 'seen') this.#write(id, { parent: null, total: null, ...known, state: 'seen' });
  }

  /** A turn that is found again reports an earlier total. */
  told(id: string, total: Usage): void {
    const known = this.read(id);
    const before = known?.total ?? { usd: null, tokens: null };
    const latest = { usd: later(before.usd, total.usd), tokens: later(before.tokens, total.tokens) };
    if (latest.usd === before.usd && latest.tokens === before.tokens) return;
    this.#write(id, { state: 'seen', parent: null, ...known, total: latest });
  }

  /** File of its transcript (transcript.ts). */
  transcript(id: string): string {
    return join(this.#folder, `${fileName(id)}.jsonl`);
  }

  #write(id: string, record: SessionRecord): void {
    if (existsSync(dirname(this.#folder))) makeFolder(this.#folder);
    writeJsonFileIfWanted(this.#path(id), record);
    this.#known.set(id, record);
  }

  #path(id: string): string {
    return join(this.#folder, `${fileName(id)}.json`);
  }
}

function later(before: number | null, now: number | null): number | null {
  return before === null || now === null ? (now ?? before) : Math.max(before, now);
}
