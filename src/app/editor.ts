// What an editor asks about the workflows of a folder: their problems and symbols. The text of an open buffer counts
// instead of the file. Paths are absolute, and offsets count UTF-16 units of the text without a byte order mark.

import { readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { type Diagnostic, makeSource, type Place, placeOf, type Source, type Span } from '../base/source.ts';
import { checkWorkflow, detectLanguage, type Surroundings, symbolsOf } from '../languages/compose.ts';
import { DEFAULT_CONFIG } from '../languages/config.ts';
import type { FolderFile, Language, SourceReader } from '../languages/language.ts';
import type { Definition, Suggestions, Symbols, Use, WrittenKey } from '../languages/symbols.ts';
import { stepNamesIn } from '../languages/test-file/step-names.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { Adapters } from './adapters.ts';
import { surroundings } from './compile.ts';
import { InvalidWorkflow } from './errors.ts';
import { findProject } from './project.ts';
import { NotText, readSettings } from './sources.ts';
import { workflowBeside } from './workflow-beside.ts';

export type { Definition, Suggestion, Suggestions, SymbolKind, Use } from '../languages/symbols.ts';

/** What is open in the editor. */
export interface Buffers {
  /** Null if the file is not open. */
  readonly textOf: (path: string) => string | null;
  /** Of all open files. */
  readonly paths: () => readonly string[];
}

export interface FoundProblem {
  readonly path: string;
  readonly place: Place;
  readonly diagnostic: Diagnostic;
  readonly related: readonly { readonly path: string; readonly place: Place; readonly message: string }[];
}

/** A symbol at a position, and the text that names it there. */
export interface SymbolAt {
  readonly place: Place;
  readonly definitions: readonly Definition[];
}

/** A place where a symbol is named, and its new name there. */
export interface RenamedUse {
  readonly path: string;
  readonly place: Place;
  readonly text: string;
}

/** Workflows searched for uses of a symbol. */
const FILES_MAX = 2_000;
const SKIPPED = /^(?:\..*|node_modules|dist|target|vendor)$/;
const TEST_FILE = /\.(?:test|sim)\.toml$/;
/** Other files with the same endings. */
const OTHER_FILES = /(?:\.(?:test|sim)\.toml|^(?:adapter|config|pyproject|Cargo)\.toml)$/;

/** `reads`: paths of all files and folders that were looked at, those that do not exist included. */
interface KnownSymbols {
  readonly symbols: Symbols | null;
  readonly reads: ReadonlySet<string>;
}

export class EditorWorkspace {
  readonly #folder: string;
  readonly #buffers: Buffers;
  #around: Surroundings | null = null;
  #adapters: readonly string[] = [];
  readonly #symbols = new Map<string, KnownSymbols>();

  constructor(folder: string, buffers: Buffers) {
    this.#folder = folder;
    this.#buffers = buffers;
  }

  /** A buffer has changed. Workflows that do not read the file have the same symbols as before. */
  changed(path: string): void {
    for (const [workflow, { reads }] of this.#symbols)
      if (reads.has(path) || reads.has(dirname(path))) this.#symbols.delete(workflow);
  }

  /** A file has changed on disk: it may be the configuration or an adapter. */
  saved(): void {
    this.#symbols.clear();
    this.#around = null;
  }

  /** The workflow that a file belongs to: itself, or its folder. Null if it is not part of a workflow. */
  workflowOf(path: string): string | null {
    return this.#tolerant(null, () => {
      const { reader } = this.#surroundings();
      if (/\.(?:md|sh)$/i.test(path) || basename(path) === 'workflow.yaml') {
        const folder = dirname(path);
        if (detectLanguage(reader, folder, 'yes') !== null) return folder;
      }
      return isWorkflowFile(reader, path) && detectLanguage(reader, path, 'yes') !== null ? path : null;
    });
  }

  /** As `meow validate` reports them, of all files that the workflow refers to. */
  problemsOf(workflow: string): readonly FoundProblem[] {
    const around = this.#surroundings();
    const paths = new Map<string, string>();
    const shown = (path: string): string => {
      const file = around.reader.shown(path);
      paths.set(file, path);
      return file;
    };
    const reader = { ...around.reader, shown };
    const found = this.#tolerant<readonly Diagnostic[]>(
      [],
      () => {
        const language = detectLanguage(reader, workflow, 'yes');
        const location = { path: workflow, file: shown(workflow), workflow: null };
        return language === null ? [] : checkWorkflow(language, location, { ...around, reader }).diagnostics;
      },
      ({ diagnostic }) => [diagnostic],
    );
    const sources = new Map<string, Source>();
    const placed = (span: Span): { readonly path: string; readonly place: Place } => {
      const path = paths.get(span.file) ?? workflow;
      const source = sources.get(path) ?? makeSource(path, this.textOf(path) ?? '');
      sources.set(path, source);
      return { path, place: placeOf(source, span) };
    };
    return found.map((diagnostic) => ({
      ...placed(diagnostic.span),
      diagnostic,
      related: diagnostic.related.map(({ span, message }) => ({ ...placed(span), message })),
    }));
  }

  /** Without a byte order mark; null if it cannot be read. */
  textOf(path: string): string | null {
    const text = this.#surroundings().reader.optionalText(path);
    return text?.replace(/^\uFEFF/, '') ?? null;
  }

  /** Symbols defined in a file. */
  definitionsIn(path: string): readonly Definition[] {
    return this.#symbolsAround(path)?.definitions.filter(({ file }) => file === path) ?? [];
  }

  suggest(path: string, offset: number): Suggestions | null {
    return this.#symbolsAround(path)?.suggest(path, offset) ?? null;
  }

  /** Null if no known key or word is written there. */
  keyAt(path: string, offset: number): WrittenKey | null {
    return this.#symbolsAround(path)?.keyAt(path, offset) ?? null;
  }

  symbolAt(path: string, offset: number): SymbolAt | null {
    const symbols = this.#symbolsAround(path) ?? this.#symbolsOfTest(path);
    if (symbols === null) return null;
    const isAt = ({ file, place }: Pick<Use, 'file' | 'place'>): boolean =>
      file === path && place.from <= offset && offset <= place.to;
    const use = symbols.uses.find(isAt);
    if (use !== undefined) return { place: use.place, definitions: use.to };
    const definition = symbols.definitions.find(isAt);
    return definition === undefined ? null : { place: definition.place, definitions: [definition] };
  }

  /** In the workflow of the file, and in all workflows of the folder. */
  usesOf(path: string, definitions: readonly Definition[]): readonly Use[] {
    const wanted = new Set(definitions.map(keyOf));
    const own = this.workflowOf(path);
    const { workflows, tests } = this.#files();
    const places = [
      ...[...new Set([...(own === null ? [] : [own]), ...workflows])].map((each) => this.#symbolsOf(each)),
      ...tests.map((each) => this.#symbolsOfTest(each)),
    ];
    const found = new Map<string, Use>();
    for (const use of places.flatMap((each) => each?.uses ?? [])) {
      if (use.to.some((to) => wanted.has(keyOf(to)))) found.set(`${use.file}:${use.place.from}`, use);
    }
    return [...found.values()];
  }

  /** All places where a symbol is named, its definitions included. A definition that is a file is renamed as one. */
  renamed(path: string, definitions: readonly Definition[], name: string): readonly RenamedUse[] {
    const uses = this.usesOf(path, definitions).flatMap((use) => {
      const text = spelledLike(use, this.textOf(use.file) ?? '', name);
      return text === null ? [] : [{ path: use.file, place: use.place, text }];
    });
    const written = definitions.filter(({ isFile }) => !isFile);
    return [...written.map(({ file, place }) => ({ path: file, place, text: name })), ...uses];
  }

  #symbolsAround(path: string): Symbols | null {
    const workflow = this.workflowOf(path);
    return workflow === null ? null : this.#symbolsOf(workflow);
  }

  #symbolsOf(workflow: string): Symbols | null {
    const known = this.#symbols.get(workflow);
    if (known !== undefined) return known.symbols;
    const around = this.#surroundings();
    const reads = new Set<string>();
    // Symbols name files by their paths.
    const reader = { ...recorded(around.reader, reads), shown: (path: string) => path };
    const symbols = this.#tolerant(null, () => {
      const language: Language | null = detectLanguage(reader, workflow, 'yes');
      const location = { path: workflow, file: workflow, workflow: null };
      return language === null ? null : symbolsOf(language, location, { ...around, reader }, this.#adapters);
    });
    this.#symbols.set(workflow, { symbols, reads });
    return symbols;
  }

  /** What a test file or a simulation script names of its workflow; null if it has none. */
  #symbolsOfTest(path: string): Pick<Symbols, 'definitions' | 'uses'> | null {
    const text = TEST_FILE.test(path) ? this.textOf(path) : null;
    if (text === null) return null;
    const { workflow: named, steps } = stepNamesIn(text);
    const { workflow, section } = this.#workflowOfTest(path, named);
    const symbols = workflow === null ? null : this.#symbolsOf(workflow);
    if (symbols === null) return null;
    const uses = steps.flatMap((step) =>
      symbols.namedIn(step, section).map(({ place: { from, to }, ...rest }): Use => {
        return { ...rest, file: path, place: step.placeOf(from, to) };
      }),
    );
    return { definitions: [], uses };
  }

  #workflowOfTest(
    path: string,
    named: string | null,
  ): { readonly workflow: string | null; readonly section: string | null } {
    const kindOf = (each: string): 'file' | 'folder' | null => this.#surroundings().reader.kindOf(each);
    if (named === null) return { workflow: workflowBeside(path, (each) => kindOf(each) !== null), section: null };
    const whole = resolve(dirname(path), named);
    const [, file = whole, section = null] = kindOf(whole) === null ? (/^(.*)#([^#]*)$/s.exec(whole) ?? []) : [];
    return { workflow: file, section };
  }

  /** Of the folder, as far as they are few enough. */
  #files(): { readonly workflows: readonly string[]; readonly tests: readonly string[] } {
    const { reader } = this.#surroundings();
    const workflows = new Set<string>();
    const tests: string[] = [];
    const folders = [this.#folder, ...reader.folders.templates.filter((folder) => folder.startsWith(this.#folder))];
    for (const folder of folders) {
      for (const entry of tolerate(UNUSABLE, [], () => readdirSync(folder, { withFileTypes: true }))) {
        const path = join(folder, entry.name);
        if (workflows.size + tests.length >= FILES_MAX || folders.length >= FILES_MAX)
          return { workflows: [...workflows], tests };
        // The loop also visits what it adds.
        if (entry.isDirectory() && !SKIPPED.test(entry.name)) folders.push(path);
        if (!entry.isFile()) continue;
        if (TEST_FILE.test(entry.name)) tests.push(path);
        const workflow = /\.(?:toml|ya?ml|md)$/i.test(entry.name) ? this.workflowOf(path) : null;
        if (workflow !== null) workflows.add(workflow);
      }
    }
    return { workflows: [...workflows], tests };
  }

  #surroundings(): Surroundings {
    if (this.#around !== null) return this.#around;
    const project = findProject(this.#folder);
    const adapters = new Adapters(project);
    const config = this.#tolerant(DEFAULT_CONFIG, () => readSettings(project).config);
    const around = surroundings({ project, config, adapters, adapter: null });
    this.#adapters = adapters.all().map(({ name }) => name);
    this.#around = { ...around, reader: overBuffers(around.reader, this.#buffers) };
    return this.#around;
  }

  /** `otherwise`: if a file cannot be read. `ifNotText`: if it is not text. */
  #tolerant<T>(otherwise: T, read: () => T, ifNotText: (error: NotText) => T = () => otherwise): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof NotText) return ifNotText(error);
      if (error instanceof UsageError || error instanceof InvalidWorkflow) return otherwise;
      throw error;
    }
  }
}

