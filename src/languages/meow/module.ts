// A file of workflows: `[name]` tables, or the older form of a single one with `[[steps]]` at the top. Finds the
// sections; workflow.ts reads them.

import { hasErrors } from '../../base/diagnostic.ts';
import type { Place } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import type { TomlEntry, TomlTable } from '../toml-tree.ts';

export interface Section {
  readonly name: string;
  readonly place: Place;
  readonly table: TomlTable;
}

/** Keys of a workflow; at the top of a file they make it a single one, with the name `main`. */
export const WORKFLOW_KEYS = [
  'name',
  'description',
  'internal',
  'variables',
  'steps',
  'cleanup_on_success',
  'cleanup_on_failure',
  'cleanup_on_stop',
  'drain',
  'default_adapter',
] as const;

const NAME = /^[A-Za-z0-9_-]+$/;
const EXAMPLE = 'A workflow begins with [main], its steps with [[main.steps]].';

export function readModule(report: Report, root: TomlTable): readonly Section[] {
  const sections = new Map<string, Section>();
  const single = root.entries.has('steps');
  if (single) sections.set('main', singleWorkflow(root));
  for (const entry of root.entries.values()) {
    if (isPartOfSingle(entry, single)) continue;
    const section = readSection(report, entry);
    if (section === null) continue;
    const first = sections.get(section.name);
    if (first === undefined) sections.set(section.name, section);
    else {
      const related = [{ message: 'first defined here', place: first.place }];
      const hint =
        single && section.name === 'main'
          ? 'Steps at the top of a file are its workflow "main"; move them under [[main.steps]].'
          : 'Rename one of the two.';
      report.error(
        'duplicate-workflow',
        entry.keyPlace,
        `the workflow "${section.name}" is defined twice`,
        hint,
        related,
      );
    }
  }
  if (sections.size === 0 && !hasErrors(report.diagnostics())) {
    report.error('no-workflow', { from: 0, to: 1 }, 'there is no workflow in this file', EXAMPLE);
  }
  return [...sections.values()];
}

/** The workflow named by `#name`, or `main`. Null is reported. */
export function findSection(report: Report, sections: readonly Section[], wanted: string | null): Section | null {
  const name = (wanted ?? 'main').replace(/^\./, '');
  const section = sections.find((candidate) => candidate.name === name);
  if (section !== undefined || sections.length === 0) return section ?? null;
  const names = sections.map((candidate) => candidate.name);
  const { file } = report.source;
  const message = wanted === null ? 'this file has no workflow "main"' : `this file has no workflow "${name}"`;
  const others = `It has ${listed(names)}: ${file}#${names[0] ?? 'name'} names one.`;
  const place = sections[0]?.place ?? { from: 0, to: 1 };
  report.error('unknown-workflow', place, message, wanted === null ? others : suggest(name, names, others));
  return null;
}

function isPartOfSingle({ key, value }: TomlEntry, single: boolean): boolean {
  if (key === 'meta' && value.kind === 'table' && !value.entries.has('steps')) return true;
  return (
    single &&
    (WORKFLOW_KEYS as readonly string[]).includes(key) &&
    !(value.kind === 'table' && value.entries.has('steps'))
  );
}

/** `[meta]` contains the keys of `[main]`. */
function singleWorkflow(root: TomlTable): Section {
  const meta = root.entries.get('meta')?.value;
  const steps = root.entries.get('steps');
  const entries = new Map<string, TomlEntry>(meta?.kind === 'table' ? meta.entries : []);
  for (const key of WORKFLOW_KEYS) {
    const entry = root.entries.get(key);
    if (entry !== undefined) entries.set(key, entry);
  }
  const place = meta?.kind === 'table' ? meta.place : (steps?.value.place ?? root.place);
  return { name: 'main', place, table: { kind: 'table', place, entries } };
}

function readSection(report: Report, { key, keyPlace, value }: TomlEntry): Section | null {
  const name = key.replace(/^\./, '');
  if (value.kind !== 'table') {
    const message = `"${key}" is at the top of the file, outside of any workflow`;
    if ((WORKFLOW_KEYS as readonly string[]).includes(key)) {
      report.error('misplaced-key', keyPlace, message, 'Move it below the header of a workflow: [main].');
    } else report.warning('unknown-key', keyPlace, message, EXAMPLE);
    return null;
  }
  if (!NAME.test(name)) {
    const hint = 'Names of workflows are made of letters, digits, - and _.';
    report.error('invalid-name', keyPlace, `"${key}" is not a valid name for a workflow`, hint);
    return null;
  }
  return { name, place: value.place, table: value };
}
