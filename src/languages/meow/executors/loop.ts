// `loop`: a workflow or inline steps, round after round, until a condition, an output or the number of rounds ends it.

import type { Loop } from '../../../ir/program.ts';
import { namesOf } from '../../keys.ts';
import { missing, type Report } from '../../report.ts';
import { durationAt, stringAt, valueOf } from '../../toml-fields.ts';
import type { TomlEntry, TomlString, TomlTable } from '../../toml-tree.ts';
import { EXECUTOR_TABLES } from '../keys.ts';
import { ARTICLED, checkRoundOutput, type Scope } from '../scope.ts';
import type { StepSyntax, TargetSyntax } from '../syntax.ts';
import { lowerTarget, namesWorkflow, type ReadInline, readTarget, readTemplateOrInline } from '../target.ts';
import { lowerCountAt } from '../text.ts';
import type { Executor } from './executor.ts';

const CONDITIONS = ['until', 'while'] as const;
const ENDS = [...CONDITIONS, 'until_output'] as const;
const EXHAUSTED = 'on_exhausted';
/** Number of the current round; after the loop, that of the last one. */
const BRINGS = ['round'];

export const loop: Executor = {
  keys: namesOf(EXECUTOR_TABLES.loop.keys),
  timeout: 'none',
  // Also those of the last round, by the ids of its steps.
  outputs: () =>
    new Map([
      ['rounds', 'integer'],
      ['outcome', 'string'],
      ['result', 'json'],
    ]),
  targets: (report, step, readInline) => [
    ...[readRound(report, step, readInline) ?? []].flat(),
    ...CONDITIONS.flatMap((key) => readCondition(report, step, key, readInline)),
    ...[readExhausted(report, step, readInline) ?? []].flat(),
  ],
  lower: (scope, syntax) => {
    const { table, targets } = syntax;
    const { report } = scope;
    const lowered = (kind: TargetSyntax['kind']) => {
      const target = targets.find((each) => each.kind === kind);
      return target === undefined ? null : lowerTarget(scope, target);
    };
    if (!table.entries.has('max_rounds'))
      missing(report, table.place, 'this step', 'max_rounds', 'Say when to give up: max_rounds = 20.');
    const roundsMax = lowerCountAt(scope, table, 'max_rounds');
    const delayMs = durationAt(report, table, 'delay') ?? 0;
    const output = lowerOutput(scope, syntax);
    const [target, check, after] = [lowered('round'), lowered('check'), lowered('exhausted')];
    checkEnds(report, table);
    const ends: Loop['check'] | null =
      output ?? (check && { kind: 'block', when: table.entries.has('while') ? 'before' : 'after', target: check });
    if (target === null || roundsMax === null || ends === null) return null;
    const isDone = valueOf(table, EXHAUSTED, 'string')?.value === 'continue';
    const exhausted: Loop['exhausted'] =
      after === null ? { kind: isDone ? 'end' : 'fail' } : { kind: 'expand', target: after };
    return { act: { kind: 'loop', target, check: ends, roundsMax, delayMs, exhausted } };
  },
};

function readRound(report: Report, step: TomlTable, readInline: ReadInline): TargetSyntax | null {
  const target = { kind: 'round', key: 'template', brings: BRINGS } as const;
  const hint = 'Say what a round does: template = ".round", or inline = [{ id = "…", executor = "…", … }].';
  return readTemplateOrInline(report, step, target, ['this step', hint], (steps) => readInline('inline', steps));
}

/** A condition is a branch of its own in each round: `fix.7.until`. */
function readCondition(
  report: Report,
  step: TomlTable,
  key: 'until' | 'while',
  readInline: ReadInline,
): readonly TargetSyntax[] {
  const condition = stringAt(report, step, key);
  if (condition === null) return [];
  const { place } = condition;
  const entry = (name: string, value: TomlString): readonly [string, TomlEntry] => [
    name,
    { key: name, keyPlace: place, value },
  ];
  const word = (value: string): TomlString => ({ kind: 'string', place, value, seams: [] });
  const entries = new Map([entry('id', word(key)), entry('executor', word('branch')), entry('condition', condition)]);
  const block = readInline(key, { kind: 'list', place, items: [{ kind: 'table', place, entries }] });
  return [{ kind: 'check', key, place, to: { kind: 'inline', block }, variables: [], brings: BRINGS }];
}

function readExhausted(report: Report, step: TomlTable, readInline: ReadInline): TargetSyntax | null {
  const reference = valueOf(step, EXHAUSTED, 'string');
  if (reference === null) {
    const hint = 'Write "fail", "continue", the name of a workflow (".give-up"), or a table: { inline = […] }.';
    const target = readTarget(report, step, EXHAUSTED, readInline, hint);
    return target && { ...target, kind: 'exhausted', brings: BRINGS };
  }
  if (!namesWorkflow(reference.value)) return null;
  const to = { kind: 'template', reference } as const;
  return { kind: 'exhausted', key: EXHAUSTED, place: reference.place, to, variables: [], brings: BRINGS };
}

/** Exactly one key says when the loop is over. */
function checkEnds(report: Report, step: TomlTable): void {
  const [first, ...others] = ENDS.flatMap((key) => step.entries.get(key) ?? []);
  if (first === undefined) {
    const hint = 'Say when it is over: until = "npm test", while = "…", or until_output = "STEP.outputs.NAME".';
    missing(report, step.place, 'this step', 'until', hint);
  }
  for (const { key, keyPlace } of others) {
    const message = `the step has both "${first?.key ?? ''}" and "${key}"`;
    report.error('invalid-value', keyPlace, message, 'Keep one of the two.');
  }
}

/** `until_output = "review.outputs.approved"`. */
function lowerOutput(scope: Scope, { table }: StepSyntax): Loop['check'] | null {
  const { report, step } = scope;
  const output = stringAt(report, table, 'until_output');
  if (output === null || step === null) return null;
  const { value, place } = output;
  const path = value.split('.');
  const split = path.indexOf('outputs');
  if (!/^[\w-]+(?:\.[\w-]+)*$/.test(value) || split < 1 || split === path.length - 1) {
    const hint = 'Name a step of the round and its output, without braces: until_output = "review.outputs.approved".';
    return report.error('invalid-value', place, `"until_output" cannot be ${JSON.stringify(value)}`, hint);
  }
  const type = checkRoundOutput(scope, [step], path, place);
  if (type === 'integer' || type === 'number' || type === 'file_path') {
    const message = `"${value}" is ${ARTICLED[type]}, and only true ends the loop`;
    report.error('output-type', place, message, 'Name an output of the type "boolean", or use until = "…".');
  }
  return { kind: 'output', step: path.slice(0, split).join('.'), path: path.slice(split + 1) };
}
