// The workflows that a project offers to people who look for one: the files in `.meow/templates/` and `.meow/workflows/`, and
// the workflow files in the project's folder. Each with the variables that a run needs, or with the places of its mistakes.

import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { type Diagnostic, hasErrors } from '../base/source.ts';
import type { Program } from '../ir/program.ts';
import { type ValueTemplate, writtenText } from '../ir/text.ts';
import { detectLanguage, symbolsOf } from '../languages/compose.ts';
import type { Compiled, Language } from '../languages/language.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { Adapters } from './adapters.ts';
import { type CompileRequest, compileWorkflow, findWorkflow, surroundings, validateWorkflow } from './compile.ts';
import { InvalidWorkflow } from './errors.ts';
import type { Project } from './project.ts';
import { projectReader, readSettings, shownPath } from './sources.ts';

export interface ListedWorkflow {
  /** Relative to the project's folder, as `meow run` takes it. */
  readonly path: string;
  /** Of a file with several workflows; null if it has only one. */
  readonly workflow: string | null;
  /** Null if it cannot be told. */
  readonly language: string | null;
  readonly description: string | null;
  readonly variables: readonly ListedVariable[];
  /** It is valid unless one of these is an error. */
  readonly diagnostics: readonly Diagnostic[];
  /** Why the file cannot be read at all; null if it can. */
  readonly problem: { readonly message: string; readonly hint: string | null } | null;
}

export interface ListedVariable {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  /** Null if it has none. */
  readonly fallback: Json;
  readonly description: string | null;
}

export function isValid({ diagnostics, problem }: Pick<ListedWorkflow, 'diagnostics' | 'problem'>): boolean {
  return problem === null && !hasErrors(diagnostics);
}

/** `project`: paths are relative to its folder, whatever its working directory. */
export function listWorkflows(project: Project): readonly ListedWorkflow[] {
  const inFolder = atItsFolder(project);
  const compiling = {
    project: inFolder,
    config: readSettings(inFolder).config,
    adapters: new Adapters(inFolder),
    language: null,
    adapter: null,
  };
  return candidatesOf(inFolder).flatMap((path) => listedIn(compiling, path));
}

/** As if a command were called in the folder of the project. */
export function atItsFolder<P extends Project>(project: P): P {
  return { ...project, cwd: dirname(project.meow) };
}

/** The graph as written. Throws a UsageError if it does not compile. */
export function programOf(project: Project, path: string, workflow: string | null): Program {
  const inFolder = atItsFolder(project);
  const { config } = readSettings(inFolder);
  const reference = referenceTo(path, workflow);
  const around = { project: inFolder, config, adapters: new Adapters(inFolder), language: null, adapter: null };
  const { program, diagnostics } = compileWorkflow({ ...around, reference }, null);
  if (program !== null && !hasErrors(diagnostics)) return program;
  throw new UsageError(`${reference} has mistakes`, `meow validate ${path} names them`);
}

export function referenceTo(path: string, workflow: string | null): string {
  // A name that begins with a dash would be a flag.
  const named = path.startsWith('-') ? `./${path}` : path;
  return workflow === null ? named : `${named}#${workflow}`;
}

/** More files than anybody looks through. */
const FILES_MAX = 500;

function candidatesOf({ cwd, meow }: Project): readonly string[] {
  const reader = projectReader({ cwd, meow, exists: true, runs: '', shared: '' });
  const isWorkflow = (path: string): boolean => {
    const name = basename(path);
    if (name.startsWith('.') || /\.(?:sim|test)\.toml$/i.test(name)) return false;
    const isFolder = reader.kindOf(path) === 'folder';
    if (!isFolder && !/\.(?:toml|ya?ml|zip)$/i.test(name)) return false;
    if (/\.toml$/i.test(name)) return dirname(path) !== cwd || /\.meow\.toml$/i.test(name);
    try {
      return detectLanguage(reader, path, 'yes') !== null;
    } catch (error) {
      // It is not text, or cannot be read: not a workflow that anybody would miss.
      if (error instanceof UsageError || error instanceof InvalidWorkflow) return false;
      throw error;
    }
  };
  const inFolder = (folder: string): readonly string[] =>
    tolerate(UNUSABLE, [], () => readdirSync(folder).toSorted())
      .map((name) => join(folder, name))
      .filter((path) => isWorkflow(path));
  const runs = join(meow, 'workflows');
  const found = [
    ...inFolder(cwd),
    ...inFolder(runs).filter((path) => /\.toml$/i.test(path)),
    ...inFolder(join(meow, 'templates')),
  ];
  return found.slice(0, FILES_MAX).map((path) => shownPath({ cwd }, path));
}

type Compiling = Omit<CompileRequest, 'reference'>;

function listedIn(compiling: Compiling, path: string): readonly ListedWorkflow[] {
  const none = {
    path,
    workflow: null,
    language: null,
    description: null,
    variables: [],
    diagnostics: [],
    problem: null,
  };
  try {
    const { language } = findWorkflow(compiling.project, referenceTo(path, null), null);
    const { diagnostics } = validateWorkflow({ ...compiling, reference: referenceTo(path, null) });
    if (hasErrors(diagnostics)) return [{ ...none, language: language.name, diagnostics }];
    const names = language.hasSections ? workflowsIn(compiling, path, language) : [null];
    return names.flatMap((name) => {
      const workflow = names.length === 1 && (name === null || name === 'main') ? null : name;
      const compiled = compileWorkflow({ ...compiling, reference: referenceTo(path, workflow) }, null);
      if (compiled.diagnostics.some(({ code }) => code === 'internal-workflow')) return [];
      const variables = variablesOf(compiled);
      return [{ ...none, workflow, language: language.name, variables, diagnostics: compiled.diagnostics }];
    });
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof InvalidWorkflow)) throw error;
    return [{ ...none, problem: { message: error.message, hint: error.hint } }];
  }
}

function workflowsIn(compiling: Compiling, path: string, language: Language): readonly (string | null)[] {
  const location = findWorkflow(compiling.project, referenceTo(path, null), null);
  const symbols = symbolsOf(language, location, surroundings(compiling), []);
  const names = (symbols?.definitions ?? [])
    .filter(({ kind, file, parent }) => kind === 'workflow' && parent === null && file === location.file)
    .map(({ name }) => name);
  return names.length === 0 ? [null] : names;
}

function variablesOf({ program, fileVariables }: Compiled): readonly ListedVariable[] {
  const parameters = program?.blocks[program.entry]?.parameters ?? [];
  return parameters.map(({ name, type, required, fallback, description }) => ({
    name,
    type: fileVariables.includes(name) ? 'file' : type,
    required: required && fallback === null,
    fallback: fallback === null ? null : writtenValue(fallback),
    description,
  }));
}

/** With its placeholders as an author writes them. */
function writtenValue(template: ValueTemplate): Json {
  switch (template.kind) {
    case 'literal':
      return template.value;
    case 'text':
      return writtenText(template.text);
    case 'list':
      return template.items.map(writtenValue);
    case 'map':
      return Object.fromEntries(Object.entries(template.entries).map(([key, item]) => [key, writtenValue(item)]));
  }
}
