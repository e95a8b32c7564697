// The seam between steps and what runs them: one file for each executor, listed in executors.ts.

import type { Act, Step } from '../../../ir/program.ts';
import type { Text } from '../../../ir/text.ts';
import type { Report } from '../../report.ts';
import type { TomlTable } from '../../toml-tree.ts';
import type { Scope } from '../scope.ts';
import type { OutputType, StepSyntax, TargetSyntax } from '../syntax.ts';
import type { ReadInline } from '../target.ts';

export interface Executor {
  readonly name: string;
  /** Its own keys, beside those of every step. */
  readonly keys: readonly string[];
  /** Whether its steps can bring others into being. */
  readonly canGrow: boolean;
  /** What `timeout` means: how long the step may take, something of its own, or nothing. */
  readonly timeout: 'step' | 'own' | 'none';
  /** The outputs that others may refer to. */
  readonly outputs: (step: TomlTable) => ReadonlyMap<string, OutputType>;
  /** Where its steps may lead. */
  readonly targets: (report: Report, step: TomlTable, readInline: ReadInline) => readonly TargetSyntax[];
  /** Null where the step cannot be made; the report says why. */
  readonly lower: (scope: Scope, step: StepSyntax) => LoweredAct | null;
}

/** What of a step its executor decides. */
export interface LoweredAct {
  readonly act: Act;
  readonly routes?: Step['routes'];
  readonly agent?: Text;
}

export const NO_OUTPUTS: ReadonlyMap<string, OutputType> = new Map();
export const NO_TARGETS = (): readonly TargetSyntax[] => [];
