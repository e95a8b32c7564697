// Input of the language: the files of a folder, or one file with all states; and how other workflows are found.

import { quote } from '../../ir/quote.ts';
import type { Entered } from '../language.ts';

export type RaymondSource = FolderSource | SingleSource;

/** A folder of prompts and scripts. */
export interface FolderSource {
  readonly kind: 'folder';
  /** Identifies it, however it is reached: its real path. */
  readonly key: string;
  /** As the user knows it. */
  readonly name: string;
  readonly files: readonly RaymondFile[];
  /** File name of the first state; null: the state START. */
  readonly start: string | null;
}

export interface RaymondFile {
  /** In its folder: `REVIEW.md`. */
  readonly name: string;
  /** Name in messages. */
  readonly file: string;
  /** Null if it is not text. */
  readonly text: string | null;
  readonly isExecutable: boolean;
  /** Path for a shell, independent of its folder. */
  readonly path: string;
  /** Its real path is outside of the folder. */
  readonly leadsOut: boolean;
}

/** A YAML file with `states:`. */
export interface SingleSource {
  readonly kind: 'single';
  readonly key: string;
  /** Name in messages. */
  readonly name: string;
  readonly text: string;
  readonly start: string | null;
}

/** Another workflow, found by its path. */
export type Found = { readonly kind: 'raymond'; readonly source: RaymondSource } | Entered;

/** `from`: the referring workflow. Null if nothing is there. */
export type FindWorkflow = (from: RaymondSource, path: string) => Found | null;

// How scripts are run: with bash, or with sh if bash is missing.

const BASH = '"$(command -v bash || echo sh)"';

/** Runs in its own folder, so that it finds files next to it. With bash, unless it has a `#!` and is executable. */
export function fileCommand({ name, text, path, isExecutable }: RaymondFile): string {
  const runsItself = isExecutable && (!/\.sh$/i.test(name) || text === null || text.startsWith('#!'));
  return runsItself ? `exec ${word(path)}` : `exec ${BASH} ${word(path)}`;
}

export function textCommand(script: string): string {
  return `exec ${BASH} -c ${word(script)}`;
}

/** A shell cannot run text with a NUL byte. */
function word(text: string): string {
  const quoted = quote(text, [{ kind: 'quoted' }]);
  return quoted.ok ? quoted.value : "''";
}
