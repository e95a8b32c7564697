// One step: the keys that all executors share. Reading finds its id, needs and outputs; lowering makes the step of the
// IR.

import { nearest } from '../../base/names.ts';
import { NO_RETRY, type OnError, type Retry, type Step } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, checkSimilarKeys, listed, missing, type Report, suggest } from '../report.ts';
import {
  choiceAt,
  countAt,
  durationAt,
  listAt,
  NAME,
  neededStringAt,
  stringAt,
  tableAt,
  wrongType,
} from '../toml-fields.ts';
import { type TomlList, type TomlTable, type TomlValue } from '../toml-tree.ts';
import { EXECUTOR_NAMES, findExecutor } from './executors/executors.ts';
import { BACKOFFS, RETRY, STEP_KEYS } from './keys.ts';
import { FAILED_STEP, type Scope } from './scope.ts';
import { type BlockSyntax, type NeedSyntax, placeholderId, type StepSyntax, type TargetSyntax } from './syntax.ts';
import { lowerTarget, namesWorkflow } from './target.ts';
import { lowerScript, lowerText } from './text.ts';

const COMMON_KEYS = namesOf(STEP_KEYS);
/** `jitter = true`: a delay varies by up to half. */
const JITTER = 0.5;
const NEEDS_EXAMPLE = 'Write a list of step ids: needs = ["build", "test"].';

/** `index` names a step without an id for now. `readBelow` reads its inline steps. */
export function readStep(
  report: Report,
  table: TomlTable,
  index: number,
  readBelow: (id: string, key: string, steps: TomlList) => BlockSyntax,
): StepSyntax {
  const id = readId(report, table, index);
  const executor = readExecutor(report, table);
  const known = findExecutor(executor);
  checkStepKeys(report, table, executor);
  const recovery = readRecovery(report, table);
  const targets = known?.targets?.(report, table, (key, steps) => readBelow(id, key, steps)) ?? [];
  return {
    id,
    place: table.entries.get('id')?.value.place ?? table.place,
    executor,
    needs: readNeeds(report, table),
    table,
    outputs: known?.outputs(table) ?? null,
    targets: recovery === null ? targets : [...targets, recovery],
    canGrow: known === null || known.targets !== undefined || recovery !== null,
  };
}

/** Null if the step cannot be lowered; that is reported. */
export function lowerStep(scope: Scope, syntax: StepSyntax): Step | null {
  const { report } = scope;
  const { id, table, executor: name } = syntax;
  const executor = findExecutor(name);
  stringAt(report, table, 'description');
  const onError = lowerOnError(scope, syntax);
  const retry = lowerRetry(report, table);
  const timeout = executor === null || executor.timeout === 'step' ? lowerTimeout(scope, table) : null;
  if (name === null || executor === null) {
    checkWithoutExecutor(scope, table);
    return null;
  }
  const lowered = executor.lower(scope, syntax);
  if (lowered === null) return null;
  return {
    id,
    executor: name,
    needs: lowerNeeds(scope, syntax),
    act: lowered.act,
    routes: lowered.routes ?? {},
    unrouted: 'done',
    repromptsMax: 0,
    onError,
    retry,
    timeout,
    agent: lowered.agent ?? null,
  };
}

/**
 * An expand is done when its steps exist. A step that starts or kills an agent after it waits for their work: hooks are
 * set up before the start, and an agent is not killed during its work.
 */
function lowerNeeds({ byId }: Scope, { executor, needs }: StepSyntax): readonly string[] {
  const named = needs.map(({ text }) => text);
  const waits = executor === 'spawn' || executor === 'kill';
  const below = named.filter((need) => waits && byId.get(need)?.executor === 'expand').map((need) => `${need}.*`);
  return [...new Set([...named, ...below])];
}

