// Prepares a ready step: fills every placeholder of its effect, or says why it cannot start.

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
import { fillString, fillValue, storedOutputOf } from '../ir/text.ts';
import { fillEffect } from './fill.ts';
import { lookupFrom, describeShape } from './scope.ts';
import type { StepState } from './state.ts';
import type { DecideContext } from './decide-context.ts';

export interface PreparedStep {
  readonly effect: EffectSpec<FilledText> | null;
  readonly agent: string | null;
  readonly timeoutAt: number | null;
  readonly items: readonly Json[] | null;
  readonly width: number | null;
}

export function prepareStep(ctx: DecideContext, step: StepState): Result<PreparedStep, Failure> {
  const { definition } = step;
  const lookup = lookupFrom(ctx.state, step.frame, step, ctx.at);
  // Only effects have an agent and a timeout; child frames have neither.
  const asks = definition.act.kind === 'effect';
  const agent = definition.agent === null || !asks ? ok(null) : fillString(definition.agent, lookup);
  if (!agent.ok) return unresolved(agent.error);
  const timeoutAt = definition.timeout === null || !asks ? ok(null) : deadline(ctx, definition.timeout, lookup);
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
      return ok({ ...rest, effect: withReprompt(ctx, step, effect.value), agent: name });
    }
    case 'each': {
      const width = concurrencyOf(definition.act, lookup);
      if (!width.ok) return unresolved(width.error);
      const items = itemsOf(definition.act, lookup);
      return items.ok ? ok({ ...rest, width: width.value, ...items.value }) : items;
    }
  }
}

/**
 * In the session of the previous attempt the reprompt is enough. In a fresh session it follows the whole prompt. A step
 * inside a block that performs another step uses that step's reprompt.
 */
function withReprompt(
  { state }: DecideContext,
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

/** The agent that an effect concerns, even if it need not be free. */
function agentOf(effect: EffectSpec<FilledText>): string | null {
  return 'agent' in effect && typeof effect.agent === 'string' ? effect.agent : null;
}

/** The items, or the effect that reads them. */
function itemsOf(each: Each, lookup: Lookup): Result<Pick<PreparedStep, 'items' | 'effect'>, Failure> {
  if (each.items.kind === 'file') {
    const path = fillString(each.items.path, lookup);
    if (!path.ok) return unresolved(`items_file: ${path.error}`);
    return ok({ items: null, effect: { kind: 'read', path: path.value, from: 'cwd' } });
  }
  const template = each.items.value;
  const kept = template.kind === 'text' ? storedOutputOf(template.text, lookup) : null;
  if (kept !== null) return ok({ items: null, effect: { kind: 'read', path: kept.file, from: 'run-folder' } });
  const items = fillValue(template, lookup);
  if (!items.ok) return unresolved(items.error);
  const list = asList(items.value);
  return list.ok ? ok({ items: list.value, effect: null }) : err(failure('invalid-items', list.error));
}

function concurrencyOf(each: Each, lookup: Lookup): Result<number | null, string> {
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

/** Accepts a list, or JSON text of one, since commands write text. */
export function asList(items: Json): Result<readonly Json[], string> {
  const read = typeof items === 'string' ? readJsonText(items) : ok(items);
  if (read.ok && Array.isArray(read.value)) return ok(read.value as readonly Json[]);
  return err(`items must be a list, but is ${describeShape(items)}${read.ok ? '' : `: ${read.error}`}`);
}

function deadline(ctx: DecideContext, timeout: Text, lookup: Lookup): Result<number, string> {
  const text = fillString(timeout, lookup);
  if (!text.ok) return err(`timeout: ${text.error}`);
  const ms = parseDuration(text.value);
  return ms === null
    ? err(`timeout: ${JSON.stringify(text.value)} is not a duration (write 30s, 5m, 2h)`)
    : ok(ctx.at + ms);
}
