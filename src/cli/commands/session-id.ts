// `meow session-id`: prints the id of an agent's session, for a workflow that continues it later.

import { messageOf, sessionIdOf } from '../../app/agent-requests.ts';
import { requireRunContext } from '../../app/run-context.ts';
import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { warn, printLine } from '../output.ts';

export async function sessionId(given: Given): Promise<number> {
  const context = requireRunContext('session-id');
  const agent = given.last('agent') ?? context.agent;
  if (agent === null) throw new UsageError('which agent?', 'meow session-id --agent NAME');
  const answer = await sessionIdOf(context, agent);
  if (answer.kind === 'session-id') {
    printLine(answer.session_id);
    return EXIT.done;
  }
  warn(`meow: ${messageOf(answer)}`);
  return EXIT.failed;
}
