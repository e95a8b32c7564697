// What it means that an agent has ended a turn. Pure.

import type { LimitPattern } from '../../../ir/adapter.ts';
import type { AgentLimit } from '../host.ts';
import { limitIn } from '../headless/limit.ts';
import type { Answered } from './conversation.ts';

export type TurnEnd =
  /** As it should: it has nothing more to do, as far as it knows. */
  | { readonly kind: 'rested' }
  | { readonly kind: 'limit'; readonly limit: AgentLimit }
  /** `reason`: a part of a sentence, about the agent. */
  | { readonly kind: 'broken'; readonly reason: string };

/** `now`: in milliseconds since 1970. */
export function turnEnd(
  { result, error, text, usage }: Answered,
  limits: readonly LimitPattern[],
  now: number,
): TurnEnd {
  // Some tell of it as if it were an answer. One that has cost something is an answer.
  const words = error?.message ?? (usage.tokens === null ? text : '');
  const limit = limitIn(words, limits, now);
  if (limit !== null) return { kind: 'limit', limit };
  if (error !== null) return broken(`ended its turn with an error: ${error.message}`);
  switch (result['stopReason']) {
    case 'end_turn':
      return { kind: 'rested' };
    case 'cancelled':
      return broken('left its work, for it was cancelled');
    case 'refusal':
      return broken(text === '' ? 'refuses to go on' : `refuses to go on: ${text}`);
    case 'max_tokens':
      return broken('has come to the end of the tokens that it may use in a turn (max_tokens)');
    case 'max_turn_requests':
      return broken('has asked its model as often as it may in a turn (max_turn_requests)');
    default:
      return broken(`ended its turn for a reason that is not known: ${JSON.stringify(result['stopReason'] ?? null)}`);
  }
}

function broken(reason: string): TurnEnd {
  return { kind: 'broken', reason };
}
