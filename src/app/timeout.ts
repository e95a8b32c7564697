// How long a command waits for its answer. The engine keeps the time; where none is there, the command does so itself, a
// little later.

import type { JsonMap } from '../base/json.ts';
import { parseDuration } from '../base/time.ts';
import { UsageError } from '../base/usage-error.ts';
import type { Patience } from '../ipc/client.ts';

const LATER_MS = 2_000;

/** `stays`: see Patience. */
export function readTimeout(
  text: string | null,
  stays: Patience['stays'],
): { readonly fields: JsonMap; readonly patience: Patience } {
  if (text === null) return { fields: {}, patience: { until: null, stays } };
  const ms = parseDuration(text);
  if (ms === null) throw new UsageError(`${JSON.stringify(text)} is no duration`, 'write it as 30s, 5m or 1h30m');
  const deadline = Date.now() + ms;
  return { fields: { timeout_ms: ms, deadline }, patience: { until: deadline + LATER_MS, stays } };
}
