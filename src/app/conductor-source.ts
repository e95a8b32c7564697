// What a Conductor workflow leads to outside of its own file: prompts, which have a name and are searched for, and commands
// that the project has for the validators of common names.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { isJsonMap } from '../base/json.ts';
import type { Json } from '../base/json.ts';
import { isErrno } from '../stores/usage-errors.ts';
import type { Project } from './project.ts';
import { readText, shownPath } from './workflow.ts';

export interface FoundPrompt {
  /** As messages name it. */
  readonly path: string;
  readonly text: string;
}

/** By `id.vN`, or by a path that begins with a dot or a slash. Null where there is none. */
export function findPrompt(project: Project, workflow: string, id: string): FoundPrompt | null {
  for (const path of candidates(project, workflow, id)) {
    if (!existsSync(path)) continue;
    const file = shownPath(project, path);
    return { path: file, text: readText(path, file) };
  }
  return null;
}

function candidates(project: Project, workflow: string, id: string): readonly string[] {
  const folder = dirname(workflow);
  if (/^\.{0,2}\//.test(id)) return [resolve(folder, id)];
  const names = [`${id}.md`, id.replace(/\.(v\d+)$/, '/$1.md')];
  const folders = [join(folder, 'prompts'), join(project.meow, 'prompts'), join(project.shared, 'prompts'), BUILT_IN];
  return folders.flatMap((place) => names.map((name) => join(place, name)));
}

const BUILT_IN = join(import.meta.dirname, '..', 'lib', 'prompts');

export interface FoundCommand {
  readonly command: string;
  /** For people: where it was found. */
  readonly from: string;
}

/** What the project has for `tests`, `lint` or `typecheck`; null where it has nothing. */
export function findValidator(project: Project, id: string): FoundCommand | null {
  const names = NAMES[id];
  if (names === undefined) return null;
  return inPackage(project.cwd, names) ?? inMakefile(project.cwd, names) ?? inPyproject(project.cwd, id);
}

const NAMES: Readonly<Record<string, readonly string[]>> = {
  tests: ['test', 'tests'],
  lint: ['lint'],
  typecheck: ['typecheck', 'type-check', 'types'],
};

function inPackage(folder: string, names: readonly string[]): FoundCommand | null {
  const text = textOf(join(folder, 'package.json'));
  const scripts = text === null ? undefined : scriptsIn(text);
  const name = names.find((script) => typeof scripts?.[script] === 'string');
  return name === undefined ? null : { command: `npm run --silent ${name}`, from: `package.json, script ${name}` };
}

function scriptsIn(text: string): Readonly<Record<string, Json>> | undefined {
  try {
    const parsed = JSON.parse(text) as Json;
    const scripts = isJsonMap(parsed) ? parsed['scripts'] : undefined;
    return isJsonMap(scripts) ? scripts : undefined;
  } catch (error) {
    // One that npm could not read either has no scripts.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function inMakefile(folder: string, names: readonly string[]): FoundCommand | null {
  for (const file of ['GNUmakefile', 'makefile', 'Makefile']) {
    const text = textOf(join(folder, file));
    const name = text === null ? undefined : names.find((target) => new RegExp(`^${target}\\s*:(?!=)`, 'm').test(text));
    if (name !== undefined) return { command: `make ${name}`, from: `${file}, target ${name}` };
  }
  return null;
}

function inPyproject(folder: string, id: string): FoundCommand | null {
  const text = textOf(join(folder, 'pyproject.toml'));
  const tool = text === null ? undefined : PYTHON[id]?.find(({ section }) => text.includes(`[tool.${section}`));
  return tool === undefined ? null : { command: tool.command, from: `pyproject.toml, [tool.${tool.section}]` };
}

const PYTHON: Readonly<Record<string, readonly { readonly section: string; readonly command: string }[]>> = {
  tests: [{ section: 'pytest', command: 'python3 -m pytest -q' }],
  lint: [
    { section: 'ruff', command: 'ruff check .' },
    { section: 'flake8', command: 'python3 -m flake8' },
  ],
  typecheck: [
    { section: 'mypy', command: 'python3 -m mypy .' },
    { section: 'pyright', command: 'pyright' },
  ],
};

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EISDIR')) return null;
    throw error;
  }
}
