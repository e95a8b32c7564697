// Fills the placeholders of an effect.

import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import type { CommandSpec, EffectSpec } from '../ir/effect.ts';
import type { Capture } from '../ir/output.ts';
import type { FilledText, Lookup, Text } from '../ir/text.ts';
import { fillString, fillText } from '../ir/text.ts';

export function fillEffect(effect: EffectSpec<Text>, lookup: Lookup): Result<EffectSpec<FilledText>, string> {
  switch (effect.kind) {
    case 'command':
      return fillCommand(effect, lookup);
    case 'turn': {
      const prompt = fillText(effect.prompt, lookup);
      if (!prompt.ok) return prompt;
      const { adapter, cwd, model, effort } = effect;
      const rest = fillStrings({ adapter, cwd, model, effort }, lookup);
      return rest.ok ? ok({ ...effect, ...rest.value, prompt: prompt.value }) : rest;
    }
    case 'spawn': {
      const required = fillStrings({ agent: effect.agent, adapter: effect.adapter }, lookup);
      if (!required.ok) return required;
      const rest = fillStrings({ cwd: effect.cwd, resumeSession: effect.resumeSession, args: effect.args }, lookup);
      if (!rest.ok) return rest;
      const env = fillEnv(effect.env, lookup);
      if (!env.ok) return env;
      return ok({ ...effect, ...required.value, ...rest.value, env: env.value });
    }
    case 'attend':
      return ok(effect);
    case 'prompt': {
      const agent = fillString(effect.agent, lookup);
      if (!agent.ok) return err(`agent: ${agent.error}`);
      const prompt = fillText(effect.prompt, lookup);
      return prompt.ok ? ok({ ...effect, agent: agent.value, prompt: prompt.value }) : prompt;
    }
    case 'kill': {
      const agent = fillString(effect.agent, lookup);
      return agent.ok ? ok({ ...effect, agent: agent.value }) : err(`agent: ${agent.error}`);
    }
    case 'read': {
      const path = fillString(effect.path, lookup);
      return path.ok ? ok({ ...effect, path: path.value }) : path;
    }
    case 'gate': {
      const gate = fillString(effect.gate, lookup);
      if (!gate.ok) return gate;
      const prompt = fillText(effect.prompt, lookup);
      return prompt.ok ? ok({ ...effect, gate: gate.value, prompt: prompt.value }) : prompt;
    }
    case 'git':
    case 'inspect':
      return ok(effect);
  }
}

export function fillCommand(command: CommandSpec<Text>, lookup: Lookup): Result<CommandSpec<FilledText>, string> {
  const script = fillText(command.script, lookup);
  if (!script.ok) return script;
  const cwd = command.cwd === null ? ok(null) : fillString(command.cwd, lookup);
  if (!cwd.ok) return err(`workdir: ${cwd.error}`);
  const env = fillEnv(command.env, lookup);
  if (!env.ok) return env;
  const captures: Capture<FilledText>[] = [];
  for (const capture of command.captures) {
    if (capture.from.kind !== 'file') {
      captures.push({ ...capture, from: capture.from });
      continue;
    }
    const path = fillString(capture.from.path, lookup);
    if (!path.ok) return err(`output ${capture.name}: ${path.error}`);
    captures.push({ ...capture, from: { kind: 'file', path: path.value } });
  }
  return ok({ ...command, script: script.value, cwd: cwd.value, env: env.value, captures });
}

type Filled<T> = { readonly [K in keyof T]: null extends T[K] ? string | null : string };

/** Fields that must become plain strings. */
function fillStrings<T extends Readonly<Record<string, Text | null>>>(
  texts: T,
  lookup: Lookup,
): Result<Filled<T>, string> {
  const filled: [string, string | null][] = [];
  for (const [name, text] of Object.entries(texts)) {
    const value = text === null ? ok(null) : fillString(text, lookup);
    if (!value.ok) return err(`${name}: ${value.error}`);
    filled.push([name, value.value]);
  }
  return ok(Object.fromEntries(filled) as Filled<T>);
}

function fillEnv(
  env: Readonly<Record<string, Text>>,
  lookup: Lookup,
): Result<Readonly<Record<string, FilledText>>, string> {
  const filled: [string, FilledText][] = [];
  for (const [name, text] of Object.entries(env)) {
    const value = fillText(text, lookup);
    if (!value.ok) return err(`env ${name}: ${value.error}`);
    filled.push([name, value.value]);
  }
  return ok(Object.fromEntries(filled));
}
