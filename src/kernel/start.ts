// What a ready step will ask of the world, with every hole filled, or why it cannot start.

import type { Json } from '../base/json.ts';
import { readJsonText } from '../base/json-text.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { parseDuration } from '../base/time.ts';
import type { EffectSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import { failure } from '../ir/failure.ts';
import type { Each } from '../ir/program.ts';
import type { FilledText, Lookup, Text } from '../ir/text.ts';
import { fillString, fillValue, keptFileOf } from '../ir/text.ts';
import { fillEffect } from './fill.ts';
import { lookupFrom, shape } from './scope.ts';
import type { StepState } from './state.ts';
import type { Turn } from './deciding.ts';

export interface Prepared {
  readonly effect: EffectSpec<FilledText> | null;
  readonly agent: string | null;
  readonly timeoutAt: number | null;
  readonly items: readonly Json[] | null;
  readonly width: number | null;
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
  const rest = { agent: agent.value, timeoutAt: timeoutAt.value, effect: null, items: null, width: null };
  switch (definition.act.kind) {
    case 'pass':
    case 'block':
      return ok(rest);
    case 'effect': {
      const effect = fillEffect(definition.act.effect, lookup);
      if (!effect.ok) return unresolved(effect.error);
      const name = rest.agent ?? agentOf(effect.value);
      if (name === '') return unresolved('agent: its name is empty');
      if (effect.value.kind === 'prompt' && effect.value.prompt === '') return unresolved('prompt: it is empty');
      return ok({ ...rest, effect: reprompted(turn, step, effect.value), agent: name });
    }
    case 'each': {
      const width = widthOf(definition.act, lookup);
      if (!width.ok) return unresolved(width.error);
      const items = itemsOf(definition.act, lookup);
      return items.ok ? ok({ ...rest, width: width.value, ...items.value }) : items;
    }
  }
}

/**
 * In the session of the attempt before, which knows what is asked; where it has none, that is told again. In a block that
 * performs a step, what that step is told.
 */
function reprompted(
  { state }: Turn,
  { reprompt: own, frame }: StepState,
  effect: EffectSpec<FilledText>,
): EffectSpec<FilledText> {
  const performed = frame.join === 'answer' ? state.steps.get(frame.owner ?? '') : undefined;
  const reprompt = own ?? performed?.reprompt ?? null;
  if (reprompt === null || effect.kind !== 'turn') return effect;
  if (frame.nextSession.kind === 'resume') return { ...effect, prompt: reprompt };
  const prompt = typeof effect.prompt === 'string' ? [effect.prompt] : effect.prompt;
  return { ...effect, prompt: [...prompt, `\n\n${reprompt}`] };
}

/** The agent that an effect is about, whether or not it has to be free for it. */
function agentOf(effect: EffectSpec<FilledText>): string | null {
  return 'agent' in effect && typeof effect.agent === 'string' ? effect.agent : null;
}

/** The list, or the effect that reads it. */
function itemsOf(each: Each, lookup: Lookup): Result<Pick<Prepared, 'items' | 'effect'>, Failure> {
  if (each.items.kind === 'file') {
    const path = fillString(each.items.path, lookup);
    if (!path.ok) return unresolved(`items_file: ${path.error}`);
    return ok({ items: null, effect: { kind: 'read', path: path.value, from: 'cwd' } });
  }
  const template = each.items.value;
  const kept = template.kind === 'text' ? keptFileOf(template.text, lookup) : null;
  if (kept !== null) return ok({ items: null, effect: { kind: 'read', path: kept.file, from: 'run-folder' } });
  const items = fillValue(template, lookup);
  if (!items.ok) return unresolved(items.error);
  const list = asList(items.value);
  return list.ok ? ok({ items: list.value, effect: null }) : err(failure('invalid-items', list.error));
}

function widthOf(each: Each, lookup: Lookup): Result<number | null, string> {
  const parallel = fillValue(each.parallel, lookup);
  if (!parallel.ok) return err(`parallel: ${parallel.error}`);
  if (parallel.value === false || parallel.value === 'false') return ok(1);
  if (parallel.value !== true && parallel.value !== 'true')
    return err(`parallel: expected true or false, got ${JSON.stringify(parallel.value)}`);
  if (each.width === null) return ok(null);
  const width = fillValue(each.width, lookup);
  if (!width.ok) return err(`max_concurrent: ${width.error}`);
  const number = typeof width.value === 'string' ? Number(width.value.trim() || Number.NaN) : width.value;
  return Number.isSafeInteger(number) && Number(number) > 0
    ? ok(Number(number))
    : err(`max_concurrent: expected a number from 1, got ${JSON.stringify(width.value)}`);
}

function unresolved(message: string): Result<never, Failure> {
  return err(failure('unresolved', message));
}

/** A list, also where it comes as JSON text: what a command wrote is text. An error is a sentence. */
export function asList(items: Json): Result<readonly Json[], string> {
  const read = typeof items === 'string' ? readJsonText(items) : ok(items);
  if (read.ok && Array.isArray(read.value)) return ok(read.value as readonly Json[]);
  return err(`items is ${shape(items)}, and no list${read.ok ? '' : `: ${read.error}`}`);
}

function deadline(turn: Turn, timeout: Text, lookup: Lookup): Result<number, string> {
  const text = fillString(timeout, lookup);
  if (!text.ok) return err(`timeout: ${text.error}`);
  const ms = parseDuration(text.value);
  return ms === null
    ? err(`timeout: ${JSON.stringify(text.value)} is no duration (write 30s, 5m, 2h)`)
    : ok(turn.at + ms);
}
