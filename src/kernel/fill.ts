// Effects with their holes filled: what a Program asks for in general becomes what the world is asked now.

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
      return prompt.ok ? ok({ ...effect, prompt: prompt.value }) : prompt;
    }
    case 'gate': {
      const gate = fillString(effect.gate, lookup);
      if (!gate.ok) return gate;
      const prompt = fillText(effect.prompt, lookup);
      return prompt.ok ? ok({ kind: 'gate', gate: gate.value, prompt: prompt.value }) : prompt;
    }
  }
}

export function fillCommand(command: CommandSpec<Text>, lookup: Lookup): Result<CommandSpec<FilledText>, string> {
  const script = fillText(command.script, lookup);
  if (!script.ok) return script;
  const cwd = command.cwd === null ? ok(null) : fillString(command.cwd, lookup);
  if (!cwd.ok) return err(`workdir: ${cwd.error}`);
  const env: [string, FilledText][] = [];
  for (const [name, text] of Object.entries(command.env)) {
    const filled = fillText(text, lookup);
    if (!filled.ok) return err(`env ${name}: ${filled.error}`);
    env.push([name, filled.value]);
  }
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
  return ok({ ...command, script: script.value, cwd: cwd.value, env: Object.fromEntries(env), captures });
}
