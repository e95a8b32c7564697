// Which rule of a script an agent follows for a prompt, and what it remembers of those it has followed. Pure: the memory
// is handed in and out, so that an agent that is started anew goes on counting where the one before it was.

import { segmentMatcher } from '../base/segment-pattern.ts';
import type { Rule } from './script.ts';

export interface Memory {
  /** How many prompts there have been. */
  readonly prompts: number;
  /** How often each rule was followed, by its number in the script. */
  readonly followed: Readonly<Record<number, number>>;
}

export const NOTHING_REMEMBERED: Memory = { prompts: 0, followed: {} };

export interface Situation {
  readonly agent: string;
  readonly step: string;
  readonly prompt: string;
}

/** The number of the first rule that fits, from a number on; null where none does. */
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
  if (rule.step !== null && !segmentMatcher(rule.step)(step)) return false;
  switch (rule.prompt?.kind) {
    case undefined:
      return true;
    case 'part':
      return prompt.includes(rule.prompt.text);
    case 'expression':
      return rule.prompt.expression.test(prompt);
  }
}
