// A workflow as written, with positions: what lowering must know of all parts before it lowers any.

import type { Json } from '../../base/json.ts';
import type { Place } from '../../base/source.ts';
import type { ValueType } from '../../ir/output.ts';
import type { Report } from '../report.ts';
import type { TomlEntry, TomlString, TomlTable } from '../toml-tree.ts';

/** A list of steps that can be entered: a workflow, or inline steps. */
export interface BlockSyntax {
  /** Its name in the Program. */
  readonly name: string;
  readonly report: Report;
  /** The key of a step that its inline steps are under; null for a workflow. */
  readonly key: string | null;
  /** The workflow that it is or belongs to. */
  readonly workflow: WorkflowSyntax;
  readonly place: Place;
  /** Empty for inline steps, which see everything around them. */
  readonly variables: readonly VariableSyntax[];
  readonly steps: readonly StepSyntax[];
  readonly byId: ReadonlyMap<string, StepSyntax>;
}

export interface WorkflowSyntax {
  readonly name: string;
  /** Its header. */
  readonly place: Place;
  /** Position of `internal = true`; null if absent. */
  readonly internal: Place | null;
  readonly cleanup: {
    readonly success: TomlString | null;
    readonly failure: TomlString | null;
    readonly stop: TomlString | null;
  };
  readonly drainMs: number | null;
  readonly defaultAdapter: TomlString | null;
}

export interface VariableSyntax {
  readonly name: string;
  readonly place: Place;
  readonly type: ValueType;
  /** Its value is the path of a file and means its text. */
  readonly isFile: boolean;
  readonly required: boolean;
  /** Whether a default is written, valid or not. */
  readonly hasDefault: boolean;
  /** Data, or a text with references. */
  readonly fallback:
    | { readonly kind: 'literal'; readonly value: Json }
    | { readonly kind: 'text'; readonly text: TomlString }
    | null;
  readonly description: string | null;
  /** The environment variable that has its value; absent: it is no secret, null: none was named. */
  readonly secret?: string | null;
}

export interface StepSyntax {
  readonly id: string;
  readonly place: Place;
  /** Its executor, or the likely one after an error; null if unknown. */
  readonly executor: string | null;
  readonly needs: readonly NeedSyntax[];
  /** All its keys, for its executor to read. */
  readonly table: TomlTable;
  /** Its outputs and their types; null if unknown before it has run. */
  readonly outputs: ReadonlyMap<string, OutputType> | null;
  readonly targets: readonly TargetSyntax[];
  readonly canGrow: boolean;
}

/** Id of a step without one, to tell it from others. */
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

/** A block that a step enters, with the passed variables. */
export interface TargetSyntax {
  /** A loop has three: `round`, `check` (the condition before or after a round) and `exhausted` (after the last round). */
  readonly kind: 'expand' | 'branch' | 'each' | 'recover' | 'round' | 'check' | 'exhausted';
  /** The key it is written under: `on_true`, `template`, `on_error`. */
  readonly key: string;
  readonly place: Place;
  readonly to:
    | { readonly kind: 'template'; readonly reference: TomlString }
    | { readonly kind: 'inline'; readonly block: BlockSyntax };
  readonly variables: readonly TomlEntry[];
  /** Variables besides those passed: the item of a foreach, the number of a round. */
  readonly brings: readonly string[];
}
