// MEOW as a language: a TOML file, and the files that its templates refer to.

import type { JsonMap } from '../../base/json.ts';
import { type Diagnostic, makeSource } from '../../base/source.ts';
import type { CompileContext, Entered, Language, Location, SourceReader } from '../language.ts';
import { createReport, START } from '../report.ts';
import { parseTemplate } from '../template.ts';
import { valueOf } from '../toml-fields.ts';
import { compileMeow, type MeowInput, validateMeow } from './compile.ts';
import { collectStaticValues, type PossibleTexts, stepTables, targetTables } from './link.ts';
import { type MeowFile, type Module, openModule, type Section } from './modules.ts';
import { meowSymbols } from './symbols.ts';
import { fileOf, isPlaced, namesWorkflow, parseReference, spellingsOf } from './target.ts';

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

  symbols: ({ file, text, others }, _, adapters) => meowSymbols({ file, text }, others, adapters),
};

function inputFrom(source: MeowSource, { adapters, given, others }: CompileContext): Omit<MeowInput, 'given'> {
  const foreign = (from: string, name: string): Entered | null => {
    const path = source.candidates(from, name).find((each) => (others.languageAt(each) ?? 'meow') !== 'meow');
    return path === undefined ? null : others.enter(path, null, 'fails');
  };
  // If nothing will run, an unusable adapter is a problem of the file; otherwise the run is refused, with a hint.
  const used = given === null ? adapters : { forced: adapters.forced, fallback: () => adapters.fallback() };
  return { ...source, others: { ...source.others, foreign }, adapters: used };
}

const FILES_MAX = 1_000;

function tooManyFiles({ file, text }: MeowSource): readonly Diagnostic[] {
  const report = createReport(makeSource(file, text));
  const message = `it includes more than ${String(FILES_MAX)} files`;
  report.error('too-many-files', START, message, 'Is that meant?');
  return report.diagnostics();
}

/** Reads the files that references may mean, and theirs, until there are no more. */
function readOthers(
  reader: SourceReader,
  entry: MeowFile,
  values: JsonMap,
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

/** A file named `name` in the file `from`. */
interface Wanted {
  readonly from: string;
  readonly name: string;
}

/**
 * Finds the files that references may mean. The caller adds files one by one and receives new names to look for, each
 * once. `given`: variables of the run, for references that contain a variable.
 */
export function createSearch(given: JsonMap): { readonly add: (file: MeowFile) => readonly Wanted[] } {
  const modules: Module[] = [];
  const known = new Set<string>();
  return {
    add: (file) => {
      if (!MAY_REFER.test(file.text)) return [];
      modules.push(openModule(file, ''));
      const possibleTexts = collectStaticValues(modules, given);
      const wanted = modules.flatMap((module) => [...wantedBy(module, possibleTexts)]);
      return wanted.filter(({ from, name }) => {
        const key = JSON.stringify([from, name]);
        const isNew = !known.has(key);
        known.add(key);
        return isNew;
      });
    },
  };
}

/** Only files that match can refer to others: they contain such a key, or an escape that may spell one. */
const MAY_REFER = /template|on_error|on_exhausted|\\[uUx]/;

function* wantedBy({ file, sections }: Module, possibleTexts: PossibleTexts): Generator<Wanted> {
  const own = new Set(sections.map(({ name }) => name));
  for (const text of sections.flatMap(referencesIn)) {
    const { parts } = parseTemplate(text);
    const isOpen = parts.some((part) => typeof part !== 'string');
    for (const possible of isOpen ? possibleTexts(parts) : [{ value: text, file: null }]) {
      const reference = parseReference(possible.value);
      if (reference === null || (reference.kind === 'either' && own.has(reference.name))) continue;
      const name = fileOf(reference);
      if (name === null) continue;
      yield { from: file, name };
      if (possible.file !== null && possible.file !== file) yield { from: possible.file, name };
    }
  }
}

function referencesIn(section: Section): readonly string[] {
  return stepTables(section).flatMap((step) => {
    const templates = targetTables(step).flatMap((table) => valueOf(table, 'template', 'string') ?? []);
    const actions = ['on_error', 'on_exhausted'].flatMap((key) => valueOf(step, key, 'string') ?? []);
    return [...templates, ...actions.filter(({ value }) => namesWorkflow(value))].map(({ value }) => value);
  });
}
