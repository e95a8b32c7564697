// A section of a module → syntax: its properties, variables and steps. What the steps do is read when they are lowered.

import type { Report } from '../report.ts';
import { booleanAt, checkKeys, durationAt, listAt, missing, stringAt } from '../toml-fields.ts';
import type { Section } from './module.ts';
import { WORKFLOW_KEYS } from './module.ts';
import { readStep } from './step.ts';
import type { StepSyntax, WorkflowSyntax } from './syntax.ts';
import { readVariables } from './variables.ts';

export function readWorkflow(report: Report, section: Section): WorkflowSyntax {
  const { name, place, table } = section;
  checkKeys(report, table, WORKFLOW_KEYS, `the workflow "${name}"`, 'warning');
  stringAt(report, table, 'name');
  stringAt(report, table, 'description');
  const internal = booleanAt(report, table, 'internal') ?? false;
  return {
    name,
    place,
    internal: internal ? (table.entries.get('internal')?.keyPlace ?? place) : null,
    variables: readVariables(report, table),
    steps: readSteps(report, section),
    cleanup: {
      success: stringAt(report, table, 'cleanup_on_success'),
      failure: stringAt(report, table, 'cleanup_on_failure'),
      stop: stringAt(report, table, 'cleanup_on_stop'),
    },
    drainMs: durationAt(report, table, 'drain'),
  };
}

function readSteps(report: Report, { name, place, table }: Section): readonly StepSyntax[] {
  const header = `Each step begins with [[${name}.steps]], in double brackets.`;
  const list = listAt(report, table, 'steps', header);
  if (!table.entries.has('steps')) missing(report, place, `the workflow "${name}"`, 'steps', header);
  const steps = new Map<string, StepSyntax>();
  for (const item of list?.items ?? []) {
    if (item.kind !== 'table') {
      report.error('wrong-type', item.place, 'a step must be a table', header);
      continue;
    }
    const step = readStep(report, item, steps.size);
    const first = steps.get(step.id);
    if (first === undefined) steps.set(step.id, step);
    else {
      const related = [{ message: 'first used here', place: first.place }];
      report.error(
        'duplicate-id',
        step.place,
        `two steps have the id "${step.id}"`,
        'Give each step an id of its own.',
        related,
      );
    }
  }
  return [...steps.values()];
}
