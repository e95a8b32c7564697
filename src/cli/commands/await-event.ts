// `meow await-event`: waits for an event of the run, and prints its data.

import { plainText } from '../../ir/text.ts';
import { ask, newMessageId } from '../../ipc/client.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { readPairs } from '../flags.ts';
import { complain, say, sayJson } from '../output.ts';
import { noRun, requireSurroundings } from '../../app/run-context.ts';
import { readTimeout } from '../../app/timeout.ts';

export async function awaitEvent(given: Given): Promise<number> {
  const [eventType = ''] = given.arguments;
  const filter = readPairs('filter', given.all('filter'));
  const { fields, patience } = readTimeout(given.last('timeout'), 'never');
  const around = requireSurroundings('await-event');
  const { workflow, step, attempt, agent } = around;
  const asking = newMessageId();
  const of = { workflow, step, attempt, agent };
  const message = { type: 'await_event', ...of, event_type: eventType, filter, asking, ...fields };
  const answer = await ask(around, message, patience);
  if (answer === null || (answer.kind === 'error' && answer.code === 'ended')) throw noRun(around);
  switch (answer.kind) {
    case 'event-received':
    case 'event-match':
      if (given.has('json')) sayJson({ type: answer.event_type, agent: answer.agent, data: answer.data });
      else for (const [name, value] of Object.entries(answer.data)) say(`${name}=${plainText(value)}`);
      return EXIT.done;
    case 'timeout':
    case 'released':
      complain(`meow: ${answer.message}`);
      return EXIT.failed;
    default:
      complain(`meow: ${'message' in answer ? answer.message : answer.kind}`);
      return EXIT.usage;
  }
}
