// All executors, by name.

import type { Transition } from '../../../ir/transition.ts';
import { lowerAgent } from '../agent-name.ts';
import { lowerCommand } from '../command.ts';
import { agent } from './agent.ts';
import { NO_OUTPUTS, NO_TARGETS } from './executor.ts';
import type { Executor } from './executor.ts';
import { foreach } from './foreach.ts';
import { spawn } from './spawn.ts';
import { commandOutputs } from '../outputs.ts';
import type { Scope } from '../scope.ts';
import type { OutputType, TargetSyntax } from '../syntax.ts';
import { lowerTarget, readStepTarget, readTarget } from '../target.ts';
import { booleanAt, durationAt } from '../../toml-fields.ts';

// `shell`: a script, run by the project's shell.

const shell: Executor = {
  name: 'shell',
  keys: ['command', 'outputs', 'shell_outputs', 'workdir', 'env'],
  canGrow: false,
  timeout: 'step',
  outputs: (step) => commandOutputs(step),
  targets: NO_TARGETS,
  lower: (scope, { table }) => {
    const hint = 'A shell step runs a script: command = "make test".';
    const effect = lowerCommand(scope, table, { key: 'command', verdict: 'success', hint });
    return effect === null ? null : { act: { kind: 'effect', effect } };
  },
};

// `branch`: a script whose exit status selects the next steps. 0 is true, any other status false.

const WAYS = ['on_true', 'on_false', 'on_timeout'] as const;
const OUTCOMES = { on_true: 'true', on_false: 'false', on_timeout: 'timeout' } as const;
/** Outputs of a verdict, if the condition waits for a gate. */
const DECIDED: readonly (readonly [string, OutputType])[] = [
  ['reason', 'string'],
  ['notes', 'string'],
  ['decided_by', 'string'],
  ['answer', 'string'],
  // Result of a workflow of another language below it.
  ['result', 'json'],
];

const branch: Executor = {
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
    // Without a route of its own, a timeout counts as false.
    routes.set('timeout', routes.get('timeout') ?? routes.get('false') ?? null);
    if (effect === null) return null;
    const taken = [...routes].flatMap(([outcome, to]) => (to === null ? [] : [[outcome, to] as const]));
    return { act: { kind: 'effect', effect }, routes: Object.fromEntries(taken) };
  },
};

/** Null if this outcome has no target. */
function follow(scope: Scope, targets: readonly TargetSyntax[], key: string): Transition | null {
  const target = targets.find((candidate) => candidate.key === key);
  if (target === undefined) return null;
  const lowered = lowerTarget(scope, target);
  return lowered === null ? null : { kind: 'expand', target: lowered, join: 'wait' };
}

// `expand`: replaces this step by the steps of another workflow. It is done as soon as they exist. If a workflow of
// another language returns a value, the step waits for it; the value is the output `result`.

const RESULT: ReadonlyMap<string, OutputType> = new Map([['result', 'json']]);

const expand: Executor = {
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

// `kill`: kills an agent. Succeeds if it is not running.

const GRACE_MS = 10_000;

const kill: Executor = {
  name: 'kill',
  keys: ['agent', 'graceful'],
  canGrow: false,
  timeout: 'own',
  outputs: () => NO_OUTPUTS,
  targets: NO_TARGETS,
  lower: (scope, { table }) => {
    const { report } = scope;
    const agent = lowerAgent(scope, table, 'Say whom to end: agent = "worker".');
    const graceful = booleanAt(report, table, 'graceful') ?? true;
    const graceMs = durationAt(report, table, 'timeout') ?? GRACE_MS;
    if (agent === null) return null;
    return { act: { kind: 'effect', effect: { kind: 'kill', agent, graceful, graceMs } } };
  },
};

const EXECUTORS: readonly Executor[] = [agent, branch, expand, foreach, kill, shell, spawn];

export const EXECUTOR_NAMES: readonly string[] = EXECUTORS.map(({ name }) => name);

export function findExecutor(name: string): Executor | null {
  return EXECUTORS.find((executor) => executor.name === name) ?? null;
}
