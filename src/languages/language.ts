// What every workflow language offers, and what it is handed. A language is pure: it reads files only through a
// SourceReader, which the application implements over the file system and an editor over its buffers.
//
// To add a language: implement `Language` in a folder of its own, and add a line to languages/registry.ts.

import type { Diagnostic } from '../base/diagnostic.ts';
import type { Json } from '../base/json.ts';
import type { FailedStop } from '../ir/link.ts';
import type { Program, Source } from '../ir/program.ts';
import type { AdapterCatalog } from './adapter-catalog.ts';
import type { Config } from './config.ts';

/** `S`: a workflow as it was read, with every file that it refers to in its own language. */
export interface Language<S = unknown> {
  readonly name: Source['language'];
  /** Whether a file holds several workflows, which are named behind `#`. */
  readonly hasSections: boolean;
  /** Looks at a file or folder that exists. */
  detect(reader: SourceReader, path: string): Detection;
  load(reader: SourceReader, location: Location, values: Readonly<Record<string, Json>>): S;
  compile(source: S, context: CompileContext): Compiled;
  /** Every problem of the source, whichever part of it a run would use. */
  validate(source: S, context: CompileContext): Validated;
}

/** `maybe`: no other language has such files, but an incomplete one of this language may look like this. */
export type Detection = 'yes' | 'maybe' | 'no';

/** Where a workflow is written. */
export interface Location {
  /** Absolute. */
  readonly path: string;
  /** As messages name the path. */
  readonly file: string;
  /** The name after `#`; null is the main workflow of the file. */
  readonly workflow: string | null;
}

export interface Compiled {
  /** Null if a diagnostic is an error. */
  readonly program: Program | null;
  readonly diagnostics: readonly Diagnostic[];
  /** Variables of the run whose value is the path of a file, and means its text. */
  readonly fileVariables: readonly string[];
}

export interface Validated {
  readonly diagnostics: readonly Diagnostic[];
  /** Facts found outside of the file, one sentence each: which command a validator runs. */
  readonly notes: readonly string[];
}

export interface CompileContext {
  readonly config: Config;
  readonly adapters: AdapterCatalog;
  /** What the run is given; null if nothing will run, and everything that is required counts as given. */
  readonly given: Given | null;
  /** Stands before the ids of steps that are numbered by their visits; empty unless another workflow enters this one. */
  readonly idPrefix: string;
  readonly others: OtherWorkflows;
}

export interface Given {
  readonly values: Readonly<Record<string, Json>>;
  /** Names of the run's metadata. */
  readonly meta: readonly string[];
}

/** Workflows that this one enters and whose blocks the linker adds to its Program. */
export interface OtherWorkflows {
  /** The language of what is at an absolute path; null if nothing is there, or nothing that can be entered. */
  languageAt(path: string): string | null;
  /** Compiles the workflow at a path that has a language. `failedStop`: what the caller wants to hear of a failure. */
  enter(path: string, workflow: string | null, failedStop: FailedStop): Entered;
}

export type Entered =
  | {
      readonly kind: 'found';
      /** The name of its first block, until it is linked. */
      readonly entry: string;
      /** Variables without a default that it must be passed. */
      readonly required: readonly string[];
      /** Ids of its steps that are numbered by their visits alone (`fix#2`). */
      readonly visited: readonly string[];
    }
  | Refused;

/** Why a workflow cannot be entered, as a sentence. */
export interface Refused {
  readonly kind: 'refused';
  readonly message: string;
  readonly hint: string;
}

/** Files as languages see them. Paths are absolute. What cannot be read throws an error with its remedy. */
export interface SourceReader {
  resolve(folder: string, path: string): string;
  folderOf(path: string): string;
  /** As messages name a path: short, and it can be pasted. */
  shown(path: string): string;
  /** Without symbolic links. */
  realPath(path: string): string;
  /** Null if nothing is there. What may not be looked at counts as a file: reading it says why. */
  kindOf(path: string): 'file' | 'folder' | null;
  /** The whole text of a file, which must be UTF-8. */
  text(path: string): string;
  /** The text of a file that need not exist; null if it does not, or is not readable. */
  optionalText(path: string): string | null;
  /** The regular files in a folder, by name. */
  files(folder: string): readonly FolderFile[];
  readonly folders: SourceFolders;
}

export interface FolderFile {
  readonly name: string;
  readonly path: string;
  readonly isExecutable: boolean;
  readonly bytes: number;
  /** Null if it is not text. */
  text(): string | null;
}

export interface SourceFolders {
  /** The folder that commands run in. */
  readonly work: string;
  /** The project, without symbolic links: the folder that `.meow` is in. */
  readonly project: string;
  /** Searched for templates that are not named by a path. */
  readonly templates: readonly string[];
  /** Searched for prompts, after the folder `prompts` beside the workflow. */
  readonly prompts: readonly string[];
  /** What `lib/…` is relative to. */
  readonly library: string;
}

export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

export function baseName(path: string): string {
  return path.replace(/\/+$/, '').replace(/^.*\//, '');
}
