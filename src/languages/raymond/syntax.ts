// A workflow as written: states with their texts, settings and policies.

import type { Place } from '../../base/source.ts';
import type { AllowedTransition, Machine } from '../../ir/machine.ts';
import type { TransitionTag } from '../../ir/tags.ts';
import type { Report } from '../report.ts';
import type { YamlMap } from '../yaml-tree.ts';
import type { Settings } from './settings.ts';

/** Position for errors of a whole file. */
export const WHOLE: Place = { from: 0, to: 1 };

export const NO_KEYS: YamlMap = { kind: 'map', place: WHOLE, entries: new Map() };

export interface WorkflowSyntax {
  /** Identifies it. */
  readonly key: string;
  /** As the user knows it. */
  readonly name: string;
  /** For problems of the whole workflow. */
  readonly report: Report;
  /** Of all its files, in order. */
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
  /** Its start. */
  readonly place: Place;
  readonly body: Body;
  /** Its front matter, or the keys beside its text. */
  readonly keys: YamlMap;
  readonly settings: Settings;
  readonly visits: Visits | null;
  /** Null if everything is allowed. */
  readonly policy: Policy | null;
  /** Tags that its text mentions. */
  readonly mentionedTags: readonly MentionedTag[];
}

/** `command`: for a shell. */
export type Body = { readonly text: string; readonly placeOf: PlaceOf } & (
  | { readonly kind: 'prompt' }
  | { readonly kind: 'script'; readonly command: string }
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

export function isFork(tag: TransitionTag): boolean {
  return tag === 'fork' || tag === 'fork-workflow';
}

/** A tag mentioned in a text. */
export interface MentionedTag {
  readonly tag: TransitionTag;
  readonly place: Place;
  /** Its content; null for a return. */
  readonly target: Named | null;
  readonly return: Named | null;
  readonly next: Named | null;
  readonly timeoutNext: Named | null;
  /** Names of all its attributes. */
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
