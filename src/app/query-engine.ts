// A question that only a living engine can answer, and at once. Who asks does not wait for one that may never come.

import type { JsonMap } from '../base/json.ts';
import type { Reach } from '../ipc/client.ts';
import { ask, askSocket, mayBeHeld } from '../ipc/client.ts';
import type { Answer } from '../ipc/protocol.ts';

/** By the inbox, for an engine that is there and has no socket that we can reach. */
const PATIENCE_MS = 2_000;

/** Null where no engine answers. `gone`: see Patience. */
export async function askSoon(reach: Reach, message: JsonMap, gone?: AbortSignal): Promise<Answer | null> {
  const { inbox } = reach;
  if (inbox === null || !mayBeHeld(inbox)) return askSocket(reach, message, gone);
  const answer = await ask(reach, message, { until: Date.now() + PATIENCE_MS, stays: 'never', gone });
  if (answer?.kind === 'timeout' || (answer?.kind === 'error' && answer.code === 'ended')) return null;
  return answer;
}