function checkStepKeys(report: Report, table: TomlTable, executor: string | null): void {
  const known = findExecutor(executor);
  const keys =
    known === null
      ? [
          ...COMMON_KEYS,
          'timeout',
          ...EXECUTOR_NAMES.flatMap((name) => findExecutor(name)?.keys ?? []).filter((key) => key !== 'timeout'),
        ]
      : [...COMMON_KEYS, ...known.keys];
  const what =
    known === null || executor === null ? 'a step' : `${/^[aeiou]/.test(executor) ? 'an' : 'a'} ${executor} step`;
  const habits = table.entries.has('id') ? HABITS : { ...HABITS, name: 'The name of a step is its "id".' };
  checkSimilarKeys(report, table, keys, what, habits);
}

const COMMAND_HINT = 'A script is the "command" of a shell step.';
const CONDITION_HINT = 'Use a branch: executor = "branch", condition = "…", on_true = { … }.';
/** Keys of steps in other tools, without separators. */
const HABITS: Readonly<Record<string, string>> = {
  run: COMMAND_HINT,
  script: COMMAND_HINT,
  if: CONDITION_HINT,
  when: CONDITION_HINT,
  dependson: 'Write needs = ["…"].',
};

function readId(report: Report, table: TomlTable, index: number): string {
  const id = neededStringAt(report, table, 'id', 'Give it a name: id = "build".');
  if (id === null) return placeholderId(index);
  if (!NAME.test(id.value)) {
    const hint = id.value.includes('.')
      ? 'Dots are for the ids of steps below others; use - or _.'
      : 'Ids are made of letters, digits, - and _.';
    report.error('invalid-id', id.place, `"${id.value}" is not a valid step id`, hint);
  }
  return id.value;
}

/** The named executor, or the likely one, so that the rest of the step can be checked. */
function readExecutor(report: Report, table: TomlTable): string | null {
  const executor = neededStringAt(report, table, 'executor', 'Say who runs it: executor = "shell".');
  if (executor === null) return GUESSES.find(([key]) => table.entries.has(key))?.[1] ?? null;
  const name = executor.value;
  if (findExecutor(name) !== null) return name;
  const hint = suggest(name, EXECUTOR_NAMES, `Available: ${listed(EXECUTOR_NAMES)}.`);
  report.error('unknown-executor', executor.place, `there is no executor "${name}"`, hint);
  return nearest(name, EXECUTOR_NAMES);
}

/** Keys that belong to one executor, for steps that do not name theirs. */
const GUESSES: readonly (readonly [string, string])[] = [
  ['command', 'shell'],
  ['prompt', 'agent'],
  ['condition', 'branch'],
  ['items', 'foreach'],
  ['max_rounds', 'loop'],
];

function readNeeds(report: Report, table: TomlTable): readonly NeedSyntax[] {
  const value = table.entries.get('needs')?.value;
  const hint = value?.kind === 'string' ? `Put it in brackets: needs = ["${value.value}"].` : NEEDS_EXAMPLE;
  const needs: NeedSyntax[] = [];
  for (const item of listAt(report, table, 'needs', hint)?.items ?? []) {
    if (item.kind === 'string') needs.push({ text: item.value, place: item.place });
    else wrongType(report, item, 'a need must be a string', NEEDS_EXAMPLE);
  }
  return needs;
}

/** `on_error = ".name"`: a recovery workflow. */
function readRecovery(report: Report, table: TomlTable): TargetSyntax | null {
  const reference = stringAt(report, table, 'on_error', 'Write "fail", "continue" or the name of a workflow: ".fix".');
  if (reference === null || !namesWorkflow(reference.value)) return null;
  const to = { kind: 'template', reference } as const;
  return { kind: 'recover', key: 'on_error', place: reference.place, to, variables: [], brings: [FAILED_STEP] };
}

