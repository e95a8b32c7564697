// Where the page is served, for programs of the same user that open it, such as `meow top`, and for messages that link to it. A private file outside of all projects
// (0600), because the address has a token. It is removed when the server ends, and does not count once its process is gone.

import { rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import { fields, isNumber, isText, listOf, nullable } from '../base/shape.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { makeFolder, readJsonFile, replacePrivate } from '../sys/files.ts';
import { findProcess } from '../sys/process.ts';
import { findProject, sharedFolder } from './project.ts';
import { listedFolders } from './projects.ts';

/** With the token in its fragment. `given`: folders of the only projects that it shows. Returns what removes it. */
export function notePageAddress(url: string, given: readonly string[] = []): () => void {
  const only = given.length === 0 ? null : given.map((folder) => dirname(findProject(resolve(folder)).meow));
  // Without a home folder nobody else finds the page, which is no reason not to serve it.
  tolerate(UNUSABLE, undefined, () => {
    makeFolder(sharedFolder());
    replacePrivate(fileOf(), `${JSON.stringify({ url, pid: process.pid, only })}\n`);
  });
  return () => {
    if (readNote()?.pid === process.pid) tolerate(UNUSABLE, undefined, () => rmSync(fileOf(), { force: true }));
  };
}

/** The address of a page that is served now, as it was printed; null if there is none. `path`: of the page to open. */
export function pageAddress(path: string): string | null {
  const note = liveNote();
  return note === null ? null : `${serverOf(note)}${path}#${note.url.split('#', 2)[1] ?? ''}`;
}

/**
 * The address of a page that is served now, without its token: that of the run. Without a run, or if several projects have that
 * name, its first page. Null if nothing serves the project. `folder`: of the project.
 */
export function pageLink(folder: string, run: string | null): string | null {
  const note = liveNote();
  if (note === null || note.only?.includes(folder) === false) return null;
  const name = basename(folder);
  const shown = note.only ?? [...listedFolders()];
  const isUnique = shown.every((each) => each === folder || basename(each) !== name);
  if (run === null || name === '' || !isUnique) return `${serverOf(note)}/`;
  return `${serverOf(note)}${runPath(name, run)}`;
}

/** The page of a run. `project`: its name. */
export function runPath(project: string, run: string): string {
  return `/p/${encodeURIComponent(project)}/r/${encodeURIComponent(run)}/timeline`;
}

interface PageNote {
  readonly url: string;
  readonly pid: number;
  /** Folders of the only projects that it shows; null: of all. */
  readonly only: readonly string[] | null;
}

function serverOf({ url }: PageNote): string {
  return (url.split('#', 1)[0] ?? '').replace(/\/$/, '');
}

function liveNote(): PageNote | null {
  const note = readNote();
  return note === null || findProcess(note.pid) === null ? null : note;
}

const isPageNote = fields<PageNote>({ url: isText, pid: isNumber, only: nullable(listOf(isText)) });

function readNote(): PageNote | null {
  const note = tolerate(UNUSABLE, null, () => readJsonFile(fileOf()));
  return isPageNote(note) ? note : null;
}

function fileOf(): string {
  return join(sharedFolder(), 'page.json');
}
