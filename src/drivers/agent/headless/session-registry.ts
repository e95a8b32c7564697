// What a run knows of the sessions of its agents, each in `sessions/ID.json` in its folder. A run has one ledger, which
// remembers what it has read and written.
//
// Some programs tell what a session has cost in all. What a turn has cost is then the difference to what its session
// had cost before, and a fork begins with what its parent had cost. Totals only grow.
//
// A session whose id we chose may never come into being: its program dies before. It is there when it has been seen in
// what the program put out. Until then to go on with it is to begin it; and under another id where that has been tried
// before, for it may be there after all.

import type { RunFiles } from '../../../engine/ports.ts';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Usage } from '../../../ir/usage.ts';
import { fileName } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import { readJsonFile, writeJsonFileIfWanted } from '../../../sys/json-file.ts';

export interface SessionRecord {
  readonly state: 'chosen' | 'tried' | 'seen';
  /** The session that it is a fork of. */
  readonly parent: string | null;
  /** What it has cost so far; null where that is not known. */
  readonly total: Usage | null;
}

export class SessionRegistry {
  readonly #folder: string;
  /** As they are on the disk. */
  readonly #known = new Map<string, SessionRecord>();

  constructor(files: Pick<RunFiles, 'localPath'>) {
    this.#folder = files.localPath('sessions');
  }

  /** Null where nothing is known of it. */
  read(id: string): SessionRecord | null {
    const known = this.#known.get(id) ?? (readJsonFile(this.#path(id)) as SessionRecord | null);
    if (known !== null) this.#known.set(id, known);
    return known;
  }

  /** Its id has been chosen; nothing has been started. */
  choose(id: string, parent: string | null): void {
    if (this.read(id) === null) this.#write(id, { state: 'chosen', parent, total: null });
  }

  /** A program is about to begin it. */
  trying(id: string, parent: string | null): void {
    this.#write(id, { state: 'tried', parent, total: null });
  }

  saw(id: string): void {
    const known = this.read(id);
    if (known?.state !== 'seen') this.#write(id, { parent: null, total: null, ...known, state: 'seen' });
  }

  /** One that is found again tells an earlier total. */
  told(id: string, total: Usage): void {
    const known = this.read(id);
    const before = known?.total ?? { usd: null, tokens: null };
    const latest = { usd: later(before.usd, total.usd), tokens: later(before.tokens, total.tokens) };
    if (latest.usd === before.usd && latest.tokens === before.tokens) return;
    this.#write(id, { state: 'seen', parent: null, ...known, total: latest });
  }

  /** Where what was said in it is kept (transcript.ts). */
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
