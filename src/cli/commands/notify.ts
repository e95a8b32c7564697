// `meow notify`: tries the channels of notifications.

import { findProject } from '../../app/project.ts';
import { testNotifications } from '../../app/sender/test-notification.ts';
import { readSettings } from '../../app/sources.ts';
import { UsageError } from '../../base/errors.ts';
import { sanitize } from '../../base/sanitize.ts';
import { hasErrors } from '../../base/source.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printJson, printLine } from '../output.ts';
import { paletteFor, printDiagnostics } from '../terminal.ts';

export async function notify(action: string, flags: Switches<'json'>): Promise<number> {
  if (action !== 'test')
    throw new UsageError(`meow notify cannot ${JSON.stringify(action)}`, 'to try all channels: meow notify test');
  const project = findProject();
  const { diagnostics } = readSettings(project);
  printDiagnostics(diagnostics, paletteFor(process.stderr));
  if (hasErrors(diagnostics)) return EXIT.failed;
  const tested = await testNotifications(project);
  if (flags.json) printJson(tested);
  else
    for (const { channel, error } of tested)
      printLine(`${channel}: ${error === null ? 'accepted' : `not accepted: ${sanitize(error)}`}`);
  return tested.every(({ accepted }) => accepted) ? EXIT.done : EXIT.failed;
}
