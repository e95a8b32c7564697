// The keys of `limits`.

import { DURATION, integer, key, type Key } from '../keys.ts';

export const TIME_LIMITS: readonly Key[] = [
  key('timeout', DURATION, 'Maximum total time of a turn, a validator or an evaluation; then killed_timeout.'),
  key('idle_timeout', DURATION, 'Maximum time without output; then killed_idle.'),
];

/** Only turns of agents cost something. */
export const COST_LIMITS: readonly Key[] = [
  key('max_tokens', integer(1), 'Tokens of a turn; more is killed_policy.'),
  key('max_cost_usd', { kind: 'number', above: 0 }, 'Cost of a turn in dollars; more is killed_policy.'),
];
