// A workflow as it was written: what lowering needs to know of all its parts before it lowers any, with places.

import type { Json } from '../../base/json.ts';
import type { Place } from '../../base/source.ts';
import type { ValueType } from '../../ir/output.ts';
import type { TomlString, TomlTable } from '../toml-tree.ts';

export interface WorkflowSyntax {
  readonly name: string;
  /** Its header. */
  readonly place: Place;
  /** `internal = true`, where it says so. */
  readonly internal: Place | null;
  readonly variables: readonly VariableSyntax[];
  readonly steps: readonly StepSyntax[];
  readonly cleanup: {
    readonly success: TomlString | null;
    readonly failure: TomlString | null;
    readonly stop: TomlString | null;
  };
  readonly drainMs: number | null;
}

export interface VariableSyntax {
  readonly name: string;
  readonly place: Place;
  readonly type: ValueType;
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
  /** Names of its outputs; null where they cannot be known before it has run. */
  readonly outputs: ReadonlySet<string> | null;
  readonly canGrow: boolean;
}

export interface NeedSyntax {
  readonly text: string;
  readonly place: Place;
}
