// `meow ui`: the page.

import { UsageError } from '../../base/errors.ts';
import { uiExport } from './ui-export.ts';

export async function ui(
  action: string | undefined,
  run: string | undefined,
  options: Parameters<typeof uiExport>[1],
): Promise<number> {
  if (action !== 'export') {
    const what = action === undefined ? 'meow ui needs an action' : `meow ui has no action ${JSON.stringify(action)}`;
    throw new UsageError(what, 'save a run as a file: meow ui export ID > run.html');
  }
  if (run === undefined) throw new UsageError('meow ui export needs the id of a run', 'runs: meow list');
  return uiExport(run, options);
}
