// Interface of workflow languages. A language is pure: it reads files only through a SourceReader, which the
// application implements over the file system and an editor over its buffers.
//
// To add a language: implement `Language` in a folder of its own, and add a line to languages/registry.ts.

import type { Json } from '../base/json.ts';
import type { Diagnostic } from '../base/source.ts';
import type { FailedStop } from '../ir/link.ts';
import type { Program, Source } from '../ir/program.ts';
import type { AdapterCatalog } from './adapter-catalog.ts';
import type { Config } from './config.ts';
import type { WrittenStep } from './outline.ts';
import type { Symbols } from './symbols.ts';

/** `S`: a workflow as read, with every file that it refers to in its own language. */
export interface Language<S = unknown> {
  readonly name: Source['language'];
  /** Whether a file may contain several workflows, named after `#`. */
  readonly hasSections: boolean;
  /** Checks a file or folder that exists. */
  detect(reader: SourceReader, path: string): Detection;
  load(reader: SourceReader, location: Location, values: Readonly<Record<string, Json>>): S;
  compile(source: S, context: CompileContext): Compiled;
  /** Reports every problem of the source, whichever part a run would use. */
  validate(source: S, context: CompileContext): Validated;
  /** For editors; absent: they show only its problems. `adapters`: their names. */
  symbols?(source: S, context: CompileContext, adapters: readonly string[]): Symbols;
}

/** `maybe`: no other language has such files, but an incomplete one of this language may look like this. */
export type Detection = 'yes' | 'maybe' | 'no';

export interface Location {
  /** Absolute. */
  readonly path: string;
  /** The path in messages. */
  readonly file: string;
  /** The name after `#`; null is the main workflow of the file. */
  readonly workflow: string | null;
  /** The state to begin with, as in `FILE.yaml/STATE`; absent: the workflow's own. */
  readonly state?: string;
}

/** `FILE.yaml/STATE` */
export const STATE_IN_FILE = /^(.*\.ya?ml)\/([^/]+)$/is;

export interface Compiled {
  /** Null if a diagnostic is an error. */
  readonly program: Program | null;
  readonly diagnostics: readonly Diagnostic[];
  /** Variables of the run whose value is the path of a file and means its text. */
  readonly fileVariables: readonly string[];
  /** Its steps and routes as written, with positions; absent without a Program. */
  readonly outline?: () => readonly WrittenStep[];
}

export interface Validated {
  readonly diagnostics: readonly Diagnostic[];
  /** Facts from outside of the file, one sentence each, such as the command that a validator runs. */
  readonly notes: readonly string[];
}

export interface CompileContext {
  readonly config: Config;
  readonly adapters: AdapterCatalog;
  /** Variables of the run; null if nothing will run, and every required one counts as given. */
  readonly given: Given | null;
  /** Prefix of step ids that count visits; empty unless another workflow enters this one. */
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
  /** Language of an absolute path; null if nothing is there that can be entered. */
  languageAt(path: string): string | null;
  /** Compiles the workflow at a path. `failedStop`: how the caller receives a failure. */
  enter(path: string, workflow: string | null, failedStop: FailedStop): Entered;
}

export type Entered =
  | {
      readonly kind: 'found';
      /** Name of its first block, until it is linked. */
      readonly entry: string;
      /** Required variables without a default. */
      readonly required: readonly string[];
      /** Ids of steps that are only numbered by visit (`fix#2`). */
      readonly visited: readonly string[];
    }
  /** Why it cannot be entered, as a sentence. */
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string };

/** Files as languages see them. Paths are absolute. Reading errors are thrown with a hint. */
export interface SourceReader {
  resolve(folder: string, path: string): string;
  folderOf(path: string): string;
  /** The path in messages: short, and usable in a shell. */
  shown(path: string): string;
  realPath(path: string): string;
  /** Null if nothing is there. An inaccessible path counts as a file: reading it reports the error. */
  kindOf(path: string): 'file' | 'folder' | null;
  /** The whole text of a file, which must be UTF-8. */
  text(path: string): string;
  /** The text of an optional file; null if absent or not readable. */
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
  /** Path below the folder of a run, of the copy that the run executes; absent: the file itself. */
  readonly stored?: string;
  /** Null if it is not text. */
  text(): string | null;
}

export interface SourceFolders {
  /** The folder in which commands run. */
  readonly work: string;
  /** The project, without symbolic links: the folder that contains `.meow`. */
  readonly project: string;
  /** Search folders for templates without a path. */
  readonly templates: readonly string[];
  /** Search folders for prompts, after the folder `prompts` next to the workflow. */
  readonly prompts: readonly string[];
  /** Base of `lib/…`. */
  readonly library: string;
}

export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

export function baseName(path: string): string {
  return path.replace(/\/+$/, '').replace(/^.*\//, '');
}
