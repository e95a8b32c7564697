// `meow event`, where it could not be done without starting a program (bin/event.sh). Whoever calls it does not wait, and
// is not held up: an event that nobody can hear any more is no failure of the hook that sent it.

import type { JsonMap } from '../../base/json.ts';
import type { Result } from '../../base/result.ts';
import { err, ok } from '../../base/result.ts';
import { UsageError } from '../../base/usage-error.ts';
import { askSocket, leave, newMessageId } from '../../ipc/client.ts';
import { errorAnswer, parseMessage } from '../../ipc/protocol.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { readPairs } from '../flags.ts';
import { complain } from '../output.ts';
import type { Surroundings } from '../../app/run-context.ts';
import { surroundings } from '../../app/run-context.ts';

const SHOWN_MAX = 40;

export async function event(given: Given): Promise<number> {
  const [type = ''] = given.arguments;
  const data = readPairs('data', given.all('data'));
  if (type === '') throw new UsageError('an event needs a type', 'meow event TYPE [--data NAME=VALUE]…');
  const around = surroundings();
  if (around === null) return EXIT.done;
  const heard = await emit(around, type, data);
  if (!heard.ok) {
    complain(`meow: ${heard.error}`);
    return EXIT.failed;
  }
  if (!heard.value) complain(`meow: ${unheard(type)}`);
  return EXIT.done;
}

/** Whether there is somebody to hear it, now or later. An error is a sentence. */
export async function emit(around: Surroundings, type: string, data: JsonMap): Promise<Result<boolean, string>> {
  const { workflow, agent } = around;
  const message = { type: 'event', id: newMessageId(), workflow, agent, event_type: type, data };
  // What the engine would refuse is refused here, whether or not there is one.
  const problem = parseMessage(JSON.stringify(message), workflow ?? '');
  const answer = problem.ok ? await askSocket(around, message) : errorAnswer(problem.error, 'malformed');
  if (answer?.kind === 'error' && answer.code === 'malformed') {
    return err(`the event ${JSON.stringify(type.slice(0, SHOWN_MAX))} is refused: ${answer.message}`);
  }
  return ok(answer?.kind === 'ack' || leave(around, message));
}

export function unheard(type: string): string {
  return `nobody hears the event ${type} any more`;
}
