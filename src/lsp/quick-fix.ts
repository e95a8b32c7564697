// Hints that are corrections: the text that replaces the range of a problem.

import { nearest } from '../base/names.ts';

export interface QuickFix {
  readonly title: string;
  readonly text: string;
}

/** `written`: the text of the range. Null if the hint is advice for a person. */
export function quickFix(written: string, message: string, hint: string): QuickFix | null {
  const [, meant] = /^Did you mean "([^"]+)"\?$/.exec(hint) ?? [];
  if (meant !== undefined) {
    // The range may be larger than the wrong name, which the message quotes.
    const quoted = [...message.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
    const wrong = nearest(
      meant,
      quoted.filter((name) => name !== meant && written.includes(name)),
      meant.length,
    );
    if (wrong === null) return null;
    return { title: `Change "${wrong}" to "${meant}"`, text: written.replace(wrong, () => meant) };
  }
  const [, reference] = /^Write (\{\{[\w.-]+\}\})\.$/.exec(hint) ?? [];
  const isWhole = reference !== undefined && /^\{\{[^{}]*\}\}$/.test(written) && !/\bNAME\b/.test(reference);
  return isWhole ? { title: `Write ${reference}`, text: reference } : null;
}
