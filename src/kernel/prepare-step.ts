// Prepares a ready step: fills every placeholder of its effect, or says why it cannot start.

import { err, ok, type Result } from '../base/errors.ts';
import { type Json, readJsonText } from '../base/json.ts';
import { parseDuration } from '../base/time.ts';
import type { CommandSpec, EffectSpec } from '../ir/effect.ts';
import { failure, type Failure } from '../ir/failure.ts';
import type { Allowance, Each } from '../ir/program.ts';
import type { FilledText, Lookup, Text, ValueTemplate } from '../ir/text.ts';
import { fillString, fillText, fillValue, storedOutputOf } from '../ir/text.ts';
import type { PreparedStep } from './decision.ts';
import { describeShape, lookupFrom } from './scope.ts';
import { type PauseCause, spentOf, sumOf } from './spending.ts';
import type { DecideContext, RunState, StepState } from './state.ts';

export function prepareStep(ctx: Pick<DecideContext, 'state' | 'at'>, step: StepState): Result<PreparedStep, Failure> {
  const { definition } = step;
  const lookup = lookupFrom(ctx.state, step.frame, step, ctx.at);
  // Only effects have an agent and a timeout; child frames have neither.
  const hasEffect = definition.act.kind === 'effect';
  const agent = definition.agent === null || !hasEffect ? ok(null) : fillString(definition.agent, lookup);
  if (!agent.ok) return unresolved(agent.error);
  const timeoutAt = definition.timeout === null || !hasEffect ? ok(null) : deadline(ctx, definition.timeout, lookup);
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
      return ok({ ...rest, effect: withReprompt(ctx.state, step, effect.value), agent: name });
    }
    case 'each': {
      const width = concurrencyOf(definition.act, lookup);
      if (!width.ok) return unresolved(width.error);
      const items = itemsOf(definition.act, lookup);
      return items.ok ? ok({ ...rest, width: width.value, ...items.value }) : items;
    }
    case 'loop': {
      const rounds = countOf(definition.act.roundsMax, 'max_rounds', lookup);
      return rounds.ok ? ok({ ...rest, rounds: rounds.value }) : unresolved(rounds.error);
    }
  }
}

/**
 * In the session of the previous attempt the reprompt is enough. In a fresh session it follows the whole prompt. A step
 * inside a block that performs another step uses that step's reprompt.
 */
function withReprompt(state: RunState, step: StepState, effect: EffectSpec<FilledText>): EffectSpec<FilledText> {
  const { frame } = step;
  const performed = frame.join === 'answer' ? state.steps.get(frame.owner ?? '') : undefined;
  const reprompt = step.reprompt ?? performed?.reprompt ?? null;
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
  if (kept !== null) {
    const { file: path, ...hash } = kept.stored;
    return ok({ items: null, effect: { kind: 'read', path, from: 'run-folder', ...hash } });
  }
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
  return each.width === null ? ok(null) : countOf(each.width, 'max_concurrent', lookup);
}

