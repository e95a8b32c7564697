// A workflow as it is written: states with their texts, settings and policies, before anything is made of them.

import type { Place } from '../../base/source.ts';
import type { AllowedTransition, Machine } from '../../ir/machine.ts';
import type { TransitionTag } from '../../ir/tags.ts';
import type { Report } from '../report.ts';
import type { Settings } from './settings.ts';

/** A workflow, and the reports of its files in their order. */
export interface OpenedWorkflow {
  readonly workflow: WorkflowSyntax;
  readonly reports: readonly Report[];
}

/** For what is wrong with a file as a whole. */
export const WHOLE: Place = { from: 0, to: 1 };

export interface WorkflowSyntax {
  /** Tells it from all others. */
  readonly key: string;
  /** As the user knows it. */
  readonly name: string;
  /** For what concerns the whole. */
  readonly report: Report;
  /** By their names in full. */
  readonly states: ReadonlyMap<string, StateSyntax>;
  /** Null is reported. */
  readonly start: StateSyntax | null;
  readonly names: StateNames;
  readonly settings: Settings;
  readonly keepsCallers: boolean;
}

/** What tags may call them, and the ids of their steps, which are the names of their blocks. */
export type StateNames = Pick<Machine, 'states' | 'spellings'>;

export interface StateSyntax {
  /** In full: `REVIEW.md`. */
  readonly name: string;
  /** Without its extension. */
  readonly stem: string;
  readonly id: string;
  readonly report: Report;
  /** Where it begins. */
  readonly place: Place;
  readonly body: Body;
  readonly settings: Settings;
  readonly visits: Visits | null;
  /** Null where everything is allowed. */
  readonly policy: Policy | null;
  /** The tags that its text speaks of. */
  readonly mentionedTags: readonly MentionedTag[];
}

export type Body = PromptBody | ScriptBody;

export interface PromptBody {
  readonly kind: 'prompt';
  readonly text: string;
  readonly placeOf: PlaceOf;
}

export interface ScriptBody {
  readonly kind: 'script';
  /** For a shell. */
  readonly command: string;
}

/** Where a part of a text stands in the source. */
export type PlaceOf = (from: number, to: number) => Place;

export interface Visits {
  readonly max: number;
  /** The full name of the state that is entered instead. */
  readonly instead: string;
}

export interface Policy {
  readonly place: Place;
  readonly allowed: readonly AllowedSyntax[];
  readonly forced: boolean;
}

export interface AllowedSyntax extends AllowedTransition {
  readonly place: Place;
}

/** A tag that a text speaks of. */
export interface MentionedTag {
  readonly tag: TransitionTag;
  readonly place: Place;
  /** Between its ends; null where it leads back. */
  readonly target: Named | null;
  readonly return: Named | null;
  readonly next: Named | null;
  readonly timeoutNext: Named | null;
  /** Names of all its attributes. */
  readonly attributes: readonly string[];
  /** What is wrong with how it is written; null where nothing is. */
  readonly error: string | null;
}

export type Named =
  | { readonly kind: 'state'; readonly name: string }
  | { readonly kind: 'workflow'; readonly path: string }
  /** It stands for a name that is made up later. */
  | { readonly kind: 'open' }
  | { readonly kind: 'missing'; readonly written: string; readonly message: string };
