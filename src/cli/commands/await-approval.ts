// `meow await-approval`: asks for a gate on behalf of the step that it is called in, and waits until a person has decided.

import { ask } from '../../ipc/client.ts';
import { EXPIRED_STATUS } from '../../kernel/gates.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { complain, say } from '../say.ts';
import { noRun, requireSurroundings } from '../surroundings.ts';
import { readTimeout } from '../timeout.ts';

export async function awaitApproval(given: Given): Promise<number> {
  const [gate = ''] = given.arguments;
  // An engine that comes later must know that its time was up.
  const { fields, patience } = readTimeout(given.last('timeout'), 'when-late');
  const around = requireSurroundings('await-approval');
  const { workflow, step, attempt, agent } = around;
  const of = { workflow, step, attempt, agent };
  const message = { type: 'await_approval', ...of, gate_id: gate, prompt: given.last('prompt'), ...fields };
  const answer = await ask(around, message, patience);
  if (answer === null || (answer.kind === 'error' && answer.code === 'ended')) throw noRun(around);
  switch (answer.kind) {
    case 'gate-decided': {
      const said = answer.answer ?? answer.notes ?? '';
      if (said !== '') say(said);
      return answer.approved ? EXIT.done : EXIT.failed;
    }
    case 'timeout':
      complain(`meow: ${answer.message}`);
      return EXPIRED_STATUS;
    default:
      complain(`meow: ${'message' in answer ? answer.message : answer.kind}`);
      return EXIT.usage;
  }
}
