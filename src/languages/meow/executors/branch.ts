// `branch`: a script whose exit status says where the run goes on. 0 is true, another status false.

import type { Transition } from '../../../ir/transition.ts';
import { lowerCommand } from '../command.ts';
import { commandOutputs } from '../outputs.ts';
import type { Scope } from '../scope.ts';
import type { OutputType, TargetSyntax } from '../syntax.ts';
import { lowerTarget, readTarget } from '../target.ts';
import type { Executor } from './executor.ts';

const WAYS = ['on_true', 'on_false', 'on_timeout'] as const;
const OUTCOMES = { on_true: 'true', on_false: 'false', on_timeout: 'timeout' } as const;
/** What a decision of a person leaves behind, where the condition waits for one. */
const DECIDED: readonly (readonly [string, OutputType])[] = [
  ['reason', 'string'],
  ['notes', 'string'],
  ['decided_by', 'string'],
  ['answer', 'string'],
  // What a workflow of another language below it has handed back.
  ['result', 'json'],
];

export const branch: Executor = {
  name: 'branch',
  keys: ['condition', ...WAYS, 'outputs', 'shell_outputs', 'workdir', 'env'],
  canGrow: true,
  timeout: 'step',
  outputs: (step) => new Map([...DECIDED, ...commandOutputs(step)]),
  targets: (report, step, readInline) => WAYS.flatMap((key) => readTarget(report, step, key, readInline) ?? []),
  lower: (scope, { table, targets }) => {
    const hint = 'A branch asks by a script: condition = "test -f done".';
    const effect = lowerCommand(scope, table, { key: 'condition', verdict: 'condition', hint });
    const routes = new Map(WAYS.map((key) => [OUTCOMES[key], follow(scope, targets, key)]));
    // Who is late is as good as false, where nothing else is said.
    routes.set('timeout', routes.get('timeout') ?? routes.get('false') ?? null);
    if (effect === null) return null;
    const taken = [...routes].flatMap(([outcome, to]) => (to === null ? [] : [[outcome, to] as const]));
    return { act: { kind: 'effect', effect }, routes: Object.fromEntries(taken) };
  },
};

/** Null where there is nothing for this outcome. */
function follow(scope: Scope, targets: readonly TargetSyntax[], key: string): Transition | null {
  const target = targets.find((candidate) => candidate.key === key);
  if (target === undefined) return null;
  const lowered = lowerTarget(scope, target);
  return lowered === null ? null : { kind: 'expand', target: lowered, join: 'wait' };
}
