// Raymond as a language: a folder of prompts and scripts, or one YAML file with all states.

import { headlessKnowledge } from '../adapter-catalog.ts';
import {
  baseName,
  type CompileContext,
  type Entered,
  isWithin,
  type Language,
  type SourceReader,
  STATE_IN_FILE,
} from '../language.ts';
import { hasRootKey } from '../yaml-tree.ts';
import { compileRaymond, type RaymondInput, validateRaymond } from './compile.ts';
import { raymondSymbols } from './symbols.ts';
import type { FindWorkflow, RaymondSource } from './syntax.ts';

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
    return /\.(?:md|sh)$/i.test(path) || isStates(reader, path) ? 'yes' : 'no';
  },

  load: (reader, { path, state = null }) => ({ source: readWorkflow(reader, path, state), reader }),

  compile(files, context) {
    const { given, config, idPrefix } = context;
    const names = given === null ? [] : [...Object.keys(given.values), ...given.meta];
    const compiled = compileRaymond({ ...inputFrom(files, context), given: names, limits: config.limits, idPrefix });
    return { ...compiled, fileVariables: [] };
  },

  validate: (files, context) => ({ diagnostics: validateRaymond(inputFrom(files, context)), notes: [] }),

  symbols: ({ source, reader }, context, adapters) =>
    raymondSymbols(source, findFrom(reader, source, context), adapters),
};

function inputFrom({ source, reader }: RaymondFiles, context: CompileContext): Omit<RaymondInput, 'given'> {
  return { source, adapters: headlessKnowledge(context.adapters), find: findFrom(reader, source, context) };
}

/** A folder, one of its states, or a YAML file. `state`: the first state of a YAML file; null: the state START. */
function readWorkflow(reader: SourceReader, path: string, state: string | null): RaymondSource {
  if (reader.kindOf(path) === 'folder') return readFolder(reader, path, null);
  if (isYaml(path)) {
    const name = reader.shown(path);
    return { kind: 'single', key: reader.realPath(path), name, text: reader.text(path), start: state };
  }
  return readFolder(reader, reader.folderOf(path), baseName(path));
}

/** `workflow`: named after `#`. `state`: of a YAML file. */
type Candidate = Readonly<{ file: string; workflow?: string | null; state?: string | null }>;

/** Resolves paths in texts, within the project of the first workflow. */
function findFrom(reader: SourceReader, first: RaymondSource, { others }: CompileContext): FindWorkflow {
  const folderOf = ({ kind, key }: RaymondSource): string => (kind === 'folder' ? key : reader.folderOf(key));
  const root = rootOf(reader, folderOf(first));
  return (from, wanted) => {
    const found = locatePath(reader, folderOf(from), root, wanted);
    if (found === null || found.kind === 'refused') return found;
    const { path, workflow, state } = found;
    if (reader.kindOf(path) === 'folder' || others.languageAt(path) === 'raymond')
      return { kind: 'raymond', source: readWorkflow(reader, path, state) };
    return others.enter(path, workflow, 'returns');
  };
}

/** The project; for a workflow outside of it, the folder that contains its own. */
export function rootOf(reader: SourceReader, home: string): string {
  const { project } = reader.folders;
  return isWithin(project, home) ? project : reader.folderOf(home);
}

type LocatedPath = Readonly<{ kind: 'located'; path: string; workflow: string | null; state: string | null }>;

/** What a path relative to a folder names. Null if nothing is there; refused outside of `root`. */
export function locatePath(
  reader: SourceReader,
  folder: string,
  root: string,
  wanted: string,
): LocatedPath | Extract<Entered, { kind: 'refused' }> | null {
  const hash = wanted.lastIndexOf('#');
  const inFile = hash === -1 ? [] : [{ file: wanted.slice(0, hash), workflow: wanted.slice(hash + 1) }];
  const [, file = null, state = null] = STATE_IN_FILE.exec(wanted) ?? [];
  const candidates: readonly Candidate[] = [
    { file: wanted },
    { file: `${wanted}.md` },
    { file: `${wanted}.sh` },
    ...inFile,
    ...(file === null ? [] : [{ file, state }]),
  ];
  const found = candidates
    .map((each) => ({ workflow: null, state: null, ...each, path: reader.resolve(folder, each.file) }))
    .find(({ path }) => reader.kindOf(path) !== null);
  if (found === undefined) return null;
  if (!isWithin(root, reader.realPath(found.path))) {
    const message = `${wanted} is outside of the project`;
    return { kind: 'refused', message, hint: 'Copy it into the project, or run meow in a folder above both.' };
  }
  return { kind: 'located', path: found.path, workflow: found.workflow, state: found.state };
}

function readFolder(reader: SourceReader, folder: string, start: string | null): RaymondSource {
  const real = reader.realPath(folder);
  const files = reader.files(folder).map((each) => {
    const { name, path, isExecutable, stored } = each;
    // Files that cannot belong to a workflow are not read: they may be large or private.
    const isRead = (isExecutable || /\.(?:md|sh|yaml)$/i.test(name)) && each.bytes <= TEXT_BYTES_MAX;
    const text = isRead ? each.text() : null;
    return {
      name,
      file: reader.shown(path),
      text,
      isExecutable,
      path,
      ...(stored === undefined ? {} : { stored }),
      leadsOut: !isWithin(real, reader.realPath(path)),
    };
  });
  return { kind: 'folder', key: real, name: reader.shown(folder), files, start };
}

const TEXT_BYTES_MAX = 10_000_000;

function isYaml(path: string): boolean {
  return /\.ya?ml$/i.test(path);
}

/** One file with all its states. A file with a workflow_id belongs to another language. */
function isStates(reader: SourceReader, path: string): boolean {
  if (!isYaml(path)) return false;
  const text = reader.text(path);
  return hasRootKey(text, 'states') && !hasRootKey(text, 'workflow_id');
}
