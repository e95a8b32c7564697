// The texts that an attempt was started with, as filled in: prompt, command, question.

import { resolveText } from '../drivers/outputs.ts';
import type { RunFiles } from '../engine/ports.ts';
import type { EffectSpec } from '../ir/effect.ts';
import type { FilledText } from '../ir/text.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { type Result } from '../base/errors.ts';
import { storedFileOf } from '../ir/output.ts';
import { CLEANUP_STEP, type StepState } from '../kernel/state.ts';

export interface FilledTextView {
  /** `prompt`, `script`, `question` … */
  readonly name: string;
  readonly text: string;
  /** Why the text is not complete; null if it is. */
  readonly problem: string | null;
}

/** The effect of an attempt; null if it had none or has not started. */
export function startedEffect(
  records: readonly Pick<JournalRecord, 'decisions'>[],
  step: string,
  attempt: number,
): EffectSpec<FilledText> | null {
  for (const { decisions } of records) {
    for (const decision of decisions) {
      if (decision.kind === 'step-started' && decision.step === step && decision.attempt === attempt)
        return decision.effect;
      if (decision.kind === 'cleanup-started' && step === CLEANUP_STEP && decision.attempt === attempt)
        return decision.effect;
    }
  }
  return null;
}

/** An output that is stored in a file because it is long; null if it is none. An error is a sentence. */
export function storedOutput(
  step: StepState | undefined,
  output: string,
  files: RunFiles,
): Result<string, string> | null {
  const value = step?.kept.includes(output) === true ? step.outputs[output] : undefined;
  const stored = storedFileOf(value ?? null);
  return stored === null ? null : resolveText([{ ...stored, quote: [] }], files);
}

export function effectTexts(effect: EffectSpec<FilledText>, files: RunFiles): readonly FilledTextView[] {
  return Object.entries(textsOf(effect)).flatMap(([name, text]): readonly FilledTextView[] => {
    if (text === null || text === undefined) return [];
    const resolved = resolveText(text, files);
    if (resolved.ok) return [{ name, text: resolved.value, problem: null }];
    const known = typeof text === 'string' ? text : text.filter((piece) => typeof piece === 'string').join('');
    return [{ name, text: known, problem: resolved.error }];
  });
}

function textsOf(effect: EffectSpec<FilledText>): Readonly<Record<string, FilledText | null | undefined>> {
  switch (effect.kind) {
    case 'command':
      return { script: effect.script, folder: effect.cwd };
    case 'turn':
      return { prompt: effect.prompt, adapter: effect.adapter, model: effect.model, folder: effect.cwd };
    case 'prompt':
      return { prompt: effect.prompt, agent: effect.agent };
    case 'gate':
      return { question: effect.prompt, gate: effect.gate };
    case 'spawn':
      return { agent: effect.agent, adapter: effect.adapter, arguments: effect.args, folder: effect.cwd };
    case 'kill':
      return { agent: effect.agent };
    case 'read':
      return { path: effect.path };
    case 'attend':
      return { agent: effect.agent };
    case 'git':
      return { operation: effect.operation.kind };
    case 'inspect':
      return { inspection: effect.inspection.kind };
    default:
      // In a run of another version.
      return {};
  }
}