function lowerOnError(scope: Scope, { table, targets }: StepSyntax): OnError {
  const recovery = targets.find(({ kind }) => kind === 'recover');
  if (recovery !== undefined) {
    const target = lowerTarget(scope, recovery);
    return target === null ? { kind: 'fail' } : { kind: 'recover', target };
  }
  return { kind: stringAt(scope.report, table, 'on_error')?.value === 'continue' ? 'continue' : 'fail' };
}

function lowerTimeout(scope: Scope, table: TomlTable): Text | null {
  const value = table.entries.get('timeout')?.value;
  if (value === undefined) return null;
  if (value.kind === 'string' && value.value.includes('{{')) return lowerText(scope, value);
  const ms = durationAt(scope.report, table, 'timeout');
  if (ms === null) return null;
  if (ms > 0) return `${String(ms)}ms`;
  const message = 'a timeout of nothing ends every step at once';
  return scope.report.error('invalid-duration', value.place, message, 'Leave it out for no limit.');
}

function lowerRetry(report: Report, table: TomlTable): Retry {
  const retry = tableAt(report, table, 'retry', 'Write retry = { max_attempts = 3, delay = "10s" }.');
  if (retry === null) return NO_RETRY;
  checkKeys(report, retry, namesOf(RETRY.keys), '"retry"', 'error');
  stringAt(report, retry, 'description');
  const both = [countAt(report, retry, 'max_attempts', 1), countAt(report, retry, 'attempts', 1)];
  const [, other] = ['max_attempts', 'attempts'].flatMap((key) => retry.entries.get(key) ?? []);
  if (other !== undefined) {
    const message = '"max_attempts" and "attempts" are the same key';
    report.error('invalid-value', other.keyPlace, message, 'Keep "max_attempts".');
  }
  if (!retry.entries.has('max_attempts') && !retry.entries.has('attempts')) {
    missing(report, retry.place, '"retry"', 'max_attempts', 'Say how often the step may be tried: max_attempts = 3.');
  }
  return {
    attemptsMax: both.find((attempts) => attempts !== null) ?? 1,
    delayMs: durationAt(report, retry, 'delay') ?? 0,
    backoff: choiceAt(report, retry, 'backoff', BACKOFFS, 'Write "none", "linear" or "exponential".') ?? 'none',
    jitter: readJitter(report, retry),
  };
}

function readJitter(report: Report, retry: TomlTable): number {
  const value = retry.entries.get('jitter')?.value;
  if (value === undefined) return 0;
  if (value.kind === 'boolean') return value.value ? JITTER : 0;
  const hint = 'Write jitter = true, or the share of the delay that is left to chance: jitter = 0.2.';
  if (value.kind !== 'integer' && value.kind !== 'float') {
    wrongType(report, value, '"jitter" must be true, false or a number from 0 to 1', hint);
    return 0;
  }
  if (value.value >= 0 && value.value <= 1) return value.value;
  report.error('invalid-value', value.place, `"jitter" must be from 0 to 1, got ${String(value.value)}`, hint);
  return 0;
}

function checkWithoutExecutor(scope: Scope, step: TomlTable): void {
  const named = ['item_var', 'index_var'].flatMap((key) => {
    const name = step.entries.get(key)?.value;
    return name?.kind === 'string' ? [name.value] : [];
  });
  const inside: Scope = { ...scope, variables: new Set([...scope.variables, ...named]) };
  // Common keys are checked elsewhere; `outputs` describes outputs, without placeholders.
  const skipped = [...COMMON_KEYS, 'timeout', 'outputs'];
  for (const { key, value } of step.entries.values()) {
    if (skipped.includes(key)) continue;
    if (value.kind === 'string' && (key === 'command' || key === 'condition')) lowerScript(scope, value);
    else checkTexts(inside, value);
  }
}

/** Lists are skipped: they contain steps with a scope of their own. */
function checkTexts(scope: Scope, value: TomlValue): void {
  if (value.kind === 'string') lowerText(scope, value);
  else if (value.kind === 'table') for (const entry of value.entries.values()) checkTexts(scope, entry.value);
}
