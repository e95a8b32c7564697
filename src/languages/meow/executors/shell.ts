// `shell`: a script, run by the shell of the project.

import { lowerCommand } from '../command.ts';
import { commandOutputs } from '../outputs.ts';
import type { Executor } from './executor.ts';
import { NO_TARGETS } from './executor.ts';

export const shell: Executor = {
  name: 'shell',
  keys: ['command', 'outputs', 'shell_outputs', 'workdir', 'env'],
  canGrow: false,
  timeout: 'step',
  outputs: (step) => commandOutputs(step),
  targets: NO_TARGETS,
  lower: (scope, { table }) => {
    const hint = 'A shell step runs a script: command = "make test".';
    const effect = lowerCommand(scope, table, { key: 'command', verdict: 'success', hint });
    return effect === null ? null : { act: { kind: 'effect', effect } };
  },
};
