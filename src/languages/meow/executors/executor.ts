// Interface of executors, which executors.ts lists.

import type { Act, Step } from '../../../ir/program.ts';
import type { Text } from '../../../ir/text.ts';
import type { Report } from '../../report.ts';
import type { TomlTable } from '../../toml-tree.ts';
import type { Scope } from '../scope.ts';
import type { OutputType, StepSyntax, TargetSyntax } from '../syntax.ts';
import type { ReadInline } from '../target.ts';

export interface Executor {
  /** Its own keys, besides those of every step; `timeout` among them if it has one. */
  readonly keys: readonly string[];
  /** Meaning of `timeout`: the step's duration, something of its own, or nothing. */
  readonly timeout: 'step' | 'own' | 'none';
  /** Outputs that other steps may refer to. */
  readonly outputs: (step: TomlTable) => ReadonlyMap<string, OutputType>;
  /** Targets of its steps; absent if they cannot create other steps. */
  readonly targets?: (report: Report, step: TomlTable, readInline: ReadInline) => readonly TargetSyntax[];
  /** Null if the step cannot be lowered; that is reported. */
  readonly lower: (scope: Scope, step: StepSyntax) => LoweredAct | null;
}

/** The parts of a step that its executor decides. */
export interface LoweredAct {
  readonly act: Act;
  readonly routes?: Step['routes'];
  readonly agent?: Text;
}
