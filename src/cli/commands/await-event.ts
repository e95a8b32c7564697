// `meow await-event`: waits for an event of the run, and prints its data.

import { awaitEvent as requestEvent, messageOf, plainText } from '../../app/agent-requests.ts';
import { requireRunContext } from '../../app/run-context.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { readPairs } from '../flags.ts';
import { warn, printLine, printJson } from '../output.ts';

export async function awaitEvent(given: Given): Promise<number> {
  const [type = ''] = given.arguments;
  const wait = { type, filter: readPairs('filter', given.all('filter')), timeout: given.last('timeout') };
  const answer = await requestEvent(requireRunContext('await-event'), wait);
  switch (answer.kind) {
    case 'event-received':
    case 'event-match':
      if (given.has('json')) printJson({ type: answer.event_type, agent: answer.agent, data: answer.data });
      else for (const [name, value] of Object.entries(answer.data)) printLine(`${name}=${plainText(value)}`);
      return EXIT.done;
    case 'timeout':
    case 'released':
      warn(`meow: ${answer.message}`);
      return EXIT.failed;
    default:
      warn(`meow: ${messageOf(answer)}`);
      return EXIT.usage;
  }
}
