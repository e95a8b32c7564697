// `expand`: the steps of another workflow, in the place of this one. It is done as soon as they are there; one of another
// language that hands something back is waited for, and that is the output `result`.

import type { OutputType } from '../syntax.ts';
import { lowerTarget, readStepTarget } from '../target.ts';
import type { Executor } from './executor.ts';

const RESULT: ReadonlyMap<string, OutputType> = new Map([['result', 'json']]);

export const expand: Executor = {
  name: 'expand',
  keys: ['template', 'variables'],
  canGrow: true,
  timeout: 'none',
  outputs: () => RESULT,
  targets: (report, step) => readStepTarget(report, step, 'expand', []),
  lower: (scope, { targets }) => {
    const target = targets.find(({ kind }) => kind === 'expand');
    const lowered = target === undefined ? null : lowerTarget(scope, target);
    if (lowered === null) return null;
    const join = target !== undefined && scope.links.of(target)?.kind === 'foreign' ? 'wait' : 'inline';
    return { act: { kind: 'pass' }, routes: { done: { kind: 'expand', join, target: lowered } } };
  },
};
