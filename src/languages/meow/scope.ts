// Names that a reference may use, and the errors for others.
//
//   - Allowed are names that the workflow declares, that the run was given, that are built in, or that a caller
//     declares or passes.
//   - `step.outputs.field` must name a step that has certainly finished: one that is needed, directly or indirectly, or
//     that finished before this block was entered. Waiting is never inferred from a reference; it must be written in
//     `needs`.
//   - If not all callers are known, an unknown name is only a warning.

import type { Place } from '../../base/source.ts';
import { nearest } from '../../base/nearest.ts';
import type { AdapterRefusal } from '../adapter-catalog.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { LITERAL_BRACES } from '../template.ts';
import type { LinkedTargets } from './linked-targets.ts';
import { knownBelow, stepsBelow } from './linked-targets.ts';
import type { OutputType, StepSyntax, VariableSyntax, WorkflowSyntax } from './syntax.ts';
import { isPlaceholder } from './syntax.ts';

export interface Scope {
  readonly report: Report;
  readonly workflow: WorkflowSyntax;
  /** Variables declared by the block, and those added at this position. */
  readonly variables: ReadonlySet<string>;
  readonly declared: readonly VariableSyntax[];
  /** Names passed without a declaration. */
  readonly passed: ReadonlySet<string>;
  readonly builtins: readonly string[];
  readonly steps: ReadonlyMap<string, StepSyntax>;
  /** The step that contains the text; null in a cleanup script. */
  readonly step: StepSyntax | null;
  /** Whether a step has finished by then. */
  readonly isFinished: (id: string) => boolean;
  /** Whether the step has its own outputs by then. */
  readonly ownOutputs: boolean;
  readonly around: CallerScope;
  readonly links: LinkedTargets;
  /** Default adapter of agents. */
  readonly adapter: AdapterChoice;
  readonly onUse: (name: string) => void;
}

/** What a block sees through its callers. */
export interface CallerScope {
  readonly names: ReadonlySet<string>;
  /** The nearest step with that id. */
  readonly findStep: (id: string) => { readonly step: StepSyntax; readonly isFinished: boolean } | null;
  readonly openness: Openness;
}

/** `closed`: all callers are known. `called`: unknown callers may exist, with names and steps of their own. */
export type Openness = 'closed' | 'called';

export interface AdapterChoice {
  /** Overrides every choice; null does not. */
  readonly forced: string | null;
  /** Used if nothing else is given. */
  readonly fallback: () => string;
  /** Whether a variable `default_adapter` certainly has a value here. */
  readonly hasVariable: boolean;
  /** Why an adapter cannot be used; null if it can, or if that does not matter. */
  readonly refusal: (adapter: string) => AdapterRefusal | null;
}

export const WORKFLOW_BUILTINS = ['workflow_id', 'timestamp', 'date', 'time'] as const;
export const STEP_BUILTINS = [...WORKFLOW_BUILTINS, 'step_id', '__step_prefix__'] as const;

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
  if (outputs > 0 && !scope.variables.has(name)) checkOutput(scope, path, outputs, place);
  else checkName(scope, name, path, place);
}

/** The declared type of the value; null if unknown. */
export function typeOfReference(scope: Scope, path: readonly string[]): OutputType | null {
  const [name = '', word, field] = path;
  if (scope.variables.has(name)) {
    const declared = scope.declared.find((variable) => variable.name === name);
    return path.length > 1 || declared === undefined || declared.type === 'any' ? null : declared.type;
  }
  if (word !== 'outputs' || field === undefined || path.length > 3) return null;
  const step = scope.steps.get(name) ?? scope.around.findStep(name)?.step;
  return step?.outputs?.get(field) ?? null;
}

