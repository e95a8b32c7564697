// Reads a section of a module as syntax: properties, variables, steps and inline steps. Lowering reads what the steps
// do.

import type { Report } from '../report.ts';
import { booleanAt, checkKeys, durationAt, listAt, missing, stringAt } from '../toml-fields.ts';
import type { TomlList } from '../toml-tree.ts';
import type { Section } from './module.ts';
import { WORKFLOW_KEYS } from './module.ts';
import { readStep } from './step.ts';
import type { BlockSyntax, StepSyntax, WorkflowSyntax } from './syntax.ts';
import { placeholderId } from './syntax.ts';
import { readVariables } from './variables.ts';

/** `name`: the block's name in the Program. */
export function readWorkflow(report: Report, section: Section, name: string): BlockSyntax {
  const { place, table } = section;
  checkKeys(report, table, WORKFLOW_KEYS, `the workflow "${section.name}"`, 'warning');
  stringAt(report, table, 'name');
  stringAt(report, table, 'description');
  const internal = booleanAt(report, table, 'internal') ?? false;
  const workflow: WorkflowSyntax = {
    name: section.name,
    place,
    internal: internal ? (table.entries.get('internal')?.keyPlace ?? place) : null,
    cleanup: {
      success: stringAt(report, table, 'cleanup_on_success'),
      failure: stringAt(report, table, 'cleanup_on_failure'),
      stop: stringAt(report, table, 'cleanup_on_stop'),
    },
    drainMs: durationAt(report, table, 'drain'),
    defaultAdapter: stringAt(report, table, 'default_adapter'),
  };
  const variables = readVariables(report, table);
  const header = `Each step begins with [[${section.name}.steps]], in double brackets.`;
  const list = listAt(report, table, 'steps', header);
  if (!table.entries.has('steps')) missing(report, place, `the workflow "${section.name}"`, 'steps', header);
  return { name, report, workflow, place, variables, steps: readSteps(report, workflow, name, list, header) };
}

function readSteps(
  report: Report,
  workflow: WorkflowSyntax,
  block: string,
  list: TomlList | null,
  hint: string,
): readonly StepSyntax[] {
  const steps = new Map<string, StepSyntax>();
  for (const item of list?.items ?? []) {
    if (item.kind !== 'table') {
      report.error('wrong-type', item.place, 'a step must be a table', hint);
      continue;
    }
    // A step with a duplicate id is checked too, under a name that cannot be referenced.
    const own = (id: string): string => (steps.has(id) ? placeholderId(steps.size) : id);
    const step = readStep(report, item, steps.size, (id, key, inline): BlockSyntax => {
      const name = `${block}/${own(id)}.${key}`;
      const below = readSteps(report, workflow, name, inline, 'Write each as { id = "…", executor = "…", … }.');
      return { name, report, workflow, place: inline.place, variables: [], steps: below };
    });
    const first = steps.get(step.id);
    const id = own(step.id);
    steps.set(id, { ...step, id });
    if (first !== undefined) {
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
