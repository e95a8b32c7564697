// What a ready step will ask of the world, with every hole filled, or why it cannot start.

import type { Json } from '../base/json.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { parseDuration } from '../base/time.ts';
import type { EffectSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import { failure } from '../ir/failure.ts';
import type { FilledText, Lookup, Text } from '../ir/text.ts';
import { fillString, fillValue } from '../ir/text.ts';
import { fillEffect } from './fill.ts';
import { lookupFrom } from './scope.ts';
import type { StepState } from './state.ts';
import type { Turn } from './turn.ts';

export interface Prepared {
  readonly effect: EffectSpec<FilledText> | null;
  readonly agent: string | null;
  readonly timeoutAt: number | null;
  readonly items: readonly Json[] | null;
}

export function prepare(turn: Turn, step: StepState): Result<Prepared, Failure> {
  const { definition } = step;
  const lookup = lookupFrom(turn.state, step.frame, step, turn.at);
  // An agent and a deadline belong to what the world is asked for, not to the blocks below a step.
  const asks = definition.act.kind === 'effect';
  const agent = definition.agent === null || !asks ? ok(null) : fillString(definition.agent, lookup);
  if (!agent.ok) return unresolved(agent.error);
  const timeoutAt = definition.timeout === null || !asks ? ok(null) : deadline(turn, definition.timeout, lookup);
  if (!timeoutAt.ok) return unresolved(timeoutAt.error);
  const rest = { agent: agent.value, timeoutAt: timeoutAt.value };
  switch (definition.act.kind) {
    case 'pass':
      return ok({ ...rest, effect: null, items: null });
    case 'effect': {
      const effect = fillEffect(definition.act.effect, lookup);
      return effect.ok ? ok({ ...rest, effect: effect.value, items: null }) : unresolved(effect.error);
    }
    case 'each': {
      const items = fillValue(definition.act.items, lookup);
      if (!items.ok) return unresolved(items.error);
      const list = asList(items.value);
      if (list === null) return err(failure('invalid-items', 'items is no list'));
      return ok({ ...rest, effect: null, items: list });
    }
  }
}

function unresolved(message: string): Result<never, Failure> {
  return err(failure('unresolved', message));
}

/** A list, also where it comes as JSON text: what a command wrote is text. */
function asList(value: Json): readonly Json[] | null {
  if (Array.isArray(value)) return value as readonly Json[];
  if (typeof value !== 'string') return null;
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) ? (parsed as readonly Json[]) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function deadline(turn: Turn, timeout: Text, lookup: Lookup): Result<number, string> {
  const text = fillString(timeout, lookup);
  if (!text.ok) return err(`timeout: ${text.error}`);
  const ms = parseDuration(text.value);
  return ms === null
    ? err(`timeout: ${JSON.stringify(text.value)} is no duration (write 30s, 5m, 2h)`)
    : ok(turn.at + ms);
}
