// The files of a compilation. Each is parsed once; its workflows are read only if something refers to them, so errors
// in others do not matter.

import { hasErrors, makeSource } from '../../base/source.ts';
import { createReport, listed, type Report, suggest } from '../report.ts';
import { NAME, valueOf } from '../toml-fields.ts';
import type { TomlEntry, TomlTable } from '../toml-tree.ts';
import { readToml } from '../toml.ts';
import { reportUnknownKey } from './keys.ts';
import type { BlockSyntax } from './syntax.ts';
import { readWorkflow, type Section, WORKFLOW_KEYS } from './workflow.ts';

/** A file and its text; its name, used in messages, is unique. */
export interface MeowFile {
  readonly file: string;
  readonly text: string;
}

export interface Module {
  readonly file: string;
  readonly report: Report;
  readonly sections: readonly Section[];
  /** It could not be read at all, so missing sections are not reported. */
  readonly isBroken: boolean;
  /** Its workflow of that name; null if there is none. */
  readonly block: (name: string) => BlockSyntax | null;
}

/** `prefix`: prefix of the names of its blocks. */
export function openModule({ file, text }: MeowFile, prefix: string): Module {
  const report = createReport(makeSource(file, text));
  const tree = readToml(report);
  const sections = tree === null ? [] : readModule(report, tree);
  const byName = new Map(sections.map((section) => [section.name, section]));
  const blocks = new Map<string, BlockSyntax>();
  return {
    file,
    report,
    sections,
    isBroken: sections.length === 0 && hasErrors(report.diagnostics()),
    block: (name) => {
      const section = byName.get(name);
      if (section === undefined) return null;
      const block = blocks.get(name) ?? readWorkflow(report, section, `${prefix}${name}`);
      blocks.set(name, block);
      return block;
    },
  };
}

// A file of workflows: `[name]` tables, or the older form of a single one with `[[steps]]` at the top. Finds the
// sections; workflow.ts reads them.

const EXAMPLE = 'A workflow begins with [main], its steps with [[main.steps]].';

function readModule(report: Report, root: TomlTable): readonly Section[] {
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
      const message = `the workflow "${section.name}" is defined twice`;
      report.error('duplicate-workflow', entry.keyPlace, message, hint, related);
    }
  }
  if (sections.size === 0 && !hasErrors(report.diagnostics())) {
    report.error('no-workflow', { from: 0, to: 1 }, 'there is no workflow in this file', EXAMPLE);
  }
  return [...sections.values()];
}

/** The workflow named by `#name`, or `main`. Null is reported. */
export function findBlock({ report, sections, block }: Module, wanted: string | null): BlockSyntax | null {
  const name = (wanted ?? 'main').replace(/^\./, '');
  const found = block(name);
  const [first] = sections;
  if (found !== null || first === undefined) return found;
  const names = sections.map((section) => section.name);
  const others = `It has ${listed(names)}: ${report.source.file}#${first.name} names one.`;
  const hint = wanted === null ? others : suggest(name, names, others);
  report.error('unknown-workflow', first.place, `this file has no workflow "${name}"`, hint);
  return null;
}

function isPartOfSingle({ key, value }: TomlEntry, single: boolean): boolean {
  if (key === 'meta' && value.kind === 'table' && !value.entries.has('steps')) return true;
  return single && WORKFLOW_KEYS.includes(key) && !(value.kind === 'table' && value.entries.has('steps'));
}

/** `[meta]` contains the keys of `[main]`. */
function singleWorkflow(root: TomlTable): Section {
  const meta = valueOf(root, 'meta', 'table');
  const own = WORKFLOW_KEYS.flatMap((key) => root.entries.get(key) ?? []);
  const entries = new Map([...(meta?.entries.values() ?? []), ...own].map((entry) => [entry.key, entry]));
  const place = meta?.place ?? root.entries.get('steps')?.value.place ?? root.place;
  return { name: 'main', place, table: { kind: 'table', place, entries } };
}

function readSection(report: Report, entry: TomlEntry): Section | null {
  const { key, keyPlace, value } = entry;
  const name = key.replace(/^\./, '');
  if (value.kind !== 'table') {
    const message = `"${key}" is at the top of the file, outside of any workflow`;
    if (WORKFLOW_KEYS.includes(key)) {
      report.error('misplaced-key', keyPlace, message, 'Move it below the header of a workflow: [main].');
    } else reportUnknownKey(report, entry, WORKFLOW_KEYS, message, EXAMPLE);
    return null;
  }
  if (!NAME.test(name)) {
    const hint = 'Names of workflows are made of letters, digits, - and _.';
    report.error('invalid-name', keyPlace, `"${key}" is not a valid name for a workflow`, hint);
    return null;
  }
  return { name, place: value.place, table: value };
}
