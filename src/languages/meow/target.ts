// Targets of a step: `template = "…"` or `inline = […]`, with `variables`. Reading finds every target first, so that
// all blocks are known; lowering fills in the passed variables.

import type { ValueTemplate } from '../../ir/text.ts';
import { type Target, targetOf } from '../../ir/transition.ts';
import type { Scope } from './scope.ts';
import type { BlockSyntax, TargetSyntax } from './syntax.ts';
import { lowerText, lowerValue } from './text.ts';
import { namesOf } from '../keys.ts';
import { TARGET } from './keys.ts';
import { checkKeys, missing, type Report } from '../report.ts';
import { checkName, listAt, NAME, neededStringAt, stringAt, tableAt } from '../toml-fields.ts';
import type { TomlEntry, TomlList, TomlTable } from '../toml-tree.ts';

export type ReadInline = (key: string, steps: TomlList) => BlockSyntax;

export const BRANCH_KEYS: readonly string[] = ['on_true', 'on_false', 'on_timeout'];
const EXAMPLE = 'For example { template = ".name", variables = { key = "value" } }, or { inline = [] }.';

/** `on_true = { template = "…" }` or `{ inline = […] }`. Null if absent or invalid. `hint`: for another value. */
export function readTarget(
  report: Report,
  step: TomlTable,
  key: string,
  readInline: ReadInline,
  hint: string | null = null,
): TargetSyntax | null {
  const table = tableAt(report, step, key, hint ?? targetHint(step, key));
  if (table === null) return null;
  checkKeys(report, table, namesOf(TARGET.keys), `"${key}"`, 'error');
  stringAt(report, table, 'description');
  const target = { kind: 'branch', key, brings: [] } as const;
  return readTemplateOrInline(report, table, target, [`"${key}"`, EXAMPLE], (steps) => readInline(key, steps));
}

function targetHint(step: TomlTable, key: string): string {
  const value = step.entries.get(key)?.value;
  if (value?.kind !== 'string') return EXAMPLE;
  if (value.value === 'continue') return `To go on without further steps, write ${key} = { inline = [] }.`;
  if (value.value === 'fail') {
    const fails = '{ id = "fail", executor = "shell", command = "exit 1" }';
    return `To fail, add a step that fails: ${key} = { inline = [${fails}] }.`;
  }
  return `Write ${key} = { template = "${value.value}" }.`;
}

/** `template` or `inline` of a table, with `variables`. `what`: the table in messages, and the hint if it has neither. */
export function readTemplateOrInline(
  report: Report,
  table: TomlTable,
  target: Pick<TargetSyntax, 'kind' | 'key' | 'brings'>,
  [what, hint]: readonly [string, string],
  readSteps: (steps: TomlList) => BlockSyntax,
): TargetSyntax | null {
  const reference = stringAt(report, table, 'template');
  const steps = listAt(report, table, 'inline', 'Write inline = [{ id = "…", executor = "…", … }].');
  const variables = readPassed(report, table);
  if (reference !== null && steps !== null) {
    report.error('invalid-value', steps.place, `${what} has both "template" and "inline"`, 'Keep one of the two.');
  }
  const rest = { ...target, variables };
  if (reference !== null) return { ...rest, place: reference.place, to: { kind: 'template', reference } };
  if (steps !== null) return { ...rest, place: steps.place, to: { kind: 'inline', block: readSteps(steps) } };
  if (!table.entries.has('template') && !table.entries.has('inline')) {
    missing(report, table.place, what, 'template', hint);
  }
  return null;
}

/** `template` and `variables` of the step itself. */
export function readStepTarget(
  report: Report,
  step: TomlTable,
  kind: 'expand' | 'each',
  brings: readonly string[],
): readonly TargetSyntax[] {
  const variables = readPassed(report, step);
  const hint = 'Say which workflow: template = ".name" for one of this file, "file#name" for another\'s.';
  const reference = neededStringAt(report, step, 'template', hint);
  if (reference === null) return [];
  return [{ kind, key: 'template', place: reference.place, to: { kind: 'template', reference }, variables, brings }];
}

export function lowerTarget(scope: Scope, target: TargetSyntax): Target | null {
  const inside: Scope = {
    ...scope,
    variables: new Set([...scope.variables, ...target.brings]),
    // A condition has outputs that can be passed, and a loop after its rounds; an expansion or a list has none.
    ownOutputs: target.kind === 'branch' || target.kind === 'exhausted',
    round: target.kind === 'round' ? scope.step : null,
  };
  const variables: Readonly<Record<string, ValueTemplate>> = Object.fromEntries(
    target.variables.map(({ key, value }) => [key, lowerValue(inside, value)]),
  );
  const link = scope.links.of(target);
  const block = target.to.kind === 'template' ? lowerText(inside, target.to.reference) : target.to.block.name;
  if (link === null) return null;
  if (link.kind === 'known') return targetOf(link.block.name, variables);
  if (link.kind === 'foreign') return targetOf(link.entry, variables);
  return { block, names: Object.fromEntries([...link.names].map(([text, { name }]) => [text, name])), variables };
}

function readPassed(report: Report, table: TomlTable): readonly TomlEntry[] {
  const passed = tableAt(report, table, 'variables', 'Write variables = { name = "value" }.');
  const entries = [...(passed?.entries.values() ?? [])];
  return entries.filter(({ key, keyPlace }) => checkName(report, keyPlace, key, 'variable'));
}

// References to templates: `.x` and `x` mean a workflow of the same file, or else the file x; `x#y` the workflow y of
// the file x, `#y` of the same file. The extension may be omitted. Files are relative to the referring file or to a
// search folder.

export type Reference =
  | { readonly kind: 'local'; readonly name: string }
  /** A workflow of the same file, or else the main one of a file. */
  | { readonly kind: 'either'; readonly name: string }
  | { readonly kind: 'file'; readonly path: string; readonly workflow: string };

/** Null if the text is not a reference. */
export function parseReference(text: string): Reference | null {
  const written = text.trim();
  const hash = written.lastIndexOf('#');
  if (hash !== -1) {
    const workflow = written.slice(hash + 1).replace(/^\./, '');
    if (workflow === '') return null;
    return hash === 0 ? { kind: 'local', name: workflow } : { kind: 'file', path: written.slice(0, hash), workflow };
  }
  const name = written.replace(/^\./, '');
  if (NAME.test(name)) return { kind: 'either', name };
  return /^[./]*$/.test(written) ? null : { kind: 'file', path: written, workflow: 'main' };
}

/** Whether `on_error` or `on_exhausted` names a workflow instead of an action. */
export function namesWorkflow(action: string): boolean {
  return action !== 'fail' && action !== 'continue';
}

/** The file that a reference may mean; null if it can only mean a workflow of its own file. */
export function fileOf(reference: Reference): string | null {
  if (reference.kind === 'local') return null;
  return reference.kind === 'file' ? reference.path : reference.name;
}

/** Possible file names of a reference without extension. */
export function spellingsOf(path: string): readonly string[] {
  return path.endsWith('.toml') ? [path] : [`${path}.meow.toml`, `${path}.toml`];
}

/** Whether the path is explicit, so that search folders are not used. */
export function isPlaced(path: string): boolean {
  return /^(?:\.{1,2})?\//.test(path);
}
