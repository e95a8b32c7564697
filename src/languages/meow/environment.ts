// `env` of a step: names and texts that a process finds in its environment.

import type { Text } from '../../ir/text.ts';
import { readEnvironment } from '../environment.ts';
import { tableAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import type { Scope } from './scope.ts';
import { lowerText } from './text.ts';

export function lowerEnvironment(scope: Scope, step: TomlTable): Readonly<Record<string, Text>> {
  const table = tableAt(scope.report, step, 'env', 'Write env = { NAME = "value" }.');
  return readEnvironment(scope.report, table, (string) => lowerText(scope, string));
}
