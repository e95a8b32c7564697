// `meow await-approval`: opens a gate for the step that it is called in, and waits until a person has decided.

import { EXPIRED_EXIT_CODE, messageOf, requestApproval } from '../../app/agent-requests.ts';
import { requireRunContext } from '../../app/run-context.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { warn, printLine } from '../output.ts';

export async function awaitApproval(given: Given): Promise<number> {
  const [gate = ''] = given.arguments;
  const question = { gate, prompt: given.last('prompt'), timeout: given.last('timeout') };
  const answer = await requestApproval(requireRunContext('await-approval'), question);
  switch (answer.kind) {
    case 'gate-decided': {
      const text = answer.answer ?? answer.notes ?? '';
      if (text !== '') printLine(text);
      return answer.approved ? EXIT.done : EXIT.failed;
    }
    case 'timeout':
      warn(`meow: ${answer.message}`);
      return EXPIRED_EXIT_CODE;
    default:
      warn(`meow: ${messageOf(answer)}`);
      return EXIT.usage;
  }
}
