// `meow session-id`: the session of an agent, for a workflow that goes on in it later.

import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { askSoon } from '../../app/query-engine.ts';
import { complain, say } from '../output.ts';
import { noRun, requireSurroundings } from '../../app/run-context.ts';

export async function sessionId(given: Given): Promise<number> {
  const around = requireSurroundings('session-id');
  const agent = given.last('agent') ?? around.agent;
  if (agent === null) throw new UsageError('nobody says which agent is meant', 'meow session-id --agent NAME');
  const answer = await askSoon(around, { type: 'get_session_id', workflow: around.workflow, agent });
  if (answer === null) throw noRun(around);
  if (answer.kind === 'session-id') {
    say(answer.session_id);
    return EXIT.done;
  }
  complain(`meow: ${'message' in answer ? answer.message : answer.kind}`);
  return EXIT.failed;
}
