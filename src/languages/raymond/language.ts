// Raymond as a language: a folder of prompts and scripts, or one YAML file with all states.

import { headlessKnowledge } from '../adapter-catalog.ts';
import type { CompileContext, FolderFile, Language, SourceReader } from '../language.ts';
import { baseName, isWithin } from '../language.ts';
import type { RaymondInput } from './compile.ts';
import { compileRaymond, validateRaymond } from './compile.ts';
import type { FindWorkflow, RaymondFile, RaymondSource } from './source.ts';

/** A workflow, and how it finds the workflows that it names. */
interface RaymondFiles {
  readonly source: RaymondSource;
  readonly reader: SourceReader;
}

const STARTS = ['1_START.md', 'START.md', '1_START.sh', 'START.sh'];

export const raymond: Language<RaymondFiles> = {
  name: 'raymond',
  hasSections: false,

  detect(reader, path) {
    if (reader.kindOf(path) === 'folder') {
      return STARTS.some((name) => reader.kindOf(reader.resolve(path, name)) === 'file') ? 'yes' : 'maybe';
    }
    return isPrompt(path) || isStates(reader, path) ? 'yes' : 'no';
  },

  load: (reader, { path }) => ({ source: readWorkflow(reader, path), reader }),

  compile(files, context) {
    const { given, config, idPrefix } = context;
    const names = given === null ? [] : [...Object.keys(given.values), ...given.meta];
    const compiled = compileRaymond({ ...inputFrom(files, context), given: names, limits: config.limits, idPrefix });
    return { ...compiled, fileVariables: [] };
  },

  validate: (files, context) => ({ diagnostics: validateRaymond(inputFrom(files, context)), notes: [] }),
};

function inputFrom({ source, reader }: RaymondFiles, context: CompileContext): Omit<RaymondInput, 'given'> {
  return { source, adapters: headlessKnowledge(context.adapters), find: findFrom(reader, source, context) };
}

/** A folder, one of its prompts, or a YAML file. */
function readWorkflow(reader: SourceReader, path: string): RaymondSource {
  if (reader.kindOf(path) === 'folder') return readFolder(reader, path, null);
  if (isYaml(path)) {
    const name = reader.shown(path);
    return { kind: 'single', key: reader.realPath(path), name, text: reader.text(path), start: null };
  }
  return readFolder(reader, reader.folderOf(path), baseName(path));
}

/** Resolves paths in texts, within the project of the first workflow. */
function findFrom(reader: SourceReader, first: RaymondSource, { others }: CompileContext): FindWorkflow {
  const folderOf = ({ kind, key }: RaymondSource): string => (kind === 'folder' ? key : reader.folderOf(key));
  const root = rootFor(reader, folderOf(first));
  return (from, wanted) => {
    const hash = wanted.lastIndexOf('#');
    const [file, workflow] = hash === -1 ? [wanted, null] : [wanted.slice(0, hash), wanted.slice(hash + 1)];
    const found = [
      { path: wanted, workflow: null },
      { path: `${wanted}.md`, workflow: null },
      ...(workflow === null ? [] : [{ path: file, workflow }]),
    ]
      .map((each) => ({ ...each, path: reader.resolve(folderOf(from), each.path) }))
      .find(({ path }) => reader.kindOf(path) !== null);
    if (found === undefined) return null;
    if (!isWithin(root, reader.realPath(found.path))) {
      const message = `${wanted} is outside of the project`;
      return { kind: 'refused', message, hint: 'Copy it into the project, or run meow in a folder above both.' };
    }
    if (reader.kindOf(found.path) === 'folder' || others.languageAt(found.path) === 'raymond')
      return { kind: 'raymond', source: readWorkflow(reader, found.path) };
    return others.enter(found.path, found.workflow, 'returns');
  };
}

/** The project; for workflows outside of it, the folder that contains them. */
function rootFor(reader: SourceReader, first: string): string {
  const { project } = reader.folders;
  return isWithin(project, first) ? project : reader.folderOf(first);
}

function readFolder(reader: SourceReader, folder: string, start: string | null): RaymondSource {
  const real = reader.realPath(folder);
  const files = reader.files(folder).map(
    (file): RaymondFile => ({
      name: file.name,
      file: reader.shown(file.path),
      text: textOf(file),
      isExecutable: file.isExecutable,
      path: file.path,
      leadsOut: !isWithin(real, reader.realPath(file.path)),
    }),
  );
  return { kind: 'folder', key: real, name: reader.shown(folder), files, start };
}

/** Limit on the size of a prompt. */
const TEXT_BYTES_MAX = 10_000_000;

/** Null if it is not text. Files that cannot belong to a workflow are not read: they may be large or private. */
function textOf(file: FolderFile): string | null {
  const { name, isExecutable, bytes } = file;
  return (isExecutable || /\.(?:md|sh|yaml)$/i.test(name)) && bytes <= TEXT_BYTES_MAX ? file.text() : null;
}

function isPrompt(path: string): boolean {
  return /\.md$/i.test(path);
}

function isYaml(path: string): boolean {
  return /\.ya?ml$/i.test(path);
}

/** One file with all its states. A file with a workflow_id belongs to another language. */
function isStates(reader: SourceReader, path: string): boolean {
  if (!isYaml(path)) return false;
  const text = reader.text(path);
  return /^states\s*:/m.test(text) && !/^["']?workflow_id["']?\s*:/m.test(text);
}
