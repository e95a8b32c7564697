// `meow await-approval`: asks for a gate on behalf of the step that it is called in, and waits until a person has decided.

import { ask } from '../../ipc/client.ts';
import type { Answer } from '../../ipc/protocol.ts';
import { EXPIRED_STATUS } from '../../kernel/gates.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { complain, say } from '../output.ts';
import type { Surroundings } from '../../app/run-context.ts';
import { noRun, requireSurroundings } from '../../app/run-context.ts';
import { readTimeout } from '../../app/timeout.ts';

export interface Question {
  readonly gate: string;
  /** What people are asked. */
  readonly prompt: string | null;
  /** As it was written. */
  readonly timeout: string | null;
}

export async function awaitApproval(given: Given): Promise<number> {
  const [gate = ''] = given.arguments;
  const question = { gate, prompt: given.last('prompt'), timeout: given.last('timeout') };
  const answer = await askPeople(requireSurroundings('await-approval'), question);
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

/** `gone`: see Patience. */
export async function askPeople(around: Surroundings, question: Question, gone?: AbortSignal): Promise<Answer> {
  // An engine that comes later must know that its time was up.
  const { fields, patience } = readTimeout(question.timeout, 'when-late');
  const { workflow, step, attempt, agent } = around;
  const of = { workflow, step, attempt, agent };
  const message = { type: 'await_approval', ...of, gate_id: question.gate, prompt: question.prompt, ...fields };
  const answer = await ask(around, message, { ...patience, gone });
  if (answer === null || (answer.kind === 'error' && answer.code === 'ended')) throw noRun(around);
  return answer;
}
