// One step: the keys that all executors share. Reading finds its id, needs and outputs; lowering makes the step of the
// IR.

import { nearest } from '../../base/nearest.ts';
import type { OnError, Retry, Step } from '../../ir/program.ts';
import { NO_RETRY } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { checkKeys, countAt, duration, durationAt, listAt, missing, stringAt, tableAt } from '../toml-fields.ts';
import type { TomlList, TomlTable, TomlValue } from '../toml-tree.ts';
import { describeToml } from '../toml-tree.ts';
import type { Executor } from './executors/executor.ts';
import { EXECUTOR_NAMES, findExecutor } from './executors/executors.ts';
import { lowerTarget, namesRecovery } from './target.ts';
import type { Scope } from './scope.ts';
import { FAILED_STEP } from './scope.ts';
import type { BlockSyntax, NeedSyntax, StepSyntax, TargetSyntax } from './syntax.ts';
import { placeholderId } from './syntax.ts';
import { lowerScript, lowerText } from './text.ts';

const COMMON_KEYS = ['id', 'executor', 'needs', 'on_error', 'retry', 'description'];
const RETRY_KEYS = ['max_attempts', 'attempts', 'delay', 'backoff', 'jitter', 'description'] as const;
const BACKOFFS = ['none', 'linear', 'exponential'] as const;
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
  const known = executor === null ? null : findExecutor(executor);
  if (known !== null) checkKeys(report, table, keysOf(known), `${articled(known.name)} step`, 'warning');
  const recovery = readRecovery(report, table);
  const targets = known?.targets(report, table, (key, steps) => readBelow(id, key, steps)) ?? [];
  return {
    id,
    place: table.entries.get('id')?.value.place ?? table.place,
    executor,
    needs: readNeeds(report, table),
    table,
    outputs: known?.outputs(table) ?? null,
    targets: recovery === null ? targets : [...targets, recovery],
    canGrow: known === null || known.canGrow || recovery !== null,
  };
}

/** Null if the step cannot be lowered; that is reported. */
export function lowerStep(scope: Scope, syntax: StepSyntax): Step | null {
  const { report } = scope;
  const { id, table } = syntax;
  const executor = syntax.executor === null ? null : findExecutor(syntax.executor);
  stringAt(report, table, 'description');
  const onError = lowerOnError(scope, syntax);
  const retry = lowerRetry(report, table);
  const timeout = executor === null || executor.timeout === 'step' ? lowerTimeout(scope, table) : null;
  if (executor === null) {
    checkWithoutExecutor(scope, table, [...COMMON_KEYS, 'timeout']);
    return null;
  }
  const doing = executor.lower(scope, syntax);
  if (doing === null) return null;
  return {
    id,
    executor: executor.name,
    needs: lowerNeeds(scope, syntax),
    act: doing.act,
    routes: doing.routes ?? {},
    unrouted: 'done',
    repromptsMax: 0,
    onError,
    retry,
    timeout,
    agent: doing.agent ?? null,
  };
}

/**
 * An expand is done when its steps exist. A step that starts or kills an agent after it waits for their work: hooks are
 * set up before the start, and an agent is not killed during its work.
 */
function lowerNeeds({ steps }: Scope, { executor, needs }: StepSyntax): readonly string[] {
  const named = needs.map(({ text }) => text);
  const waits = executor === 'spawn' || executor === 'kill';
  const below = named.filter((need) => waits && steps.get(need)?.executor === 'expand').map((need) => `${need}.*`);
  return [...new Set([...named, ...below])];
}

function keysOf({ keys, timeout }: Executor): readonly string[] {
  return [...COMMON_KEYS, ...(timeout === 'none' ? [] : ['timeout']), ...keys];
}

function articled(executor: string): string {
  return `${/^[aeiou]/.test(executor) ? 'an' : 'a'} ${executor}`;
}

function readId(report: Report, table: TomlTable, index: number): string {
  const id = stringAt(report, table, 'id');
  if (id === null) {
    if (!table.entries.has('id')) missing(report, table.place, 'this step', 'id', 'Give it a name: id = "build".');
    return placeholderId(index);
  }
  if (!/^[A-Za-z0-9_-]+$/.test(id.value)) {
    const dotted = id.value.includes('.');
    const hint = dotted
      ? 'Dots are for the ids of steps below others; use - or _.'
      : 'Ids are made of letters, digits, - and _.';
    report.error('invalid-id', id.place, `"${id.value}" is not a valid step id`, hint);
  }
  return id.value;
}

/** The named executor, or the likely one, so that the rest of the step can be checked. */
function readExecutor(report: Report, table: TomlTable): string | null {
  const executor = stringAt(report, table, 'executor');
  if (executor === null) {
    if (!table.entries.has('executor')) {
      missing(report, table.place, 'this step', 'executor', 'Say who runs it: executor = "shell".');
    }
    return GUESSES.find(([key]) => table.entries.has(key))?.[1] ?? null;
  }
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
];