function countOf(template: ValueTemplate, label: string, lookup: Lookup): Result<number, string> {
  const filled = fillValue(template, lookup);
  if (!filled.ok) return err(`${label}: ${filled.error}`);
  const number = typeof filled.value === 'string' ? Number(filled.value.trim() || Number.NaN) : filled.value;
  return Number.isSafeInteger(number) && Number(number) > 0
    ? ok(Number(number))
    : err(`${label}: expected a number from 1, got ${JSON.stringify(filled.value)}`);
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

function deadline(ctx: Pick<DecideContext, 'at'>, timeout: Text, lookup: Lookup): Result<number, string> {
  const text = fillString(timeout, lookup);
  if (!text.ok) return err(`timeout: ${text.error}`);
  const ms = parseDuration(text.value);
  return ms === null
    ? err(`timeout: ${JSON.stringify(text.value)} is not a duration (write 30s, 5m, 2h)`)
    : ok(ctx.at + ms);
}

function fillEffect(effect: EffectSpec<Text>, lookup: Lookup): Result<EffectSpec<FilledText>, string> {
  const fill = new Filler(lookup);
  switch (effect.kind) {
    case 'command':
      return fillCommand(effect, lookup);
    case 'turn': {
      const { adapter, cwd, model, effort } = effect;
      const prompt = fill.text(effect.prompt);
      return fill.result({ ...effect, prompt, ...fill.strings({ adapter, cwd, model, effort }) });
    }
    case 'spawn': {
      const { agent, adapter, cwd, resumeSession, args } = effect;
      const strings = fill.strings({ agent, adapter, cwd, resumeSession, args });
      return fill.result({ ...effect, ...strings, env: fill.env(effect.env) });
    }
    case 'prompt':
      return fill.result({ ...effect, agent: fill.string(effect.agent, 'agent'), prompt: fill.text(effect.prompt) });
    case 'kill':
      return fill.result({ ...effect, agent: fill.string(effect.agent, 'agent') });
    case 'read':
      return fill.result({ ...effect, path: fill.string(effect.path) });
    case 'gate': {
      const { moreApprovers, ...gate } = effect;
      const more = moreApprovers === undefined ? [] : fill.string(moreApprovers).split('\n').filter(Boolean);
      const approvers = more.length === 0 ? gate.approvers : [...(gate.approvers ?? []), ...more];
      return fill.result({ ...gate, approvers, gate: fill.string(gate.gate), prompt: fill.text(gate.prompt) });
    }
    case 'git':
    case 'inspect':
    case 'attend':
      return ok(effect);
  }
}

export function fillCommand(command: CommandSpec<Text>, lookup: Lookup): Result<CommandSpec<FilledText>, string> {
  const fill = new Filler(lookup);
  return fill.result({
    ...command,
    script: fill.text(command.script),
    cwd: command.cwd === null ? null : fill.string(command.cwd, 'workdir'),
    env: fill.env(command.env),
    captures: command.captures.map((capture) => {
      const { name, from } = capture;
      if (from.kind !== 'file') return { ...capture, from };
      return { ...capture, from: { kind: from.kind, path: fill.string(from.path, `output ${name}`) } };
    }),
  });
}

type Filled<T> = { readonly [K in keyof T]: null extends T[K] ? string | null : string };

/** Fills the texts of one effect. The first error, with the label of its text, is the result. */
class Filler {
  readonly #lookup: Lookup;
  #error: string | null = null;

  constructor(lookup: Lookup) {
    this.#lookup = lookup;
  }

  result<T>(filled: T): Result<T, string> {
    return this.#error === null ? ok(filled) : err(this.#error);
  }

  text(text: Text, label = ''): FilledText {
    return this.#value(fillText(text, this.#lookup), label);
  }

  /** Must become a plain string. */
  string(text: Text, label = ''): string {
    return this.#value(fillString(text, this.#lookup), label);
  }

  strings<T extends Readonly<Record<string, Text | null>>>(texts: T): Filled<T> {
    const filled = Object.entries(texts).map(([name, text]) => [name, text === null ? null : this.string(text, name)]);
    return Object.fromEntries(filled) as Filled<T>;
  }

  env(env: Readonly<Record<string, Text>>): Readonly<Record<string, FilledText>> {
    const filled = Object.entries(env).map(([name, text]) => [name, this.text(text, `env ${name}`)] as const);
    return Object.fromEntries(filled);
  }

  #value<T>(filled: Result<T, string>, label: string): T | string {
    if (filled.ok) return filled.value;
    this.#error ??= label === '' ? filled.error : `${label}: ${filled.error}`;
    return '';
  }
}

export interface ExhaustedLimit {
  readonly what: Exclude<keyof Allowance, 'agents'>;
  readonly message: string;
  /** Null if it is no budget. */
  readonly pause: PauseCause | null;
}

/** The limit that stops new steps from starting until someone raises it; null if none is reached. */
export function exhaustedLimit({ allowance, spending, extra, transitions }: RunState): ExhaustedLimit | null {
  const { transitions: transitionsMax } = allowance;
  const usd = allowance.usd === null ? null : sumOf(allowance.usd, extra.usd);
  const tokens = allowance.tokens === null ? null : allowance.tokens + extra.tokens;
  if (usd !== null && spending.usd >= usd) {
    const pause: PauseCause = { budget: 'run_usd', unit: 'usd', limit: usd, ...spentOf(spending, 'usd') };
    return { what: 'usd', message: `the budget of $${usd} is spent ($${spending.usd.toFixed(2)})`, pause };
  }
  if (tokens !== null && spending.tokens >= tokens) {
    const pause: PauseCause = { budget: 'run_tokens', unit: 'tokens', limit: tokens, ...spentOf(spending, 'tokens') };
    return { what: 'tokens', message: `the budget of ${tokens} tokens is spent (${spending.tokens})`, pause };
  }
  if (transitionsMax !== null && transitions >= transitionsMax)
    return { what: 'transitions', message: `the limit of ${transitionsMax} transitions is reached`, pause: null };
  return null;
}
