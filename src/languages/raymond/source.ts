// What the language is handed: the files of a folder, or one file with all states; and how other workflows are found.

import type { Entered } from '../language.ts';

export type RaymondSource = FolderSource | SingleSource;

/** A folder of prompts and scripts. */
export interface FolderSource {
  readonly kind: 'folder';
  /** Tells it from other workflows, however they are reached: its real path. */
  readonly key: string;
  /** As the user knows it. */
  readonly name: string;
  readonly files: readonly RaymondFile[];
  /** The name of the file that it begins with; null: the one that is called START. */
  readonly start: string | null;
}

export interface RaymondFile {
  /** In its folder: `REVIEW.md`. */
  readonly name: string;
  /** As messages call it. */
  readonly file: string;
  /** Null where it is no text. */
  readonly text: string | null;
  readonly isExecutable: boolean;
  /** As a shell finds it, whatever folder it is in. */
  readonly path: string;
  /** Its real path is not in the folder. */
  readonly leadsOut: boolean;
}

/** A YAML file with `states:`. */
export interface SingleSource {
  readonly kind: 'single';
  readonly key: string;
  /** As messages call it. */
  readonly name: string;
  readonly text: string;
  readonly start: string | null;
}

/** Another workflow, as a path in one leads to it. */
export type Found = { readonly kind: 'raymond'; readonly source: RaymondSource } | Entered;

/** `from`: the workflow in which the path stands. Null where there is nothing. */
export type FindWorkflow = (from: RaymondSource, path: string) => Found | null;
