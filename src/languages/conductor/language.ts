// Conductor as a language: a YAML file, its prompts, and the project's commands for common validators.

import { isJsonMap } from '../../base/json.ts';
import type { Json } from '../../base/json.ts';
import { headlessKnowledge } from '../adapter-catalog.ts';
import type { CompileContext, Language, Location, SourceReader } from '../language.ts';
import type { ConductorInput } from './compile.ts';
import { compileConductor } from './compile.ts';
import type { FindPrompt } from './prompts.ts';
import type { FindValidator } from './reading.ts';

interface ConductorSource extends Location {
  readonly text: string;
  /** Resolves a path of the workflow. */
  readonly locate: (path: string) => string;
  readonly prompts: FindPrompt;
  readonly validators: FindValidator;
}

export const conductor: Language<ConductorSource> = {
  name: 'conductor',
  hasSections: false,

  detect: (reader, path) =>
    /\.ya?ml$/i.test(path) && reader.kindOf(path) === 'file' && /^["']?workflow_id["']?\s*:/m.test(reader.text(path))
      ? 'yes'
      : 'no',

  load: (reader, location) => ({
    ...location,
    text: reader.text(location.path),
    locate: (path) => reader.resolve(reader.folderOf(location.path), path),
    prompts: findPrompts(reader, reader.folderOf(location.path)),
    validators: (id) => findValidator(reader, id),
  }),

  compile: (source, context) => ({ ...compileConductor(inputFrom(source, context)), fileVariables: [] }),

  validate: (source, context) => compileConductor(inputFrom(source, context)),
};

function inputFrom(source: ConductorSource, { config, adapters, others }: CompileContext): ConductorInput {
  const { file, text, locate, prompts, validators } = source;
  return {
    source: { file, text },
    config: config.conductor,
    adapters: { ...headlessKnowledge(adapters), adapterNamed: (name) => adapters.meant(name) },
    prompts,
    validators,
    enter: (path) => {
      const [, named = path, workflow = null] = /^(.+)#([^#/]+)$/.exec(path) ?? [];
      const [at, wanted] = others.languageAt(locate(path)) === null ? [named, workflow] : [path, null];
      return others.languageAt(locate(at)) === null ? null : others.enter(locate(at), wanted, 'fails');
    },
    artifactsDirDefault: '.meow/run',
    limits: config.limits,
  };
}

/** By `id.vN`, or by a path that starts with a dot or a slash. `folder`: of the workflow. */
function findPrompts(reader: SourceReader, folder: string): FindPrompt {
  return (id) => {
    const names = [`${id}.md`, id.replace(/\.(v\d+)$/, '/$1.md')];
    const folders = [reader.resolve(folder, 'prompts'), ...reader.folders.prompts];
    const paths = /^\.{0,2}\//.test(id)
      ? [reader.resolve(folder, id)]
      : folders.flatMap((each) => names.map((name) => reader.resolve(each, name)));
    const path = paths.find((each) => reader.kindOf(each) !== null);
    return path === undefined ? null : { path: reader.shown(path), text: reader.text(path) };
  };
}

type Command = ReturnType<FindValidator>;

/** The project's command for `tests`, `lint` or `typecheck`; null if there is none. */
function findValidator(reader: SourceReader, id: string): Command {
  const names = NAMES[id];
  if (names === undefined) return null;
  const textOf = (name: string): string | null => reader.optionalText(reader.resolve(reader.folders.work, name));
  return inPackage(textOf, names) ?? inMakefile(textOf, names) ?? inPyproject(textOf, id);
}

type TextOf = (name: string) => string | null;

const NAMES: Readonly<Record<string, readonly string[]>> = {
  tests: ['test', 'tests'],
  lint: ['lint'],
  typecheck: ['typecheck', 'type-check', 'types'],
};

function inPackage(textOf: TextOf, names: readonly string[]): Command {
  const text = textOf('package.json');
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
    // npm could not read it either, so it has no scripts.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function inMakefile(textOf: TextOf, names: readonly string[]): Command {
  for (const file of ['GNUmakefile', 'makefile', 'Makefile']) {
    const text = textOf(file);
    const name = text === null ? undefined : names.find((target) => new RegExp(`^${target}\\s*:(?!=)`, 'm').test(text));
    if (name !== undefined) return { command: `make ${name}`, from: `${file}, target ${name}` };
  }
  return null;
}

function inPyproject(textOf: TextOf, id: string): Command {
  const text = textOf('pyproject.toml');
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
