// All executors, by name.

import { own } from '../../../base/json.ts';
import { type CommandSpec, commandSpec } from '../../../ir/effect.ts';
import type { Text } from '../../../ir/text.ts';
import type { Transition } from '../../../ir/transition.ts';
import { namesOf } from '../../keys.ts';
import { booleanAt, durationAt, neededStringAt, valueOf } from '../../toml-fields.ts';
import type { TomlTable } from '../../toml-tree.ts';
import { EXECUTOR_TABLES } from '../keys.ts';
import { commandOutputs, lowerOutputs } from '../outputs.ts';
import type { Scope } from '../scope.ts';
import type { OutputType } from '../syntax.ts';
import { BRANCH_KEYS, lowerTarget, readStepTarget, readTarget } from '../target.ts';
import { lowerEnvironment, lowerScript, lowerTextAt } from '../text.ts';
import { agent, lowerAgent, spawn } from './agent.ts';
import type { Executor } from './executor.ts';
import { foreach } from './foreach.ts';
import { loop } from './loop.ts';

// `shell`: a script, run by the project's shell.

const shell: Executor = {
  keys: namesOf(EXECUTOR_TABLES.shell.keys),
  timeout: 'step',
  outputs: (step) => commandOutputs(step),
  lower: (scope, { table }) => {
    const hint = 'A shell step runs a script: command = "make test".';
    const effect = lowerCommand(scope, table, 'command', hint);
    return effect === null ? null : { act: { kind: 'effect', effect } };
  },
};

// `branch`: a script whose exit status selects the next steps. 0 is true, any other status false.

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
  keys: namesOf(EXECUTOR_TABLES.branch.keys),
  timeout: 'step',
  outputs: (step) => new Map([...DECIDED, ...commandOutputs(step)]),
  targets: (report, step, readInline) => BRANCH_KEYS.flatMap((key) => readTarget(report, step, key, readInline) ?? []),
  lower: (scope, { table, targets }) => {
    const hint = 'A branch asks by a script: condition = "test -f done".';
    const effect = lowerCommand(scope, table, 'condition', hint);
    const routes: Record<string, Transition> = {};
    for (const branching of targets.filter(({ kind }) => kind === 'branch')) {
      const target = lowerTarget(scope, branching);
      if (target !== null) routes[branching.key.replace('on_', '')] = { kind: 'expand', target, join: 'wait' };
    }
    // Without a route of its own, a timeout counts as false.
    const onTimeout = routes['timeout'] ?? routes['false'];
    if (onTimeout !== undefined) routes['timeout'] = onTimeout;
    if (lacksOnFalse(scope, table)) routes['false'] = { kind: 'reject' };
    return effect === null ? null : { act: { kind: 'effect', effect }, routes };
  },
};

// `expand`: replaces this step by the steps of another workflow. It is done as soon as they exist. If a workflow of
// another language returns a value, the step waits for it; the value is the output `result`.

const expand: Executor = {
  keys: namesOf(EXECUTOR_TABLES.expand.keys),
  timeout: 'none',
  outputs: () => new Map([['result', 'json']]),
  targets: (report, step) => readStepTarget(report, step, 'expand', []),
  lower: (scope, { targets }) => {
    const template = targets.find(({ kind }) => kind === 'expand');
    const target = template === undefined ? null : lowerTarget(scope, template);
    if (template === undefined || target === null) return null;
    const join = scope.links.of(template)?.kind === 'foreign' ? 'wait' : 'inline';
    return { act: { kind: 'pass' }, routes: { done: { kind: 'expand', join, target } } };
  },
};

// `kill`: kills an agent. Succeeds if it is not running.

const GRACE_MS = 10_000;

const kill: Executor = {
  keys: namesOf(EXECUTOR_TABLES.kill.keys),
  timeout: 'own',
  outputs: () => new Map(),
  lower: (scope, { table }) => {
    const { report } = scope;
    const agent = lowerAgent(scope, table, 'Say whom to end: agent = "worker".');
    const graceful = booleanAt(report, table, 'graceful') ?? true;
    const graceMs = durationAt(report, table, 'timeout') ?? GRACE_MS;
    if (agent === null) return null;
    return { act: { kind: 'effect', effect: { kind: 'kill', agent, graceful, graceMs } } };
  },
};

const EXECUTORS: Readonly<Record<string, Executor>> = { agent, branch, expand, foreach, kill, loop, shell, spawn };

export const EXECUTOR_NAMES: readonly string[] = Object.keys(EXECUTORS);

export function findExecutor(name: string | null): Executor | null {
  return name === null ? null : (own(EXECUTORS, name) ?? null);
}

/** Common parts of shell and branch: a script, its folder and environment, and its outputs. */
function lowerCommand(
  scope: Scope,
  step: TomlTable,
  key: 'command' | 'condition',
  hint: string,
): CommandSpec<Text> | null {
  const { report } = scope;
  const script = neededStringAt(report, step, key, hint);
  const cwd = lowerTextAt(scope, step, 'workdir');
  const env = lowerEnvironment(scope, step);
  const captures = lowerOutputs(scope, step);
  if (script === null) return null;
  if (script.value.trim() === '') {
    const cure = 'Write what the step shall run, or remove the step.';
    report.error('empty-command', script.place, `the ${key} is empty`, cure);
  }
  const isCondition = key === 'condition';
  const verdict = isCondition ? 'condition' : 'success';
  const errors = isCondition && onlyRequestsGate(script.value) ? [2] : [];
  return commandSpec(lowerScript(scope, script), cwd, { env, captures, verdict, errors });
}

/**
 * Whether a rejection of the branch's gate fails it. Reported, because the author may have meant that the run goes on.
 * The condition of a loop has no branches.
 */
function lacksOnFalse({ report, key }: Scope, step: TomlTable): boolean {
  const condition = valueOf(step, 'condition', 'string');
  if (condition === null || step.entries.has('on_false') || key === 'until' || key === 'while') return false;
  const rejects = onlyRequestsGate(condition.value);
  if (rejects || /\bmeow\s+await-approval\b/.test(condition.value)) {
    const effect = rejects ? 'a rejection fails it' : 'the run may go on after a rejection';
    const hint = 'Say what a rejection means: on_false = { … }; on_false = { inline = [] } lets the run go on.';
    report.warning('gate-without-on-false', condition.place, `the branch has no "on_false": ${effect}`, hint);
  }
  return rejects;
}

/** Such a script reports by status 2 that the request failed, which is not a verdict. In others 2 can mean anything. */
function onlyRequestsGate(script: string): boolean {
  const unquoted = script.replaceAll(/\\\n|[<>]&/g, ' ').replaceAll(/'[^']*'|"(?:[^"\\]|\\.)*"/gs, '_');
  return /^(?:exec\s+)?meow\s+await-approval\b[^;&|\n]*$/.test(unquoted.trim());
}
