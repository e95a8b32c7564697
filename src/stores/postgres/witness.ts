// The witness: a copy of a run's acknowledged lines on the machine that drives it, as `journal.jsonl` in the run's folder. It is
// not made durable by itself: it testifies against a database that lost records, not against a disk.

import { closeSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { ABSENT, tolerateAsync } from '../../sys/errors.ts';
import { makeFolder, openPrivate, replacePrivate } from '../../sys/files.ts';
import { LINE_END } from '../journal-lines.ts';

export class Witness {
  readonly path: string;

  /** `folder`: of the run, on this machine. */
  constructor(folder: string) {
    this.path = join(folder, 'journal.jsonl');
  }

  append(lines: readonly Buffer[]): void {
    const file = openPrivate(this.path);
    try {
      writeFileSync(file, Buffer.concat(lines));
    } finally {
      closeSync(file);
    }
  }

  /** Whole lines; a line that was cut off counts as absent, since the database has it. */
  async lines(): Promise<readonly Buffer[]> {
    const bytes = await tolerateAsync(ABSENT, Buffer.alloc(0), readFile(this.path));
    const found: Buffer[] = [];
    for (let start = 0, end = bytes.indexOf(LINE_END); end !== -1; end = bytes.indexOf(LINE_END, start)) {
      found.push(bytes.subarray(start, end + 1));
      start = end + 1;
    }
    return found;
  }

  replace(lines: readonly Buffer[]): void {
    makeFolder(dirname(this.path));
    replacePrivate(this.path, Buffer.concat(lines));
  }

  remove(): Promise<void> {
    return rm(this.path, { force: true });
  }
}
