// Names that a reference may use, and the errors for others.
//
//   - Allowed are names that the workflow declares, that the run was given, that are built in, or that a caller
//     declares or passes.
//   - `step.outputs.field` must name a step that has certainly finished: one that is needed, directly or indirectly, or
//     that finished before this block was entered. Waiting is never inferred from a reference; it must be written in
//     `needs`.
//   - If not all callers are known, an unknown name is only a warning.

import { nearest } from '../../base/names.ts';
import type { Place } from '../../base/source.ts';
import type { AdapterRefusal } from '../adapter-catalog.ts';
import { listed, type Report, suggest } from '../report.ts';
import { LITERAL_BRACES } from '../template.ts';
import { idsOfRound, knownBelow, type LinkedTargets, stepsBelow, stepsOfRound } from './linked-targets.ts';
import { type BlockSyntax, isPlaceholder, type OutputType, type StepSyntax, type VariableSyntax } from './syntax.ts';

/** Its block, and what is known at a position in it. */
export interface Scope extends Pick<BlockSyntax, 'report' | 'workflow' | 'key' | 'byId'> {
  /** Variables declared by the block, and those added at this position. */
  readonly variables: ReadonlySet<string>;
  readonly declared: readonly VariableSyntax[];
  /** Names passed without a declaration. */
  readonly passed: ReadonlySet<string>;
  readonly builtins: readonly string[];
  /** The step that contains the text; null in a cleanup script. */
  readonly step: StepSyntax | null;
  /** The loop whose rounds the text is for, in its own variables. */
  readonly round: StepSyntax | null;
  readonly isFinished: (id: string) => boolean;
  /** Whether the step has its own outputs by then. */
  readonly ownOutputs: boolean;
  readonly around: CallerScope;
  readonly links: LinkedTargets;
  readonly adapters: Adapters;
  /** Default adapter of the workflow that is run, if it is a plain name. */
  readonly runAdapter: string | null;
  /** Whether a variable `default_adapter` certainly has a value here. */
  readonly hasAdapterVariable: boolean;
  readonly onUse: (name: string) => void;
}

/** What a block sees through its callers. */
export interface CallerScope {
  readonly names: ReadonlySet<string>;
  readonly findStep: (id: string) => { readonly step: StepSyntax; readonly isFinished: boolean } | null;
  /** The innermost loops around it, one on each path. */
  readonly findLoops: () => readonly StepSyntax[];
  readonly openness: Openness;
}

/** `closed`: all callers are known. `called`: unknown callers may exist, with names and steps of their own. */
export type Openness = 'closed' | 'called';

export interface Adapters {
  /** Overrides every choice of the workflow; null does not. */
  readonly forced: string | null;
  /** Used if the workflow names none. */
  fallback(): string;
  /** Why an adapter cannot be used, reported as a warning; absent if that does not matter. */
  refusal?(adapter: string): AdapterRefusal | null;
}

export const WORKFLOW_BUILTINS = ['workflow_id', 'timestamp', 'date', 'time'] as const;
export const STEP_BUILTINS = [...WORKFLOW_BUILTINS, 'step_id', '__step_prefix__'] as const;

/** In a round of a loop: its number, which no variable can hide, and the round before. */
const ROUND = 'round';
const PREVIOUS = 'previous';

/** A variable of that name hides the built-in one, or is hidden by it, perhaps unintentionally. */
export function checkNotBuiltin(report: Report, place: Place, name: string): void {
  if (![...STEP_BUILTINS, ROUND, PREVIOUS].includes(name)) return;
  const message =
    name === ROUND
      ? `the variable "${name}" is hidden in loops: {{${name}}} is the number of the round there`
      : `the variable "${name}" hides the built-in one: {{${name}}} is its value from now on`;
  report.warning('reserved-name', place, message, 'Choose another name, unless you mean it.');
}

/** Variable of a recovery workflow that describes the failed step. */
export const FAILED_STEP = '_failed_step';
const FAILED_STEP_FIELDS = [
  'id',
  'executor',
  'error_type',
  'error_message',
  'started_at',
  'duration',
  'retries',
  'agent',
  'prompt',
];

export function checkReference(scope: Scope, path: readonly string[], place: Place): void {
  const [name = ''] = path;
  const outputs = path.indexOf('outputs');
  if (outputs <= 0 || scope.variables.has(name)) return checkName(scope, path, place);
  if (name === PREVIOUS && outputs > 1 && !scope.around.names.has(name)) return checkPrevious(scope, path, place);
  checkOutput(scope, { id: name, below: path.slice(1, outputs), field: path.slice(outputs + 1), place });
}

/** The declared type of the value; null if unknown. */
export function typeOfReference(scope: Scope, path: readonly string[]): OutputType | null {
  const [name = '', word, field] = path;
  if (scope.variables.has(name)) {
    const declared = scope.declared.find((variable) => variable.name === name);
    return path.length > 1 || declared === undefined || declared.type === 'any' ? null : declared.type;
  }
  if (word !== 'outputs' || field === undefined || path.length > 3) return null;
  const step = scope.byId.get(name) ?? scope.around.findStep(name)?.step;
  return step?.outputs?.get(field) ?? null;
}

