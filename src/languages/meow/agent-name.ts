// `agent = "worker-{{i}}"`: the agent of a step.

import type { Text } from '../../ir/text.ts';
import { missing, stringAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import type { Scope } from './scope.ts';
import { lowerText } from './text.ts';

/** Null if none is named; that is reported. */
export function lowerAgent(scope: Scope, step: TomlTable, hint: string): Text | null {
  const { report } = scope;
  const agent = stringAt(report, step, 'agent');
  if (agent === null) {
    if (!step.entries.has('agent')) missing(report, step.place, 'this step', 'agent', hint);
    return null;
  }
  if (agent.value.trim() !== '') return lowerText(scope, agent);
  report.error('invalid-value', agent.place, 'the name of the agent is empty', hint);
  return null;
}
