// One step: the keys that every executor shares. Reading finds what others must know of it (its id, its needs, its
// outputs); lowering makes the step of the IR.

import { nearest } from '../../base/nearest.ts';
import type { OnError, Retry, Step } from '../../ir/program.ts';
import { NO_RETRY } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import type { Report } from '../report.ts';
import { suggest } from '../report.ts';
import type { TomlTable } from '../toml-tree.ts';
import { describeToml } from '../toml-tree.ts';
import { EXECUTOR_NAMES, findExecutor, findPlanned } from './executors/executors.ts';
import { checkWithoutExecutor } from './executors/no-executor.ts';
import { checkKeys, countAt, duration, durationAt, listAt, missing, stringAt, tableAt } from '../toml-fields.ts';
import type { Scope } from './scope.ts';
import type { NeedSyntax, StepSyntax } from './syntax.ts';
import { lowerText } from './text.ts';

const COMMON_KEYS = ['id', 'executor', 'needs', 'on_error', 'timeout', 'retry', 'description'];
const RETRY_KEYS = ['max_attempts', 'attempts', 'delay', 'backoff'] as const;
const BACKOFFS = ['none', 'linear', 'exponential'] as const;
const NEEDS_EXAMPLE = 'Write a list of step ids: needs = ["build", "test"].';

/** `index` names a step that has no id, for the time being. */
export function readStep(report: Report, table: TomlTable, index: number): StepSyntax {
  const id = readId(report, table, index);
  const executor = readExecutor(report, table);
  const known = executor === null ? null : findExecutor(executor);
  const planned = executor === null ? null : findPlanned(executor);
  if (known !== null) {
    checkKeys(report, table, [...COMMON_KEYS, ...known.keys], `a ${known.name} step`, 'warning');
  }
  return {
    id,
    place: table.entries.get('id')?.value.place ?? table.place,
    executor,
    needs: readNeeds(report, table),
    table,
    outputs: known === null ? null : known.outputs(report, table),
    canGrow: known?.canGrow ?? planned?.canGrow ?? true,
  };
}

/** Null where the step cannot be made; the report says why. */
export function lowerStep(scope: Scope, syntax: StepSyntax): Step | null {
  const { report } = scope;
  const { id, table } = syntax;
  const executor = syntax.executor === null ? null : findExecutor(syntax.executor);
  stringAt(report, table, 'description');
  const onError = lowerOnError(report, table);
  const retry = lowerRetry(report, table);
  const timeout = lowerTimeout(scope, table);
  if (executor === null) {
    checkWithoutExecutor(scope, table, COMMON_KEYS);
    return null;
  }
  const act = executor.lower(scope, table);
  if (act === null) return null;
  return {
    id,
    executor: executor.name,
    needs: [...new Set(syntax.needs.map(({ text }) => text))],
    act,
    routes: {},
    unrouted: 'done',
    onError,
    retry,
    timeout,
    agent: null,
  };
}

function readId(report: Report, table: TomlTable, index: number): string {
  const id = stringAt(report, table, 'id');
  if (id === null) {
    if (!table.entries.has('id')) missing(report, table.place, 'this step', 'id', 'Give it a name: id = "build".');
    return `?${String(index)}`;
  }
  if (!/^[A-Za-z0-9_-]+$/.test(id.value)) {
    const dotted = id.value.includes('.');
    const hint = dotted
      ? 'Dots are for the ids of steps below others; use - or _.'
      : 'Ids are made of letters, digits, - and _.';
    report.error('invalid-id', id.place, `"${id.value}" is no id for a step`, hint);
  }
  return id.value;
}

/** The one that is named, or seems to be meant, so that the rest of the step can be checked. */
function readExecutor(report: Report, table: TomlTable): string | null {
  const executor = stringAt(report, table, 'executor');
  if (executor === null) {
    if (!table.entries.has('executor')) {
      missing(report, table.place, 'this step', 'executor', 'Say who runs it: executor = "shell".');
    }
    return table.entries.has('command') ? 'shell' : null;
  }
  const name = executor.value;
  if (findExecutor(name) !== null) return name;
  if (findPlanned(name) !== null) {
    const hint = 'It comes with a later version; until then a shell step has to do.';
    report.error('executor-unavailable', executor.place, `this version runs shell steps only, not "${name}"`, hint);
    return name;
  }
  const hint = suggest(name, EXECUTOR_NAMES, 'This version knows "shell".');
  report.error('unknown-executor', executor.place, `there is no executor "${name}"`, hint);
  return nearest(name, EXECUTOR_NAMES);
}

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

function lowerOnError(report: Report, table: TomlTable): OnError {
  const value = stringAt(report, table, 'on_error');
  if (value === null || value.value === 'fail') return { kind: 'fail' };
  if (value.value === 'continue') return { kind: 'continue' };
  const hint = suggest(value.value, ['fail', 'continue'], 'Write on_error = "fail" or on_error = "continue".');
  if (/^[.]|[#/]/.test(value.value)) {
    report.error('not-available', value.place, 'recovery templates are not available in this version', hint);
  } else
    report.error('invalid-value', value.place, `"on_error" must be "fail" or "continue", got "${value.value}"`, hint);
  return { kind: 'fail' };
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
  return { attemptsMax: attempts ?? 1, delayMs: durationAt(report, retry, 'delay') ?? 0, backoff: known ?? 'none' };
}