function checkName(scope: Scope, path: readonly string[], place: Place): void {
  const { report, around } = scope;
  const [name = '', part] = path;
  scope.onUse(name);
  const isBuiltin = scope.builtins.includes(name) && !around.names.has(name);
  const declare = `Declare it under [${scope.workflow.name}.variables]: ${name} = { required = true }.`;
  const known = (): readonly string[] => [...scope.variables, ...scope.builtins, ...scope.byId.keys(), ...around.names];
  if (name === FAILED_STEP) checkFailedStep(scope, path, place);
  else if (scope.variables.has(name) || (isBuiltin && part === undefined)) return;
  else if (isBuiltin) {
    const message = `{{${name}}} is a text and has no "${part}"`;
    report.error('unknown-variable', place, message, `Write {{${name}}}.`);
  } else if (scope.byId.has(name)) {
    const field = path.slice(1).join('.') || 'NAME';
    const message = `"${name}" is a step; what it leaves behind are its outputs`;
    report.error('unknown-variable', place, message, `Write {{${name}.outputs.${field}}}.`);
  } else if (scope.passed.has(name)) {
    report.warning('undeclared-variable', place, `"${name}" is passed by --var, and not declared`, declare);
  } else if (around.names.has(name)) return;
  else if (around.openness === 'called') {
    const message = `"${name}" is not declared here; it must come from the caller`;
    report.warning('undeclared-variable', place, message, () => suggest(name, known(), declare));
  } else {
    report.error('unknown-variable', place, `there is no variable "${name}"`, () => {
      const there = new Set([...scope.variables, ...around.names]);
      const declared = there.size === 0 ? 'The workflow declares no variables.' : `Declared: ${listed(there)}.`;
      return suggest(name, known(), `${declared} ${LITERAL_BRACES}`);
    });
  }
}

function checkFailedStep({ report, around, variables }: Scope, path: readonly string[], place: Place): void {
  if (variables.has(FAILED_STEP)) return;
  if (around.openness !== 'called' && !around.names.has(FAILED_STEP)) {
    const message = `no step has failed here: ${FAILED_STEP} is known where a workflow is named by on_error`;
    report.error('unknown-variable', place, message, 'Name this workflow by on_error, or remove the reference.');
    return;
  }
  const field = path[1];
  if (field === undefined || FAILED_STEP_FIELDS.includes(field)) return;
  const hint = suggest(field, FAILED_STEP_FIELDS, `It has ${listed(FAILED_STEP_FIELDS)}.`);
  report.error('unknown-variable', place, `${FAILED_STEP} has no "${field}"`, hint);
}

/** `{{previous.step.outputs.field}}`. */
function checkPrevious(scope: Scope, [, ...path]: readonly string[], place: Place): void {
  const { report, around, round } = scope;
  const loops = round === null ? around.findLoops() : [round];
  if (loops.length > 0) {
    checkRoundOutput(scope, loops, path, place);
    return;
  }
  const message = `"${PREVIOUS}" is the round before, and this is not in a round of a loop`;
  const hint = 'Use it in the steps of a loop: executor = "loop".';
  report[around.openness === 'called' ? 'warning' : 'error']('unknown-variable', place, message, hint);
}

/** `step.outputs.field` must name an output of a step in a round of one of the loops. Returns its type, if known. */
export function checkRoundOutput(
  scope: Scope,
  loops: readonly StepSyntax[],
  path: readonly string[],
  place: Place,
): OutputType | null {
  const split = path.indexOf('outputs');
  const [id = '', ...below] = path.slice(0, split);
  const field = path.slice(split + 1);
  const found = loops.map((loop) => stepsOfRound(scope.links, loop, id));
  if (found.includes(null)) return null;
  const [step] = found.flatMap((steps) => steps ?? []);
  if (step !== undefined) {
    const isKnown = checkFields(scope, step, { id, below, field, place }) && below.length === 0 && field.length === 1;
    return isKnown ? (step.outputs?.get(field[0] ?? '') ?? null) : null;
  }
  const hint = (): string => {
    const ids = loops.flatMap((loop) => idsOfRound(scope.links, loop));
    return suggest(id, ids, `Its steps are ${listed(ids)}.`);
  };
  return scope.report.error('unknown-step', place, `a round has no step "${id}"`, hint);
}

/** `{{id.below.outputs.field}}`. */
interface OutputReference {
  readonly id: string;
  readonly below: readonly string[];
  readonly field: readonly string[];
  readonly place: Place;
}

