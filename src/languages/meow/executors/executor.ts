// The seam between steps and what runs them: one file for each executor, listed in executors.ts.

import type { Act } from '../../../ir/program.ts';
import type { Report } from '../../report.ts';
import type { TomlTable } from '../../toml-tree.ts';
import type { Scope } from '../scope.ts';

export interface Executor {
  readonly name: string;
  /** Its own keys, beside those of every step. */
  readonly keys: readonly string[];
  /** Whether its steps can bring others into being. */
  readonly canGrow: boolean;
  /** Names of the outputs that others may refer to; null where they cannot be known before it has run. */
  readonly outputs: (report: Report, step: TomlTable) => ReadonlySet<string> | null;
  /** Null where the step cannot be made; the report says why. */
  readonly lower: (scope: Scope, step: TomlTable) => Act | null;
}
