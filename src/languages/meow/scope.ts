// The names that a reference may use where it stands, and what is said of one that is not among them.
//
//   - A name that the workflow declares, the run was given, or is built in, is fine.
//   - `step.outputs.field` must name a step that is certain to have finished: one that is needed, directly or through
//     others. Waiting is never inferred from a reference; it is written in `needs`.
//   - Who calls a workflow may hand it more than it declares, so in one that is not run itself an unknown plain name is
//     only a warning.

import type { Place } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import type { StepSyntax } from './syntax.ts';
import { LITERAL_BRACES } from './template.ts';

export interface Scope {
  readonly report: Report;
  /** The name of the workflow. */
  readonly workflow: string;
  readonly variables: ReadonlySet<string>;
  /** Names that were passed without having been declared. */
  readonly passed: ReadonlySet<string>;
  readonly builtins: readonly string[];
  readonly steps: ReadonlyMap<string, StepSyntax>;
  /** The step that the text belongs to; null in a cleanup script. */
  readonly step: StepSyntax | null;
  /** Whether a step has finished by then. */
  readonly isFinished: (id: string) => boolean;
  /** Whether the workflow is the one that is run. */
  readonly isEntry: boolean;
  readonly onUse: (name: string) => void;
}

export const WORKFLOW_BUILTINS = ['workflow_id', 'timestamp', 'date', 'time'] as const;
/** What a workflow that makes good for a failed step is told of it. */
const RECOVERY = '_failed_step';
export const STEP_BUILTINS = [...WORKFLOW_BUILTINS, 'step_id', '__step_prefix__'] as const;

export function checkReference(scope: Scope, path: readonly string[], place: Place): void {
  const [name = ''] = path;
  const outputs = path.indexOf('outputs');
  if (outputs > 0 && !scope.variables.has(name)) checkOutput(scope, path, outputs, place);
  else checkName(scope, name, path, place);
}

function checkName(scope: Scope, name: string, path: readonly string[], place: Place): void {
  const { report } = scope;
  scope.onUse(name);
  if (scope.variables.has(name) || (name === RECOVERY && !scope.isEntry)) return;
  if (scope.builtins.includes(name)) {
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
  const declare = `Declare it under [${scope.workflow}.variables]: ${name} = { required = true }.`;
  if (scope.passed.has(name)) {
    return report.warning('undeclared-variable', place, `"${name}" is passed by --var, and not declared`, declare);
  }
  const suggestKnown = (otherwise: string): string =>
    suggest(name, [...scope.variables, ...scope.builtins, ...scope.steps.keys()], otherwise);
  if (!scope.isEntry) {
    const message = `"${name}" is not declared here; it must come from the caller`;
    return report.warning('undeclared-variable', place, message, () => suggestKnown(declare));
  }
  report.error('unknown-variable', place, `there is no variable "${name}"`, () => {
    const { size } = scope.variables;
    const there = size === 0 ? 'The workflow declares no variables.' : `Declared are ${listed(scope.variables)}.`;
    return suggestKnown(`${there} ${LITERAL_BRACES}`);
  });
}

function checkOutput(scope: Scope, path: readonly string[], outputs: number, place: Place): void {
  const { report, steps } = scope;
  const [id = ''] = path;
  const step = steps.get(id);
  if (step === undefined) {
    return report.error('unknown-step', place, `there is no step "${id}"`, () => {
      const others = [...steps.keys()].filter((other) => other !== scope.step?.id);
      const there = others.length === 0 ? 'There is no other step here.' : `Steps here are ${listed(others)}.`;
      return suggest(id, others, there);
    });
  }
  if (step === scope.step) {
    return report.error(
      'output-of-itself',
      place,
      'a step cannot use its own outputs',
      'They exist when it has finished.',
    );
  }
  if (outputs > 1) {
    const below = path.slice(0, outputs).join('.');
    if (!step.canGrow)
      report.error('unknown-step', place, `there is no step "${below}"`, `"${id}" has no steps below it.`);
  } else checkField(scope, step, path[2], place);
  if (scope.isFinished(id)) return;
  if (scope.step === null) {
    const message = `"${id}" may not have finished when this script runs, and the script would then not run`;
    return report.warning('uncertain-output', place, message, 'Use variables here, which always have a value.');
  }
  // What is wrong among the needs is reported there, and not to be copied from here.
  const sound = scope.step.needs.map(({ text }) => text).filter((text) => namesStep(steps, text));
  const needs = [...sound, id].map((text) => `"${text}"`).join(', ');
  const message = `"${id}" may not have finished by then: it is not among the needs`;
  report.error('output-not-needed', place, message, `Add it: needs = [${needs}].`);
}

function namesStep(steps: ReadonlyMap<string, StepSyntax>, need: string): boolean {
  const [head = ''] = need.split('.');
  return head.includes('*') || steps.has(head);
}

function checkField({ report }: Scope, step: StepSyntax, field: string | undefined, place: Place): void {
  if (field === undefined) {
    report.error('unknown-output', place, 'the name of the output is missing', `Write {{${step.id}.outputs.NAME}}.`);
  } else if (step.outputs !== null && !step.outputs.has(field)) {
    const hint = suggest(field, step.outputs, `It has ${listed(step.outputs)}.`);
    report.error('unknown-output', place, `the step "${step.id}" has no output "${field}"`, hint);
  }
}