function checkOutput(scope: Scope, reference: OutputReference): void {
  const { report, byId } = scope;
  const { id, below, place } = reference;
  const step = byId.get(id);
  if (step === undefined) checkOutputAround(scope, reference);
  else if (step === scope.step && !scope.ownOutputs) {
    report.error('output-of-itself', place, 'a step cannot use its own outputs', 'They exist when it has finished.');
  } else if (!checkFields(scope, step, reference) || step === scope.step) return;
  else if (scope.isFinished(id)) {
    if (below.length > 0) checkBelowNeeded(scope, step, reference);
  } else if (scope.step === null) {
    const message = `"${id}" may not have finished when this script runs, and the script would then not run`;
    report.warning('uncertain-output', place, message, 'Use variables here, which always have a value.');
  } else {
    // Errors in needs are reported there, so the hint must not repeat them.
    const sound = scope.step.needs
      .map(({ text }) => text)
      .filter((text) => /^[^.]*\*/.test(text) || byId.has(text.split('.', 1)[0] ?? ''));
    const needs = [...sound, id].map((text) => `"${text}"`).join(', ');
    const message = `"${id}" may not have finished by then: it is not among the needs`;
    report.error('output-not-needed', place, message, `Add it: needs = [${needs}].`);
  }
}

/** Not a step of this block: one of a caller, or none. */
function checkOutputAround(scope: Scope, reference: OutputReference): void {
  const { report, byId, around } = scope;
  const { id, place } = reference;
  const found = around.findStep(id);
  if (found !== null) {
    if (!checkFields(scope, found.step, reference) || found.isFinished) return;
    const message = `"${id}" may not have finished by then: the step that enters this workflow does not need it`;
    report.warning('output-not-needed', place, message, `Add "${id}" to the needs of that step.`);
  } else if (around.names.has(id)) return;
  else if (around.openness === 'called' && nearest(id, byId.keys()) === null) {
    const message = `there is no step "${id}" here; it must be one of the caller's`;
    report.warning('unknown-step', place, message, 'Better pass the value as a variable.');
  } else {
    report.error('unknown-step', place, `there is no step "${id}"`, () => {
      const others = [...byId.keys()].filter((other) => other !== scope.step?.id && !isPlaceholder(other));
      const there = others.length === 0 ? 'There is no other step here.' : `Steps here: ${listed(others)}.`;
      return suggest(id, others, there);
    });
  }
}

/** An expansion is done when its steps exist, so users of their outputs must need those steps themselves. */
function checkBelowNeeded(scope: Scope, step: StepSyntax, { below, place }: OutputReference): void {
  if (step.executor !== 'expand') return;
  const needs = [...scope.byId.values()].flatMap((other) => other.needs.map(({ text }) => text));
  if (needs.some((need) => need.startsWith(`${step.id}.`) || /\*.*\./.test(need))) return;
  const id = [step.id, ...below].join('.');
  const message = `"${id}" may not have finished by then: "${step.id}" is over as soon as its steps are there`;
  scope.report.warning('output-not-needed', place, message, `Need the step itself: "${id}".`);
}

/** The step, or the step below it that the path names, must have the output. False after an error. */
function checkFields(scope: Scope, step: StepSyntax, reference: OutputReference): boolean {
  const { id, below, place } = reference;
  if (below.length === 0) return checkField(scope, step, reference);
  const found = step.canGrow ? stepsBelow(scope.links, step, below) : [];
  if (found === null) return true;
  const [first] = found;
  if (first !== undefined) return checkField(scope, first, reference);
  const name = [id, ...below].join('.');
  scope.report.error('unknown-step', place, `there is no step "${name}"`, () => knownBelow(scope.links, step, name));
  return false;
}

function checkField(scope: Scope, step: StepSyntax, reference: OutputReference): boolean {
  const { report } = scope;
  const { field: path, place } = reference;
  const [field, part] = path;
  if (field === undefined) {
    const hint = `Write {{${step.id}.outputs.NAME}}.`;
    report.error('unknown-output', place, 'the name of the output is missing', hint);
    return false;
  }
  const { outputs } = step;
  const type = outputs?.get(field);
  // The outputs of a loop contain those of the steps of its last round, by their ids.
  const inRound = step.executor === 'loop' && type === undefined ? stepsOfRound(scope.links, step, field) : [];
  const [last] = inRound ?? [];
  if (inRound === null) return true;
  if (last !== undefined) return path.length === 1 || checkField(scope, last, { ...reference, field: path.slice(1) });
  if (outputs !== null && type === undefined) {
    const names = [...outputs.keys(), ...(step.executor === 'loop' ? idsOfRound(scope.links, step) : [])];
    const hint = suggest(field, names, `It has ${listed(names)}.`);
    const message = `the step "${step.id}" has no output "${field}"`;
    report.error('unknown-output', place, message, outputs.size === 0 ? 'It declares no outputs.' : hint);
    return false;
  }
  if (type === undefined || part === undefined || type === 'json') return true;
  const message = `the output "${field}" of "${step.id}" is ${ARTICLED[type]}, and has no "${part}"`;
  report.error('output-type', place, message, 'Give it the type "json", if it is JSON.');
  return true;
}

/** For messages. */
export const ARTICLED: Readonly<Record<OutputType, string>> = {
  any: 'a text',
  string: 'a text',
  integer: 'an integer',
  number: 'a number',
  boolean: 'a boolean',
  json: 'JSON',
  file_path: 'the path of a file',
};
