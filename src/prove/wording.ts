// Words for counts and paths.

import { counted } from '../view/row.ts';
import type { EndedStep } from './watch.ts';

/** `∞ turns` if there is no bound. */
export function formatCount(count: number | null, noun: string): string {
  return count === null ? `∞ ${noun}s` : counted(count, noun);
}

const SHOWN_MAX = 6;

/** The last step first: `deploy-prod command_failed ← approval-gate approved ← …`. */
export function shortStory(ended: readonly EndedStep[]): string {
  const words = ended.toReversed().map(({ step, outcome }) => `${step} ${outcome}`);
  const shown = words.slice(0, SHOWN_MAX);
  return [...shown, ...(words.length > SHOWN_MAX ? ['…'] : [])].join(' ← ') || 'at once';
}