/** Files as the editor shows them. */
function overBuffers(reader: SourceReader, buffers: Buffers): SourceReader {
  const { textOf } = buffers;
  return {
    ...reader,
    kindOf: (path) => reader.kindOf(path) ?? (textOf(path) === null ? null : 'file'),
    text: (path) => textOf(path) ?? reader.text(path),
    optionalText: (path) => textOf(path) ?? reader.optionalText(path),
    files: (folder) => {
      const saved = reader
        .files(folder)
        .map((file): FolderFile => ({ ...file, text: () => textOf(file.path) ?? file.text() }));
      const known = new Set(saved.map(({ path }) => path));
      const unsaved = buffers.paths().filter((path) => dirname(path) === folder && !known.has(path));
      const files = [...saved, ...unsaved.map((path) => unsavedFile(path, textOf(path) ?? ''))];
      return files.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

function recorded(reader: SourceReader, reads: Set<string>): SourceReader {
  return {
    ...reader,
    kindOf: (path) => (reads.add(path), reader.kindOf(path)),
    text: (path) => (reads.add(path), reader.text(path)),
    optionalText: (path) => (reads.add(path), reader.optionalText(path)),
    files: (folder) => (reads.add(folder), reader.files(folder)),
  };
}

function unsavedFile(path: string, text: string): FolderFile {
  return { name: basename(path), path, isExecutable: false, bytes: Buffer.byteLength(text), text: () => text };
}

/** TOML is used for much else. */
function isWorkflowFile(reader: SourceReader, path: string): boolean {
  if (!/\.toml$/i.test(path)) return /\.ya?ml$/i.test(path);
  if (/\.meow\.toml$/i.test(path)) return true;
  return !OTHER_FILES.test(basename(path)) && /^\s*\[\[(?:[\w-]+\.)?steps\]\]/m.test(reader.optionalText(path) ?? '');
}

function keyOf({ kind, file, name, place }: Definition): string {
  return JSON.stringify([kind, file, name, place.from]);
}

/** `REVIEW` for `REVIEW.md` stays without its ending. Null if the text names it in another way, as a path does. */
function spelledLike({ place, to, spelling }: Use, text: string, name: string): string | null {
  if (spelling === 'name') return name;
  const stem = name.replace(/(?<=.)\.[^.]*$/, '');
  if (spelling === 'stem') return stem;
  const ending = /\.[^./]*$/.exec(text.slice(place.from, place.to))?.[0];
  return to.every(({ kind }) => kind === 'state') && ending !== undefined ? `${stem}${ending}` : null;
}
