// From what the user wrote after `meow run` to a workflow: which file, which workflow of it, in which language.

import { readdirSync } from 'node:fs';
import { basename, isAbsolute, join, resolve } from 'node:path';

import { nearest } from '../base/nearest.ts';
import { UsageError } from '../base/usage-error.ts';
import { detectLanguage } from '../languages/compose.ts';
import type { Language, Location } from '../languages/language.ts';
import { LANGUAGES } from '../languages/registry.ts';
import { isSystemError } from '../sys/errno.ts';
import type { Project } from './project.ts';
import { kindOf, packageFolder, projectReader, readText, searchedFolders, shownPath } from './sources.ts';

export interface FoundWorkflow extends Location {
  readonly language: Language;
}

/** What a reference names, `PATH[#WORKFLOW]` or a bare name, and in which language it is. */
export function findWorkflow(project: Project, reference: string, language: string | null): FoundWorkflow {
  const { path, workflow } = locate(project, reference);
  const file = shownPath(project, path);
  const named = language === null ? null : languageNamed(language);
  return { file, path, workflow, language: named ?? languageOf(project, path, file) };
}

/** The file that a reference names. */
function locate(project: Project, reference: string): { readonly path: string; readonly workflow: string | null } {
  if (reference === '') {
    throw new UsageError('"" names no workflow', 'name a file, a folder or a workflow; this folder is named .');
  }
  const whole = resolve(project.cwd, reference);
  if (exists(whole)) return { path: whole, workflow: null };
  const hash = reference.lastIndexOf('#');
  const name = hash === -1 ? reference : reference.slice(0, hash);
  const workflow = hash === -1 ? null : reference.slice(hash + 1);
  if (name === '') throw new UsageError(`${JSON.stringify(reference)} names no file`, 'write PATH#WORKFLOW');
  if (workflow === '')
    throw new UsageError(`${JSON.stringify(reference)} names no workflow after #`, `write ${name}, or ${name}#main`);
  const path = resolve(project.cwd, name);
  if (exists(path)) return { path, workflow };
  if (isAbsolute(name) || /^\.{1,2}\//.test(name)) throw missingFile(name);
  const candidates = [name, `${name}.meow.toml`, `${name}.toml`, `${name}.yaml`];
  const builtIn = name.startsWith('lib/') ? [packageFolder()] : [];
  for (const folder of [...searchedFolders(project), ...builtIn]) {
    for (const candidate of candidates) {
      const found = join(folder, candidate);
      // Folders and state files of runs are not workflows.
      if (exists(found) && !exists(join(folder, name, 'journal.jsonl'))) return { path: found, workflow };
    }
  }
  throw missingWorkflow(project, name);
}

function missingFile(name: string): UsageError {
  return new UsageError(`there is no file ${name}`, 'check the path; an example to begin with: meow init');
}

function missingWorkflow(project: Project, name: string): UsageError {
  if (name.includes('/') || /\.(toml|ya?ml|md)$/.test(name)) {
    const folder = resolve(project.cwd, name, '..');
    if (namesIn(folder).includes(basename(name)))
      return new UsageError(`${name} is a link that leads nowhere`, `see where: ls -l ${name}`);
    const guess = nearest(basename(name), namesIn(folder));
    const meant = guess === null ? '' : `did you mean ${shownPath(project, join(folder, guess))}? `;
    return new UsageError(`there is no file ${name}`, `${meant}A bare name is also searched in .meow/templates/`);
  }
  if (exists(join(project.runs, name, 'journal.jsonl'))) {
    return new UsageError(`${name} is a run, and meow run starts a new one`, `take it up again: meow resume ${name}`);
  }
  const known = searchedFolders(project)
    .flatMap(namesIn)
    .filter((file) => file.endsWith('.toml'))
    .map((file) => file.replace(/(\.meow)?\.toml$/, ''));
  const guess = nearest(name, known);
  const searched = searchedFolders(project).map((folder) => `${shownPath(project, folder)}/`);
  return new UsageError(
    `there is no workflow ${name}`,
    `${guess === null ? '' : `did you mean ${guess}? `}Searched here, in ${searched.join(', ')}`,
  );
}

function languageNamed(name: string): Language {
  const known = LANGUAGES.find((language) => language.name === name);
  if (known !== undefined) return known;
  const names = LANGUAGES.map((language) => language.name).join(', ');
  throw new UsageError(`there is no language ${JSON.stringify(name)}`, `--language is one of ${names}`);
}

function languageOf(project: Project, path: string, file: string): Language {
  const language = detectLanguage(projectReader(project), path, 'maybe');
  if (language !== null) return language;
  if (/\.ya?ml$/i.test(path) && /^id: \S+\ntemplate:/m.test(readText(path, file))) {
    throw new UsageError(`${file} is the state of a run`, `take it up again: meow run --workflow ${file}`);
  }
  throw new UsageError(`cannot tell the language of ${file}`, 'name it NAME.meow.toml, or say --language meow');
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isSystemError(error)) return [];
    throw error;
  }
}

function exists(path: string): boolean {
  return kindOf(path) !== null;
}
