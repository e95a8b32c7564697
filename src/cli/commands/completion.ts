// `meow completion`: prints the script that completes the command line in a shell.

import { builtInAdapters } from '../../app/adapters.ts';
import { UsageError } from '../../base/errors.ts';
import { type CompletedCommand, completionScript, SHELLS } from '../completion.ts';
import { EXIT, print } from '../output.ts';
import { templateNames } from './init.ts';
import { STATUSES } from './list.ts';

export function completion(commands: readonly CompletedCommand[], wanted: string): number {
  const shell = SHELLS.find((each) => each === wanted);
  if (shell === undefined) {
    throw new UsageError(`there is no completion for ${JSON.stringify(wanted)}`, `it is one of ${SHELLS.join(', ')}`);
  }
  const names = { adapters: builtInAdapters(), statuses: STATUSES, templates: templateNames() };
  print(completionScript(shell, commands, names));
  return EXIT.done;
}
