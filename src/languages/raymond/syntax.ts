// A workflow as written: the files it is read from, and its states with their texts, settings and policies.

import type { Place } from '../../base/source.ts';
import type { AllowedTransition, Machine } from '../../ir/machine.ts';
import type { TransitionTag } from '../../ir/tags.ts';
import type { Text } from '../../ir/text.ts';
import type { Entered, FolderFile } from '../language.ts';
import type { Report } from '../report.ts';
import type { YamlMap } from '../yaml-tree.ts';
import type { Settings } from './settings.ts';

export interface WorkflowSyntax extends Pick<AnySource, 'key' | 'name'> {
  /** For problems of the whole workflow. */
  readonly report: Report;
  /** Reports of all its files, in order. */
  readonly reports: readonly Report[];
  /** By full name. */
  readonly states: ReadonlyMap<string, StateSyntax>;
  /** Null is reported. */
  readonly start: StateSyntax | null;
  readonly names: StateNames;
  readonly settings: Settings;
  /** In dollars; null: unlimited. */
  readonly budget: number | null;
  readonly keepsCallers: boolean;
}

/** Names that tags may use, and the ids of their steps, which are also the names of their blocks. */
export type StateNames = Pick<Machine, 'states' | 'spellings'>;

export interface StateSyntax {
  /** Full name: `REVIEW.md`. */
  readonly name: string;
  /** Without its extension. */
  readonly stem: string;
  readonly id: string;
  readonly report: Report;
  readonly place: Place;
  readonly body: Body;
  /** Its front matter, or the keys beside its text. */
  readonly keys: YamlMap;
  readonly settings: Settings;
  readonly visits: Visits | null;
  /** Null if everything is allowed. */
  readonly policy: Policy | null;
  readonly mentionedTags: readonly MentionedTag[];
}

/** `command`: for a shell. */
export type Body = { readonly text: string; readonly placeOf: PlaceOf } & (
  | { readonly kind: 'prompt' }
  | { readonly kind: 'script'; readonly command: Text }
);

/** Position of a part of a text in the source. */
export type PlaceOf = (from: number, to: number) => Place;

export interface Visits {
  readonly max: number;
  /** Full name of the state entered instead. */
  readonly instead: string;
}

export interface Policy {
  readonly place: Place;
  readonly allowed: readonly AllowedSyntax[];
  readonly forced: boolean;
}

export type AllowedSyntax = AllowedTransition & { readonly place: Place };

export interface MentionedTag {
  readonly tag: TransitionTag;
  readonly place: Place;
  /** Its content; null for a return. */
  readonly target: Named | null;
  readonly return: Named | null;
  readonly next: Named | null;
  readonly timeoutNext: Named | null;
  readonly attributes: readonly string[];
  /** Error in its syntax; null if there is none. */
  readonly error: string | null;
}

export type Named =
  | { readonly kind: 'state'; readonly name: string }
  | { readonly kind: 'workflow'; readonly path: string }
  /** A name that is computed later. */
  | { readonly kind: 'open' }
  | { readonly kind: 'missing'; readonly written: string; readonly message: string };

export type RaymondSource = FolderSource | SingleSource;

interface AnySource {
  /** Identifies it, however it is reached: its real path. */
  readonly key: string;
  /** As the user knows it. */
  readonly name: string;
  /** The first state; null: the state START. */
  readonly start: string | null;
}

/** A folder of prompts and scripts. */
export interface FolderSource extends AnySource {
  readonly kind: 'folder';
  readonly files: readonly RaymondFile[];
}

/** A YAML file with `states:`. */
export interface SingleSource extends AnySource {
  readonly kind: 'single';
  readonly text: string;
}

export interface RaymondFile extends Omit<FolderFile, 'text' | 'bytes'> {
  /** Name in messages. */
  readonly file: string;
  /** Null if it is not text. */
  readonly text: string | null;
  /** Its real path is outside of the folder. */
  readonly leadsOut: boolean;
}

/** Another workflow, found by its path. */
export type Found = { readonly kind: 'raymond'; readonly source: RaymondSource } | Entered;

/** `from`: the referring workflow. Null if nothing is there. */
export type FindWorkflow = (from: RaymondSource, path: string) => Found | null;
