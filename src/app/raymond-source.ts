// Raymond workflows as their language is handed them: a folder of prompts and scripts, or one YAML file; and the other
// workflows that paths in them lead to, which must be in the project.

import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { isUtf8 } from 'node:buffer';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';

import { UsageError } from '../base/usage-error.ts';
import type { FindWorkflow, Found, RaymondFile, RaymondSource } from '../languages/raymond/source.ts';
import { isSystemError } from '../stores/usage-errors.ts';
import type { Project } from './project.ts';
import { readText, shownPath } from './workflow.ts';

/** `path`: absolute; a folder, one of its prompts, or a YAML file. */
export function readRaymond(project: Project, path: string): RaymondSource {
  if (statSync(path).isDirectory()) return readFolder(project, path, null);
  if (isYaml(path)) {
    const name = shownPath(project, path);
    return { kind: 'single', key: realpathSync(path), name, text: readText(path, name), start: null };
  }
  return readFolder(project, dirname(path), basename(path));
}

/** `first`: the workflow that is to run. `blocks`: compiles a workflow of another language; null where it cannot. */
export function findOthers(
  project: Project,
  first: RaymondSource,
  blocks: (path: string) => Found | null,
): FindWorkflow {
  const root = rootFor(project, folderOf(first));
  return (from, wanted) => {
    const path = [wanted, `${wanted}.md`].map((each) => resolve(folderOf(from), each)).find(exists);
    if (path === undefined) return null;
    if (!isWithin(root, realpathSync(path))) {
      const message = `${wanted} is outside of the project`;
      return { kind: 'refused', message, hint: 'Copy it into the project, or run meow in a folder above both.' };
    }
    if (statSync(path).isDirectory() || extname(path) === '.md' || isStates(path)) {
      return { kind: 'raymond', source: readRaymond(project, path) };
    }
    return blocks(path);
  };
}

/** The project; for workflows that are kept elsewhere, the folder that they are kept in. */
function rootFor({ cwd, meow, exists: hasFolder }: Project, first: string): string {
  const project = realpathSync(hasFolder ? dirname(meow) : cwd);
  return isWithin(project, first) ? project : dirname(first);
}

function folderOf({ kind, key }: RaymondSource): string {
  return kind === 'folder' ? key : dirname(key);
}

function isWithin(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return inside !== '..' && !inside.startsWith('../');
}

function readFolder(project: Project, folder: string, start: string | null): RaymondSource {
  const real = realpathSync(folder);
  const files = readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .filter(isFile)
    .map((path): RaymondFile => {
      const stats = statSync(path);
      const isExecutable = (stats.mode & 0o111) !== 0;
      return {
        name: basename(path),
        file: shownPath(project, path),
        text: textOf(project, path, stats, isExecutable),
        isExecutable,
        path,
        leadsOut: !isWithin(real, realpathSync(path)),
      };
    });
  return { kind: 'folder', key: real, name: shownPath(project, folder), files, start };
}

/** What is larger is no prompt that an agent would take. */
const TEXT_BYTES_MAX = 10_000_000;

/** Null where it is none. What can be no part of a workflow is not looked at: it may be large, or nobody's business. */
function textOf(project: Project, path: string, { size }: Stats, isExecutable: boolean): string | null {
  if ((!isExecutable && !/\.(?:md|sh|yaml)$/i.test(path)) || size > TEXT_BYTES_MAX) return null;
  const bytes = bytesOf(project, path);
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString('utf8') : null;
}

function bytesOf(project: Project, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const file = shownPath(project, path);
    throw new UsageError(`cannot read ${file} (${error.code ?? ''})`, `make it readable: chmod u+r ${file}`);
  }
}

function isYaml(path: string): boolean {
  return /\.ya?ml$/i.test(path);
}

/** One file with all its states. */
function isStates(path: string): boolean {
  return isYaml(path) && /^states\s*:/m.test(readFileSync(path, 'utf8'));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function exists(path: string): boolean {
  return !path.includes('\0') && statSync(path, { throwIfNoEntry: false }) !== undefined;
}
