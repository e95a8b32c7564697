// `meow ui`: serves the page, or saves a run as a page.

import { UsageError } from '../../base/errors.ts';
import { uiExport } from './ui-export.ts';
import { serveUi, type ServeFlags } from './ui-serve.ts';

export async function ui(
  action: string | undefined,
  run: string | undefined,
  { withOutputs, ...flags }: ServeFlags & { readonly withOutputs?: true },
): Promise<number> {
  if (action === undefined) {
    if (withOutputs) throw new UsageError('--with-outputs is for saving a run', 'meow ui export ID --with-outputs');
    return serveUi(flags);
  }
  if (action !== 'export') {
    throw new UsageError(
      `meow ui has no action ${JSON.stringify(action)}`,
      'serve the page: meow ui; save a run as a file: meow ui export ID > run.html',
    );
  }
  if (run === undefined) throw new UsageError('meow ui export needs the id of a run', 'runs: meow list');
  const [other] = Object.keys(flags);
  if (other !== undefined) throw new UsageError('meow ui export serves nothing', 'leave out the flags of meow ui');
  return uiExport(run, withOutputs ? { withOutputs } : {});
}
