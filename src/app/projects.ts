// The projects of this machine: a list in `~/.meow/projects`, one folder a line, for people who look at all their runs at once.
//
//   projects/1  A run adds its project to the list once, after it has begun. It neither waits for that, nor fails if the list
//               cannot be written. A marker in `~/.meow/noted` says that the project is in the list, so that the list is not read.
//   projects/2  A folder that is gone, or is another user's, is skipped. The list is never rewritten: the folder may be on a
//               disk that is not mounted.
//   projects/3  A project is named after its folder; the second of that name is `NAME~2`. They count in the order of
//               `projectsToShow`.

import { createHash } from 'node:crypto';
import { closeSync, existsSync, lstatSync, realpathSync, writeSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { makeFolder, openPrivate, readUntrustedFile, writePrivate } from '../sys/files.ts';
import { findProject, type Project } from './project.ts';

export interface NamedProject extends Project {
  readonly name: string;
}

export interface ShownProjects {
  readonly projects: readonly NamedProject[];
  /** What was left out and why; null if nothing was. */
  readonly remark: string | null;
}

/** The file whose changes mean that there may be new projects. */
export function projectListPath(): string {
  return join(findProject('/').shared, 'projects');
}

/** Those in the given folders; without any, that of the working directory, and all in the list. */
export function projectsToShow(given: readonly string[]): ShownProjects {
  const skipped: string[] = [];
  const found = new Map<string, Project>();
  const add = (project: Project): void => {
    const key = realFolder(project.meow);
    if (!found.has(key)) found.set(key, project);
  };
  for (const folder of given) add(projectIn(folder));
  if (given.length === 0) {
    const here = findProject();
    if (here.exists) add(here);
    for (const folder of listedFolders()) {
      const why = whyNot(folder);
      if (why === null) add(findProject(folder));
      else skipped.push(`${folder} ${why}`);
    }
  }
  return { projects: named([...found.values()]), remark: remarkAbout(skipped) };
}

function projectIn(folder: string): Project {
  const path = resolve(folder);
  const stats = tolerate(UNUSABLE, null, () => lstatSync(realFolder(path)));
  if (stats?.isDirectory() === true) return findProject(path);
  throw new UsageError(`${folder} is not a folder`, 'say which project: --project DIR');
}

/** Folders in the list; some may be gone. */
export function listedFolders(): ReadonlySet<string> {
  const text = readUntrustedFile(projectListPath(), LIST_BYTES_MAX)?.text ?? '';
  return new Set(text.split('\n').filter((line) => line.startsWith('/')));
}

/** More projects than anybody has; a longer list is not ours. */
const LIST_BYTES_MAX = 10_000_000;

/** Why a listed folder is skipped; null if it is a project of this user. */
function whyNot(folder: string): string | null {
  const stats = tolerate(UNUSABLE, null, () => lstatSync(join(folder, '.meow')));
  if (stats === null) return 'no longer exists';
  if (process.getuid !== undefined && stats.uid !== process.getuid()) return "is another user's";
  return stats.isDirectory() ? null : 'is no longer a project';
}

function realFolder(path: string): string {
  return tolerate(UNUSABLE, path, () => realpathSync(path));
}

function named(projects: readonly Project[]): readonly NamedProject[] {
  const counts = new Map<string, number>();
  return projects.map((project) => {
    const folder = basename(dirname(project.meow)) || '/';
    const count = (counts.get(folder) ?? 0) + 1;
    counts.set(folder, count);
    return { ...project, name: count === 1 ? folder : `${folder}~${count}` };
  });
}

const NAMED_MAX = 3;

function remarkAbout(skipped: readonly string[]): string | null {
  if (skipped.length === 0) return null;
  const more = skipped.length > NAMED_MAX ? `, and ${skipped.length - NAMED_MAX} more` : '';
  const what = skipped.length === 1 ? 'project is' : 'projects are';
  return `${skipped.length} ${what} left out: ${skipped.slice(0, NAMED_MAX).join(', ')}${more} (listed in ${projectListPath()})`;
}

/** Adds the project of a run to the list, unless it is there. `runs`: the folder that contains the project's runs. */
export function listProject(runs: string): void {
  const folder = resolve(runs, '../..');
  const list = projectListPath();
  const noted = join(dirname(list), 'noted');
  const marker = join(noted, `project-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`);
  // A line could not hold a folder with a line end in its name.
  if (folder.includes('\n') || (existsSync(marker) && existsSync(list))) return;
  // The run does not need it (projects/1).
  tolerate(UNUSABLE, undefined, () => {
    makeFolder(noted);
    if (!listedFolders().has(folder)) addLine(list, `${folder}\n`);
    writePrivate(marker, `${folder}\n`);
  });
}

function addLine(path: string, line: string): void {
  const file = openPrivate(path);
  try {
    writeSync(file, line);
  } finally {
    closeSync(file);
  }
}
