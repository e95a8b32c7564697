// Where the page is served, for programs of the same user that open it: `meow top` does. A private file outside of all projects
// (0600), because the address has a token. It is removed when the server ends, and does not count once its process is gone.

import { rmSync } from 'node:fs';
import { join } from 'node:path';

import { isJsonMap, type Json } from '../base/json.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { makeFolder, readJsonFile, replacePrivate } from '../sys/files.ts';
import { findProcess } from '../sys/process.ts';
import { sharedFolder } from './project.ts';

/** With the token in its fragment. Returns what removes it. */
export function notePageAddress(url: string): () => void {
  // Without a home folder nobody else finds the page, which is no reason not to serve it.
  tolerate(UNUSABLE, undefined, () => {
    makeFolder(sharedFolder());
    replacePrivate(fileOf(), `${JSON.stringify({ url, pid: process.pid })}\n`);
  });
  return () => {
    if (readNote()?.pid === process.pid) tolerate(UNUSABLE, undefined, () => rmSync(fileOf(), { force: true }));
  };
}

/** The address of a page that is served now, as it was printed; null if there is none. `path`: of the page to open. */
export function pageAddress(path: string): string | null {
  const note = readNote();
  if (note === null || findProcess(note.pid) === null) return null;
  const [server = '', fragment = ''] = note.url.split('#', 2);
  return `${server.replace(/\/$/, '')}${path}#${fragment}`;
}

function readNote(): { readonly url: string; readonly pid: number } | null {
  const note = tolerate(UNUSABLE, null, () => readJsonFile(fileOf()) as Json);
  if (note === null || !isJsonMap(note)) return null;
  const { url, pid } = note;
  return typeof url === 'string' && typeof pid === 'number' ? { url, pid } : null;
}

function fileOf(): string {
  return join(sharedFolder(), 'page.json');
}