function checkName(scope: Scope, name: string, path: readonly string[], place: Place): void {
  const { report, around } = scope;
  scope.onUse(name);
  if (name === FAILED_STEP) return checkFailedStep(scope, path, place);
  if (scope.variables.has(name)) return;
  if (scope.builtins.includes(name) && !around.names.has(name)) {
    if (path.length > 1)
      report.error(
        'unknown-variable',
        place,
        `{{${name}}} is a text and has no "${path[1] ?? ''}"`,
        `Write {{${name}}}.`,
      );
    return;
  }
  if (scope.steps.has(name)) {
    const field = path.length > 1 ? path.slice(1).join('.') : 'NAME';
    const message = `"${name}" is a step; what it leaves behind are its outputs`;
    return report.error('unknown-variable', place, message, `Write {{${name}.outputs.${field}}}.`);
  }
  const declare = `Declare it under [${scope.workflow.name}.variables]: ${name} = { required = true }.`;
  if (scope.passed.has(name)) {
    return report.warning('undeclared-variable', place, `"${name}" is passed by --var, and not declared`, declare);
  }
  if (around.names.has(name)) return;
  const known = [...scope.variables, ...scope.builtins, ...scope.steps.keys(), ...around.names];
  if (around.openness === 'called') {
    const message = `"${name}" is not declared here; it must come from the caller`;
    return report.warning('undeclared-variable', place, message, () => suggest(name, known, declare));
  }
  report.error('unknown-variable', place, `there is no variable "${name}"`, () => {
    const there = new Set([...scope.variables, ...around.names]);
    const declared = there.size === 0 ? 'The workflow declares no variables.' : `Declared: ${listed(there)}.`;
    return suggest(name, known, `${declared} ${LITERAL_BRACES}`);
  });
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

function checkOutput(scope: Scope, path: readonly string[], outputs: number, place: Place): void {
  const { report, steps } = scope;
  const [id = ''] = path;
  const step = steps.get(id);
  if (step === undefined) return checkOutputAround(scope, path, outputs, place);
  if (step === scope.step && !scope.ownOutputs) {
    return report.error(
      'output-of-itself',
      place,
      'a step cannot use its own outputs',
      'They exist when it has finished.',
    );
  }
  if (!checkFields(scope, step, path, outputs, place) || step === scope.step) return;
  if (scope.isFinished(id))
    return outputs > 1 ? checkBelowNeeded(scope, step, path.slice(0, outputs), place) : undefined;
  if (scope.step === null) {
    const message = `"${id}" may not have finished when this script runs, and the script would then not run`;
    return report.warning('uncertain-output', place, message, 'Use variables here, which always have a value.');
  }
  // Errors in needs are reported there, so the hint must not repeat them.
  const sound = scope.step.needs.map(({ text }) => text).filter((text) => namesStep(steps, text));
  const needs = [...sound, id].map((text) => `"${text}"`).join(', ');
  const message = `"${id}" may not have finished by then: it is not among the needs`;
  report.error('output-not-needed', place, message, `Add it: needs = [${needs}].`);
}

/** Not a step of this block: one of a caller, or none. */
function checkOutputAround(scope: Scope, path: readonly string[], outputs: number, place: Place): void {
  const { report, steps, around } = scope;
  const [id = ''] = path;
  const found = around.findStep(id);
  if (found !== null) {
    if (!checkFields(scope, found.step, path, outputs, place) || found.isFinished) return;
    const message = `"${id}" may not have finished by then: the step that enters this workflow does not need it`;
    return report.warning('output-not-needed', place, message, `Add "${id}" to the needs of that step.`);
  }
  if (around.names.has(id)) return;
  const suggestOther = (): string => {
    const others = [...steps.keys()].filter((other) => other !== scope.step?.id && !isPlaceholder(other));
    const there = others.length === 0 ? 'There is no other step here.' : `Steps here: ${listed(others)}.`;
    return suggest(id, others, there);
  };
  if (around.openness === 'called' && nearest(id, steps.keys()) === null) {
    const message = `there is no step "${id}" here; it must be one of the caller's`;
    return report.warning('unknown-step', place, message, 'Better pass the value as a variable.');
  }
  report.error('unknown-step', place, `there is no step "${id}"`, suggestOther);
}

function namesStep(steps: ReadonlyMap<string, StepSyntax>, need: string): boolean {
  const [head = ''] = need.split('.');
  return head.includes('*') || steps.has(head);
}

/** An expansion is done when its steps exist, so users of their outputs must need those steps themselves. */
function checkBelowNeeded(scope: Scope, step: StepSyntax, path: readonly string[], place: Place): void {
  if (step.executor !== 'expand') return;
  const needs = [...scope.steps.values()].flatMap((other) => other.needs.map(({ text }) => text));
  if (needs.some((need) => need.startsWith(`${step.id}.`) || /\*.*\./.test(need))) return;
  const below = path.join('.');
  const message = `"${below}" may not have finished by then: "${step.id}" is over as soon as its steps are there`;
  scope.report.warning('output-not-needed', place, message, `Need the step itself: "${below}".`);
}

/** The step, or the step below it that the path names, must have the output. False after an error. */
function checkFields(scope: Scope, step: StepSyntax, path: readonly string[], outputs: number, place: Place): boolean {
  if (outputs === 1) return checkField(scope, step, path.slice(2), place);
  const { report } = scope;
  const below = path.slice(0, outputs).join('.');
  const found = step.canGrow ? stepsBelow(scope.links, step, path.slice(1, outputs)) : [];
  if (found === null) return true;
  const [first] = found;
  if (first !== undefined) return checkField(scope, first, path.slice(outputs + 1), place);
  report.error('unknown-step', place, `there is no step "${below}"`, () => knownBelow(scope.links, step, below));
  return false;
}

function checkField({ report }: Scope, step: StepSyntax, path: readonly string[], place: Place): boolean {
  const [field, part] = path;
  if (field === undefined) {
    const hint = `Write {{${step.id}.outputs.NAME}}.`;
    report.error('unknown-output', place, 'the name of the output is missing', hint);
    return false;
  }
  const { outputs } = step;
  const type = outputs?.get(field);
  if (outputs !== null && type === undefined) {
    const hint = suggest(field, outputs.keys(), `It has ${listed(outputs.keys())}.`);
    const message = `the step "${step.id}" has no output "${field}"`;
    report.error('unknown-output', place, message, outputs.size === 0 ? 'It declares no outputs.' : hint);
    return false;
  }
  if (type === undefined || part === undefined || type === 'json') return true;
  const message = `the output "${field}" of "${step.id}" is ${articled(type)}, and has no "${part}"`;
  report.error('output-type', place, message, 'Give it the type "json", if it is JSON.');
  return true;
}

/** For messages: `a number`. */
export function articled(type: OutputType): string {
  switch (type) {
    case 'any':
    case 'string':
      return 'a text';
    case 'integer':
      return 'an integer';
    case 'file_path':
      return 'the path of a file';
    case 'json':
      return 'JSON';
    case 'number':
    case 'boolean':
      return `a ${type}`;
  }
}
