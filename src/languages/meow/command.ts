// Common parts of shell and branch: a script, its folder and environment, and its outputs.

import type { CommandSpec } from '../../ir/effect.ts';
import type { Text } from '../../ir/text.ts';
import { missing, stringAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import { lowerOutputs } from './outputs.ts';
import type { Scope } from './scope.ts';
import { lowerEnvironment, lowerScript, lowerText } from './text.ts';

export function lowerCommand(
  scope: Scope,
  step: TomlTable,
  { key, verdict, hint }: { key: 'command' | 'condition'; verdict: CommandSpec<Text>['verdict']; hint: string },
): CommandSpec<Text> | null {
  const { report } = scope;
  const script = stringAt(report, step, key);
  const workdir = stringAt(report, step, 'workdir');
  const rest = {
    cwd: workdir === null ? null : lowerText(scope, workdir),
    env: lowerEnvironment(scope, step),
    captures: lowerOutputs(scope, step),
    verdict,
  } as const;
  if (script === null) {
    if (!step.entries.has(key)) missing(report, step.place, 'this step', key, hint);
    return null;
  }
  if (script.value.trim() === '') {
    const cure = 'Write what the step shall run, or remove the step.';
    report.error('empty-command', script.place, `the ${key} is empty`, cure);
  }
  return {
    kind: 'command',
    script: lowerScript(scope, script),
    ...rest,
    errors: errorsOf(script.value, verdict),
    steering: null,
  };
}

/**
 * A script that only requests a gate reports by status 2 that the request failed, which is not a verdict. In other
 * scripts 2 can mean anything.
 */
function errorsOf(script: string, verdict: CommandSpec<Text>['verdict']): readonly number[] {
  const text = script.trim();
  const onlyAsks = /^(?:exec\s+)?meow\s+await-approval\b/.test(text) && !/[;&|\n]/.test(text);
  return verdict === 'condition' && onlyAsks ? [2] : [];
}
