// Patterns about steps that the workflow does not have. `never` and `order` would hold by mistake.

import { didYouMean, segmentMatcher } from '../base/names.ts';
import { writtenNames } from '../prove/unreached.ts';
import { namesIn } from './commands.ts';
import type { Expectations } from './expectations.ts';
import type { TestFailure } from './failures.ts';
import type { WorldEnd } from './world.ts';

export function judgeNames(
  { never, order }: Pick<Expectations, 'never' | 'order'>,
  { state, records }: Pick<WorldEnd, 'state' | 'records'>,
): readonly TestFailure[] {
  if (never.length === 0 && order.length === 0) return [];
  // A workflow that an answer names may have any steps.
  if (records.some(({ decisions }) => decisions.some(({ kind }) => kind === 'program-grown'))) return [];
  const names = [...writtenNames(state.program).steps, 'cleanup'];
  const namesOf = namesIn(state.program);
  const ids = [...state.steps.keys()].flatMap((id) => namesOf(id));
  const unknown = (pattern: string, path: string, expected: string): readonly TestFailure[] => {
    if (names.some((name) => mayMean(pattern, name)) || ids.some(segmentMatcher(pattern))) return [];
    const message = `the workflow has no step ${pattern}; ${didYouMean(pattern, names)}its steps: ${names.join(', ')}`;
    return [{ expect: path, expected, got: null, message }];
  };
  return [
    ...never.flatMap((pattern, index) => unknown(pattern, `never.${index}`, pattern)),
    ...order.flatMap(({ text, before, after }, index) =>
      [before, after].flatMap((pattern) => unknown(pattern, `order.${index}`, text)).slice(0, 1),
    ),
  ];
}

/** `name`: as the workflow names the step, with `*` for what repeats. */
function mayMean(pattern: string, name: string): boolean {
  const matches = segmentMatcher(pattern);
  const ids = [name, name.replaceAll('*', '0'), `main.1.${name}`, `${name}#1`];
  const unnumbered = pattern.replace(/#.*$/, '').replace(/^.*\.\d+\./, '');
  return ids.some(matches) || segmentMatcher(name)(pattern) || segmentMatcher(unnumbered)(name);
}
