// Chooses the script rule for a prompt, and counts the rules that were followed, in a file: a restarted agent continues
// counting.

import { segmentMatcher } from '../base/names.ts';
import { readJsonFile } from '../sys/files.ts';
import type { Rule } from './script.ts';

export interface Memory {
  /** Prompts so far. */
  readonly prompts: number;
  /** Uses of each rule, by index in the script. */
  readonly followed: Readonly<Record<number, number>>;
}

export const NOTHING_REMEMBERED: Memory = { prompts: 0, followed: {} };

/** The file may be absent. */
export function readMemory(path: string): Memory {
  return (readJsonFile(path) as Memory | null) ?? NOTHING_REMEMBERED;
}

type Situation = Readonly<Record<'agent' | 'step' | 'prompt', string>>;

/** Index of the first matching rule from `from` on; null if none. */
export function ruleFor(
  rules: readonly Rule[],
  situation: Situation,
  memory: Memory,
  from: number,
): { readonly rule: Rule; readonly number: number } | null {
  for (const [number, rule] of rules.entries()) {
    if (number < from || !fits(rule, situation)) continue;
    if (rule.times === null || (memory.followed[number] ?? 0) < rule.times) return { rule, number };
  }
  return null;
}

export function withPrompt(memory: Memory): Memory {
  return { ...memory, prompts: memory.prompts + 1 };
}

export function withRule(memory: Memory, number: number): Memory {
  return { ...memory, followed: { ...memory.followed, [number]: (memory.followed[number] ?? 0) + 1 } };
}

function fits(rule: Rule, { agent, step, prompt }: Situation): boolean {
  if (rule.agent !== null && !segmentMatcher(rule.agent)(agent)) return false;
  if (rule.step !== null && ![step, visitOf(step)].some(segmentMatcher(rule.step))) return false;
  if (rule.prompt === null) return true;
  return rule.prompt.kind === 'part' ? prompt.includes(rule.prompt.text) : rule.prompt.expression.test(prompt);
}

/** The visit of a Conductor step that a turn is a part of: `fix#2` for `fix#2.turn`. Other steps: their own id. */
function visitOf(step: string): string {
  return /^.*#\d+(?=\.[^#]*$)/.exec(step)?.[0] ?? step;
}
