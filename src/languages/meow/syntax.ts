// A workflow as it was written: what lowering needs to know of all its parts before it lowers any, with places.

import type { Json } from '../../base/json.ts';
import type { Place } from '../../base/source.ts';
import type { ValueType } from '../../ir/output.ts';
import type { Report } from '../report.ts';
import type { TomlEntry, TomlString, TomlTable } from '../toml-tree.ts';

/** A list of steps that can be entered: a workflow, or the steps that stand inline where a branch leads. */
export interface BlockSyntax {
  /** Its name in the Program. */
  readonly name: string;
  /** Where its problems are reported. */
  readonly report: Report;
  /** The workflow that it is, or stands in. */
  readonly workflow: WorkflowSyntax;
  readonly place: Place;
  /** Empty where it stands inline: all that it sees is around it. */
  readonly variables: readonly VariableSyntax[];
  readonly steps: readonly StepSyntax[];
}

/** What is said of a workflow as a whole. */
export interface WorkflowSyntax {
  readonly name: string;
  /** Its header. */
  readonly place: Place;
  /** `internal = true`, where it says so. */
  readonly internal: Place | null;
  readonly cleanup: {
    readonly success: TomlString | null;
    readonly failure: TomlString | null;
    readonly stop: TomlString | null;
  };
  readonly drainMs: number | null;
  /** The adapter of agents that name none. */
  readonly defaultAdapter: TomlString | null;
}

export interface VariableSyntax {
  readonly name: string;
  readonly place: Place;
  readonly type: ValueType;
  /** Whether its value is the path of a file whose text is meant. */
  readonly isFile: boolean;
  readonly required: boolean;
  /** Whether one stands there, be it right or wrong. */
  readonly hasDefault: boolean;
  readonly fallback: FallbackSyntax | null;
  readonly description: string | null;
}

/** A default is data, or a text with references. */
export type FallbackSyntax =
  | { readonly kind: 'literal'; readonly value: Json }
  | { readonly kind: 'text'; readonly text: TomlString };

export interface StepSyntax {
  readonly id: string;
  readonly place: Place;
  /** Who runs it, or seems to be meant where that has been reported; null where it cannot be told. */
  readonly executor: string | null;
  readonly needs: readonly NeedSyntax[];
  /** All its keys, for its executor to read. */
  readonly table: TomlTable;
  /** Its outputs and their types; null where they cannot be known before it has run. */
  readonly outputs: ReadonlyMap<string, OutputType> | null;
  /** Where it may lead. */
  readonly targets: readonly TargetSyntax[];
  readonly canGrow: boolean;
}

/** The id of a step that has none, so that it can be told from others. */
export function placeholderId(index: number): string {
  return `?${String(index)}`;
}

export function isPlaceholder(id: string): boolean {
  return id.startsWith('?');
}

export type OutputType = ValueType | 'file_path';

export interface NeedSyntax {
  readonly text: string;
  readonly place: Place;
}

/** A block that a step leads to, and what it is handed. */
export interface TargetSyntax {
  readonly kind: 'expand' | 'branch' | 'each' | 'recover';
  /** The key that it stands under: `on_true`, `template`, `on_error`. */
  readonly key: string;
  readonly place: Place;
  readonly to:
    | { readonly kind: 'template'; readonly reference: TomlString }
    | { readonly kind: 'inline'; readonly block: BlockSyntax };
  readonly variables: readonly TomlEntry[];
  /** Names that it sees beside those that are handed to it: the item of a foreach. */
  readonly brings: readonly string[];
}
