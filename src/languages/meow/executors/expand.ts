// `expand`: the steps of another workflow, in the place of this one. It is done as soon as they are there.

import { lowerTarget, readStepTarget } from '../target.ts';
import type { Executor } from './executor.ts';
import { NO_OUTPUTS } from './executor.ts';

export const expand: Executor = {
  name: 'expand',
  keys: ['template', 'variables'],
  canGrow: true,
  timeout: 'none',
  outputs: () => NO_OUTPUTS,
  targets: (report, step) => readStepTarget(report, step, 'expand', []),
  lower: (scope, { targets }) => {
    const target = targets.find(({ kind }) => kind === 'expand');
    const lowered = target === undefined ? null : lowerTarget(scope, target);
    if (lowered === null) return null;
    return { act: { kind: 'pass' }, routes: { done: { kind: 'expand', join: 'inline', target: lowered } } };
  },
};
