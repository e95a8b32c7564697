// MEOW as a language: a TOML file, and the files that its templates refer to.

import type { Diagnostic } from '../../base/diagnostic.ts';
import type { Json } from '../../base/json.ts';
import { makeSource } from '../../base/source.ts';
import type { AdapterCatalog } from '../adapter-catalog.ts';
import type { CompileContext, Entered, Language, Location, SourceReader } from '../language.ts';
import { createReport } from '../report.ts';
import type { Adapters, MeowInput } from './compile.ts';
import { compileMeow, validateMeow } from './compile.ts';
import type { MeowFile } from './modules.ts';
import { isPlaced, spellingsOf } from './target.ts';
import { createSearch } from './search.ts';

export interface MeowSource extends Required<Pick<MeowInput, 'file' | 'text' | 'workflow' | 'others' | 'values'>> {
  /** Paths that a name in a file may mean, if it is not a MEOW workflow. */
  readonly candidates: (from: string, name: string) => readonly string[];
  /** It refers to more files than are read. */
  readonly tooMany: boolean;
}

export const meow: Language<MeowSource> = {
  name: 'meow',
  hasSections: true,

  detect: (reader, path) => (/\.toml$/i.test(path) && reader.kindOf(path) === 'file' ? 'yes' : 'no'),

  load(reader, { path, file, workflow }, values) {
    const text = reader.text(path);
    const paths = new Map([[file, path]]);
    const candidates = (from: string, name: string): readonly string[] => {
      const own = paths.get(from);
      const folders = [...(own === undefined ? [] : [reader.folderOf(own)]), ...reader.folders.templates];
      return folders.map((folder) => reader.resolve(folder, name));
    };
    return { file, text, workflow, values, candidates, ...readOthers(reader, { file, text }, values, paths) };
  },

  compile(source, context) {
    if (source.tooMany) return { program: null, diagnostics: tooManyFiles(source), fileVariables: [] };
    const given = context.given === null ? null : Object.keys(context.given.values);
    return compileMeow({ ...inputFrom(source, context), given, limits: context.config.limits });
  },

  validate(source, context) {
    if (source.tooMany) return { diagnostics: tooManyFiles(source), notes: [] };
    const input = inputFrom(source, context);
    // With #WORKFLOW, checks what a run of it would need; missing variables are not a problem.
    const diagnostics =
      source.workflow === null ? validateMeow(input) : compileMeow({ ...input, given: null }).diagnostics;
    return { diagnostics, notes: [] };
  },
};

function inputFrom(source: MeowSource, { adapters, given, others }: CompileContext): Omit<MeowInput, 'given'> {
  const foreign = (from: string, name: string): Entered | null => {
    const path = source.candidates(from, name).find((each) => (others.languageAt(each) ?? 'meow') !== 'meow');
    return path === undefined ? null : others.enter(path, null, 'fails');
  };
  return { ...source, others: { ...source.others, foreign }, adapters: adaptersFor(adapters, given === null) };
}

/** `refuses`: unusable adapters are errors of the file; otherwise the run is refused later, with a hint. */
function adaptersFor(adapters: AdapterCatalog, refuses: boolean): Adapters {
  return {
    forced: adapters.forced,
    fallback: () => adapters.fallback(),
    ...(refuses ? { refusal: (name: string) => adapters.refusal(name) } : {}),
  };
}

/** Limit on referenced files. */
const FILES_MAX = 1_000;

function tooManyFiles({ file, text }: MeowSource): readonly Diagnostic[] {
  const report = createReport(makeSource(file, text));
  const message = `it includes more than ${String(FILES_MAX)} files`;
  report.error('too-many-files', { from: 0, to: 1 }, message, 'Is that meant?');
  return report.diagnostics();
}

/** Reads the files that references may mean, and theirs, until there are no more. */
function readOthers(
  reader: SourceReader,
  entry: MeowFile,
  values: Readonly<Record<string, Json>>,
  paths: Map<Location['file'], Location['path']>,
): Pick<MeowSource, 'others' | 'tooMany'> {
  const search = createSearch(values);
  const files: MeowFile[] = [];
  const found = new Map<string, string>();
  const keyOf = (from: string, name: string): string => `${from}\0${name}`;
  const open = [...search.add(entry)];
  for (let wanted = open.shift(); wanted !== undefined; wanted = open.shift()) {
    const { from, name } = wanted;
    const path = locateTemplate(reader, reader.folderOf(paths.get(from) ?? ''), name);
    if (path === null) continue;
    const file = reader.shown(path);
    found.set(keyOf(from, name), file);
    if (paths.has(file)) continue;
    if (files.length >= FILES_MAX) return { others: { files, find: () => null }, tooMany: true };
    const other = { file, text: reader.text(path) };
    paths.set(file, path);
    files.push(other);
    open.push(...search.add(other));
  }
  return { others: { files, find: (from, name) => found.get(keyOf(from, name)) ?? null }, tooMany: false };
}

/** Relative to the referring file; else in the search folders, the built-in library last. */
function locateTemplate(reader: SourceReader, folder: string, name: string): string | null {
  const { templates, library } = reader.folders;
  const searched = isPlaced(name) ? [folder] : [folder, ...templates, ...(name.startsWith('lib/') ? [library] : [])];
  const paths = searched.flatMap((each) => spellingsOf(name).map((spelling) => reader.resolve(each, spelling)));
  return paths.find((path) => reader.kindOf(path) === 'file') ?? null;
}
