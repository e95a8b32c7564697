// From what the user wrote after `meow run`, `validate` or `graph` to a Program, whatever the language.

import { readdirSync } from 'node:fs';
import { basename, isAbsolute, join, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { didYouMean, nearest } from '../base/names.ts';
import type { AdapterCatalog } from '../languages/adapter-catalog.ts';
import { checkWorkflow, composeWorkflow, detectLanguage, type Surroundings } from '../languages/compose.ts';
import type { Config } from '../languages/config.ts';
import { STATE_IN_FILE } from '../languages/language.ts';
import type { Compiled, Given, Language, Location, Validated } from '../languages/language.ts';
import { LANGUAGES } from '../languages/registry.ts';
import { tolerate } from '../sys/errors.ts';
import type { Adapters } from './adapters.ts';
import { Archives } from './archives.ts';
import type { Project } from './project.ts';
import {
  hashOf,
  kindOf,
  NotText,
  notingReader,
  packageFolder,
  projectReader,
  readText,
  searchedFolders,
  shownPath,
} from './sources.ts';

export interface CompileRequest {
  readonly project: Project;
  /** `PATH[#WORKFLOW]`, or a bare name. */
  readonly reference: string;
  /** Null: by what the path is. */
  readonly language: string | null;
  readonly config: Config;
  readonly adapters: Adapters;
  /** Replaces the adapter that workflows name. */
  readonly adapter: string | null;
}

export interface CompiledWorkflow extends Compiled {
  /** Absolute. */
  readonly path: string;
  /** Hashes of all files that were compiled, by absolute path. */
  readonly sources: ReadonlyMap<string, string>;
}

/** `given`: null if nothing will run, and everything that is required counts as given. */
export function compileWorkflow(request: CompileRequest, given: Given | null): CompiledWorkflow {
  const sources = new Map<string, string>();
  const archives = new Archives();
  const around = surroundings(request, archives);
  const reader = notingReader(around.reader, (path, text) => void sources.set(path, hashOf(text)));
  return withWorkflow(
    request,
    (found) => {
      const compiled = composeWorkflow(found.language, found, { ...around, reader }, given);
      for (const [path, hash] of archives.hashes()) sources.set(path, hash);
      const program = compiled.program === null ? null : archives.attachTo(compiled.program);
      return { path: found.path, sources, ...compiled, program };
    },
    ({ path, diagnostic }) => ({ path, sources, program: null, fileVariables: [], diagnostics: [diagnostic] }),
  );
}

/** Every problem of a file, whichever part of it a run would use. */
export function validateWorkflow(request: CompileRequest): Validated {
  return withWorkflow(
    request,
    (found) => checkWorkflow(found.language, found, surroundings(request)),
    ({ diagnostic }) => ({ diagnostics: [diagnostic], notes: [] }),
  );
}

/** If a file is not text, that is its only problem. */
function withWorkflow<T>(
  { project, reference, language }: CompileRequest,
  use: (found: FoundWorkflow) => T,
  ifNotText: (error: NotText) => T,
): T {
  try {
    const found = findWorkflow(project, reference, language);
    if (found.language.hasSections || found.workflow === null) return use(found);
    throw new UsageError(`${found.file} is one workflow, without parts`, `leave out #${found.workflow}`);
  } catch (error) {
    if (error instanceof NotText) return ifNotText(error);
    throw error;
  }
}

export function surroundings(
  { project, config, adapters, adapter }: Pick<CompileRequest, 'project' | 'config' | 'adapters' | 'adapter'>,
  archives: Archives = new Archives(),
): Surroundings {
  const catalog: AdapterCatalog = {
    forced: adapter,
    fallback: () => config.defaultAdapter ?? adapters.default(),
    meant: (name) => adapters.meant(name),
    named: (name) => adapters.named(name),
    refusal: (name) => adapters.refusal(name),
  };
  return { reader: projectReader(project, archives), config, adapters: catalog };
}

export interface FoundWorkflow extends Location {
  readonly language: Language;
}

/** What a reference names, `PATH[#WORKFLOW]` or a bare name, and in which language it is. */
export function findWorkflow(project: Project, reference: string, language: string | null): FoundWorkflow {
  const located = locate(project, reference);
  const file = shownPath(project, located.path);
  const found = language === null ? languageOf(project, located.path, file) : languageNamed(language);
  if (located.state !== undefined && found.name !== 'raymond')
    throw new UsageError(`${file} has no states`, `leave out /${located.state}`);
  return { file, ...located, language: found };
}

function locate(project: Project, reference: string): Omit<Location, 'file'> {
  if (reference === '') {
    throw new UsageError('"" names no workflow', 'name a file, a folder or a workflow; this folder is named .');
  }
  const whole = resolve(project.cwd, reference);
  if (exists(whole)) return { path: whole, workflow: null };
  const [, container = '', state] = STATE_IN_FILE.exec(reference) ?? [];
  if (state !== undefined && exists(resolve(project.cwd, container)))
    return { path: resolve(project.cwd, container), workflow: null, state };
  const [, name = reference, workflow = null] = /^(.*)#([^#]*)$/s.exec(reference) ?? [];
  if (name === '') throw new UsageError(`${JSON.stringify(reference)} names no file`, 'write PATH#WORKFLOW');
  if (workflow === '')
    throw new UsageError(`${JSON.stringify(reference)} names no workflow after #`, `write ${name}, or ${name}#main`);
  const path = resolve(project.cwd, name);
  if (exists(path)) return { path, workflow };
  if (isAbsolute(name) || /^\.{1,2}\//.test(name)) {
    throw new UsageError(`there is no file ${name}`, 'check the path; an example to begin with: meow init');
  }
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

function missingWorkflow(project: Project, name: string): UsageError {
  if (name.includes('/') || /\.(toml|ya?ml|md)$/.test(name)) {
    const folder = resolve(project.cwd, name, '..');
    const names = namesIn(folder);
    if (names.includes(basename(name)))
      return new UsageError(`${name} is a link that leads nowhere`, `see where: ls -l ${name}`);
    const guess = nearest(basename(name), names);
    const meant = guess === null ? '' : `did you mean ${shownPath(project, join(folder, guess))}? `;
    return new UsageError(`there is no file ${name}`, `${meant}A bare name is also searched in .meow/templates/`);
  }
  if (exists(join(project.runs, name, 'journal.jsonl'))) {
    return new UsageError(`${name} is a run, and meow run starts a new one`, `resume it: meow resume ${name}`);
  }
  const folders = searchedFolders(project);
  const known = folders.flatMap(namesIn).flatMap((file) => /^(.*?)(?:\.meow)?\.toml$/s.exec(file)?.[1] ?? []);
  const searched = folders.map((folder) => `${shownPath(project, folder)}/`).join(', ');
  return new UsageError(`there is no workflow ${name}`, `${didYouMean(name, known)}Searched here, in ${searched}`);
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
    throw new UsageError(`${file} is the state of a run`, `resume it: meow run --workflow ${file}`);
  }
  const hint = /\.ya?ml$/i.test(path)
    ? 'at its top level a Conductor workflow has workflow_id, a Raymond workflow states; or say --language conductor'
    : 'name it NAME.meow.toml, or say --language meow';
  throw new UsageError(`cannot tell the language of ${file}`, hint);
}

function namesIn(folder: string): readonly string[] {
  return tolerate('any', [], () => readdirSync(folder));
}

function exists(path: string): boolean {
  return kindOf(path) !== null;
}