function readNeeds(report: Report, table: TomlTable): readonly NeedSyntax[] {
  const value = table.entries.get('needs')?.value;
  const hint = value?.kind === 'string' ? `Put it in brackets: needs = ["${value.value}"].` : NEEDS_EXAMPLE;
  const needs: NeedSyntax[] = [];
  for (const item of listAt(report, table, 'needs', hint)?.items ?? []) {
    if (item.kind === 'string') needs.push({ text: item.value, place: item.place });
    else report.error('wrong-type', item.place, `a need must be a string, got ${describeToml(item)}`, NEEDS_EXAMPLE);
  }
  return needs;
}

/** `on_error = ".name"`: a recovery workflow. */
function readRecovery(report: Report, table: TomlTable): TargetSyntax | null {
  const reference = stringAt(report, table, 'on_error');
  if (reference === null || !namesRecovery(reference.value)) return null;
  const to = { kind: 'template', reference } as const;
  return { kind: 'recover', key: 'on_error', place: reference.place, to, variables: [], brings: [FAILED_STEP] };
}

function lowerOnError(scope: Scope, { table, targets }: StepSyntax): OnError {
  const recovery = targets.find(({ kind }) => kind === 'recover');
  if (recovery !== undefined) {
    const target = lowerTarget(scope, recovery);
    return target === null ? { kind: 'fail' } : { kind: 'recover', target };
  }
  const value = table.entries.get('on_error')?.value;
  return { kind: value?.kind === 'string' && value.value === 'continue' ? 'continue' : 'fail' };
}

function lowerTimeout(scope: Scope, table: TomlTable): Text | null {
  const value = table.entries.get('timeout')?.value;
  if (value === undefined) return null;
  if (value.kind === 'string' && value.value.includes('{{')) return lowerText(scope, value);
  const ms = duration(scope.report, 'timeout', value);
  if (ms === null) return null;
  if (ms > 0) return `${String(ms)}ms`;
  scope.report.error(
    'invalid-duration',
    value.place,
    'a timeout of nothing ends every step at once',
    'Leave it out for no limit.',
  );
  return null;
}

function lowerRetry(report: Report, table: TomlTable): Retry {
  const retry = tableAt(report, table, 'retry', 'Write retry = { max_attempts = 3, delay = "10s" }.');
  if (retry === null) return NO_RETRY;
  checkKeys(report, retry, RETRY_KEYS, '"retry"', 'error');
  const attempts = countAt(report, retry, 'max_attempts', 1) ?? countAt(report, retry, 'attempts', 1);
  if (!retry.entries.has('max_attempts') && !retry.entries.has('attempts')) {
    missing(report, retry.place, '"retry"', 'max_attempts', 'Say how often the step may be tried: max_attempts = 3.');
  }
  const backoff = stringAt(report, retry, 'backoff');
  const known = BACKOFFS.find((name) => name === backoff?.value);
  if (backoff !== null && known === undefined) {
    const hint = suggest(backoff.value, BACKOFFS, 'Write "none", "linear" or "exponential".');
    report.error('invalid-value', backoff.place, `there is no backoff "${backoff.value}"`, hint);
  }
  return {
    attemptsMax: attempts ?? 1,
    delayMs: durationAt(report, retry, 'delay') ?? 0,
    backoff: known ?? 'none',
    jitter: readJitter(report, retry),
  };
}

function readJitter(report: Report, retry: TomlTable): number {
  const value = retry.entries.get('jitter')?.value;
  if (value === undefined) return 0;
  if (value.kind === 'boolean') return value.value ? JITTER : 0;
  const hint = 'Write jitter = true, or the share of the delay that is left to chance: jitter = 0.2.';
  if (value.kind !== 'integer' && value.kind !== 'float') {
    const message = `"jitter" must be true, false or a number from 0 to 1, got ${describeToml(value)}`;
    report.error('wrong-type', value.place, message, hint);
    return 0;
  }
  if (value.value >= 0 && value.value <= 1) return value.value;
  report.error('invalid-value', value.place, `"jitter" must be from 0 to 1, got ${String(value.value)}`, hint);
  return 0;
}

/** Keys that contain shell scripts. */
const SCRIPTS: readonly string[] = ['command', 'condition'];
/** Keys that name a variable for the steps below. */
const NAMING: readonly string[] = ['item_var', 'index_var'];
/** Descriptions of expected outputs, which have no placeholders. */
const DESCRIPTIONS: readonly string[] = ['outputs'];

/** `common`: keys of every step, which are checked elsewhere. */
function checkWithoutExecutor(scope: Scope, step: TomlTable, common: readonly string[]): void {
  const named = NAMING.map((key) => step.entries.get(key)?.value).flatMap((value) =>
    value?.kind === 'string' ? [value.value] : [],
  );
  const inside: Scope = { ...scope, variables: new Set([...scope.variables, ...named]) };
  for (const { key, value } of step.entries.values()) {
    if (common.includes(key) || DESCRIPTIONS.includes(key)) continue;
    if (value.kind === 'string' && SCRIPTS.includes(key)) lowerScript(scope, value);
    else checkTexts(inside, value);
  }
}

/** Lists are skipped: they contain steps with a scope of their own. */
function checkTexts(scope: Scope, value: TomlValue): void {
  if (value.kind === 'string') lowerText(scope, value);
  else if (value.kind === 'table') for (const entry of value.entries.values()) checkTexts(scope, entry.value);
}
