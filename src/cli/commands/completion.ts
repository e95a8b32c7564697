// `meow completion`: prints the script that completes the command line in a shell.

import { UsageError } from '../../base/errors.ts';
import { type CompletedCommand, completionScript, SHELLS } from '../completion.ts';
import { EXIT, print } from '../output.ts';

export function completion(commands: readonly CompletedCommand[], wanted: string): number {
  const shell = SHELLS.find((each) => each === wanted);
  if (shell === undefined) {
    throw new UsageError(`there is no completion for ${JSON.stringify(wanted)}`, `it is one of ${SHELLS.join(', ')}`);
  }
  print(completionScript(shell, commands));
  return EXIT.done;
}
