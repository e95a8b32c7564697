// `meow event`, if bin/event.sh could not send the event without starting Node. It does not wait for an answer. An event
// that nobody can receive any more is not a failure of the hook that sent it.

import { emitEvent } from '../../app/agent-requests.ts';
import { runContext } from '../../app/run-context.ts';
import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { readPairs } from '../flags.ts';
import { warn } from '../output.ts';

export async function event(given: Given): Promise<number> {
  const [type = ''] = given.arguments;
  const data = readPairs('data', given.all('data'));
  if (type === '') throw new UsageError('an event needs a type', 'meow event TYPE [--data NAME=VALUE]…');
  const context = runContext();
  if (context === null) return EXIT.done;
  const sent = await emitEvent(context, type, data);
  if (!sent.ok) {
    warn(`meow: ${sent.error}`);
    return EXIT.failed;
  }
  if (!sent.value) warn(`meow: the event ${type} was not delivered: the run has ended`);
  return EXIT.done;
}
