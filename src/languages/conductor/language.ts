// Conductor as a language: a YAML file, its prompts, and the project's commands for common validators.

import { isJsonMap, own, parseJson } from '../../base/json.ts';
import { headlessKnowledge } from '../adapter-catalog.ts';
import type { CompileContext, Language, Location, SourceReader } from '../language.ts';
import { hasRootKey } from '../yaml-tree.ts';
import { compileConductor } from './compile.ts';
import { isPath, versionedId } from './prompts.ts';
import { conductorSymbols } from './symbols.ts';
import type { ConductorInput, FindValidator } from './syntax.ts';

interface ConductorSource extends Location {
  readonly text: string;
  readonly reader: SourceReader;
}

export const conductor: Language<ConductorSource> = {
  name: 'conductor',
  hasSections: false,

  detect: (reader, path) =>
    /\.ya?ml$/i.test(path) && reader.kindOf(path) === 'file' && hasRootKey(reader.text(path), 'workflow_id')
      ? 'yes'
      : 'no',

  load: (reader, location) => ({ ...location, text: reader.text(location.path), reader }),

  compile: (source, context) => ({ ...compileConductor(inputFrom(source, context)), fileVariables: [] }),

  validate: (source, context) => compileConductor(inputFrom(source, context)),

  symbols: (source, context, adapters) => {
    const { path, file, text, reader } = source;
    const { policies, validators } = context.config.conductor;
    const folder = reader.folderOf(path);
    const files = (wanted: readonly string[]): string | null =>
      wanted.find((each) => reader.kindOf(each) === 'file') ?? null;
    return conductorSymbols(file, text, {
      adapters,
      policies: Object.keys(policies),
      validators: [...new Set([...Object.keys(NAMES), ...Object.keys(validators)])],
      promptFile: (id) => (isPath(id) || versionedId(id) !== null ? files(promptPaths(reader, folder, id)) : null),
      workflowFile: (to) => files([to, to.replace(/#[^#/]+$/, '')].map((each) => reader.resolve(folder, each))),
    });
  },
};

function inputFrom(source: ConductorSource, { config, adapters, others }: CompileContext): ConductorInput {
  const { path: workflow, file, text, reader } = source;
  const folder = reader.folderOf(workflow);
  return {
    source: { file, text },
    config: config.conductor,
    adapters: headlessKnowledge(adapters),
    prompts: (id) => {
      const path = promptPaths(reader, folder, id).find((each) => reader.kindOf(each) !== null);
      return path === undefined ? null : { path: reader.shown(path), text: reader.text(path) };
    },
    validators: (id) => findValidator(reader, id),
    enter: (path) => {
      const exists = (at: string): boolean => others.languageAt(reader.resolve(folder, at)) !== null;
      const [, named = path, section = null] = /^(.+)#([^#/]+)$/.exec(path) ?? [];
      const [at, wanted] = exists(path) ? [path, null] : [named, section];
      return exists(at) ? others.enter(reader.resolve(folder, at), wanted, 'fails') : null;
    },
    artifactsDirDefault: '.meow/run',
    limits: config.limits,
  };
}

/** Possible paths of a prompt `id.vN`, or its path if it is named by one. `folder`: of the workflow. */
function promptPaths(reader: SourceReader, folder: string, id: string): readonly string[] {
  if (isPath(id)) return [reader.resolve(folder, id)];
  const names = [`${id}.md`, id.replace(/\.(v\d+)$/, '/$1.md')];
  const folders = [reader.resolve(folder, 'prompts'), ...reader.folders.prompts];
  return folders.flatMap((each) => names.map((name) => reader.resolve(each, name)));
}

/** The project's command for `tests`, `lint` or `typecheck`; null if there is none. */
function findValidator(reader: SourceReader, id: string): ReturnType<FindValidator> {
  const names = own(NAMES, id);
  if (names === undefined) return null;
  const textOf = (file: string): string => reader.optionalText(reader.resolve(reader.folders.work, file)) ?? '';
  const manifest = parseJson(textOf('package.json'));
  const scripts = isJsonMap(manifest) && isJsonMap(manifest['scripts']) ? manifest['scripts'] : {};
  const script = names.find((name) => typeof scripts[name] === 'string');
  if (script !== undefined) return { command: `npm run --silent ${script}`, from: `package.json, script ${script}` };
  for (const file of ['GNUmakefile', 'makefile', 'Makefile']) {
    const text = textOf(file);
    const target = names.find((name) => new RegExp(`^${name}\\s*:(?!=)`, 'm').test(text));
    if (target !== undefined) return { command: `make ${target}`, from: `${file}, target ${target}` };
  }
  const project = textOf('pyproject.toml');
  const tool = own(PYTHON, id)?.find(({ section }) => project.includes(`[tool.${section}`));
  return tool === undefined ? null : { command: tool.command, from: `pyproject.toml, [tool.${tool.section}]` };
}

const NAMES: Readonly<Record<string, readonly string[]>> = {
  tests: ['test', 'tests'],
  lint: ['lint'],
  typecheck: ['typecheck', 'type-check', 'types'],
};

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
