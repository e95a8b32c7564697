// `shell`: a script, run by the shell of the project.

import type { CommandSpec } from '../../../ir/effect.ts';
import type { Text } from '../../../ir/text.ts';
import type { TomlTable } from '../../toml-tree.ts';
import { describeToml } from '../../toml-tree.ts';
import { missing, stringAt, tableAt } from '../../toml-fields.ts';
import { lowerOutputs, outputNames } from '../outputs.ts';
import type { Scope } from '../scope.ts';
import { lowerScript, lowerText } from '../text.ts';
import type { Executor } from './executor.ts';

export const shell: Executor = {
  name: 'shell',
  keys: ['command', 'outputs', 'shell_outputs', 'workdir', 'env'],
  canGrow: false,
  outputs: (_report, step) => outputNames(step),
  lower: (scope, step) => {
    const effect = lowerCommand(scope, step);
    return effect === null ? null : { kind: 'effect', effect };
  },
};

function lowerCommand(scope: Scope, step: TomlTable): CommandSpec<Text> | null {
  const { report } = scope;
  const command = stringAt(report, step, 'command');
  const workdir = stringAt(report, step, 'workdir');
  const rest = {
    cwd: workdir === null ? null : lowerText(scope, workdir),
    env: lowerEnvironment(scope, step),
    captures: lowerOutputs(scope, step),
    verdict: 'success',
  } as const;
  if (command === null) {
    if (!step.entries.has('command'))
      missing(report, step.place, 'this step', 'command', 'A shell step runs a script: command = "make test".');
    return null;
  }
  if (command.value.trim() === '') {
    report.error(
      'empty-command',
      command.place,
      'the command is empty',
      'Write what the step shall run, or remove the step.',
    );
  }
  return { kind: 'command', script: lowerScript(scope, command), ...rest };
}

function lowerEnvironment(scope: Scope, step: TomlTable): Readonly<Record<string, Text>> {
  const { report } = scope;
  const table = tableAt(report, step, 'env', 'Write env = { NAME = "value" }.');
  const env: [string, Text][] = [];
  for (const { key, keyPlace, value } of table?.entries.values() ?? []) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
      const hint = 'It is made of letters, digits and _, and does not begin with a digit.';
      report.error('invalid-name', keyPlace, `"${key}" is no name for an environment variable`, hint);
    } else if (key.startsWith('MEOW_')) {
      const message = `"${key}" is set by meow itself, which overwrites this value`;
      report.warning('reserved-name', keyPlace, message, 'Names that begin with MEOW_ are reserved; choose another.');
    }
    if (value.kind === 'string') env.push([key, lowerText(scope, value)]);
    else if (value.kind === 'list' || value.kind === 'table') {
      const message = `"${key}" must be a string, got ${describeToml(value)}`;
      report.error('wrong-type', value.place, message, 'The environment holds texts only; write JSON in quotes.');
    } else env.push([key, String(value.value)]);
  }
  return Object.fromEntries(env);
}
