// Checks the variables passed between workflows: all required ones, and no unknown ones. Also checks that workflows do
// not call each other endlessly.

import { coerce, typeError } from '../../ir/output.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import type { TomlEntry, TomlValue } from '../toml-tree.ts';
import { tomlToJson } from '../toml-tree.ts';
import { findCycles } from './cycles.ts';
import type { Call, Linked } from './link.ts';
import type { CallerScopes } from './caller-scope.ts';
import type { BlockSyntax, VariableSyntax } from './syntax.ts';

/** `uses`: whether a block refers to a name. */
export function checkCalls(
  linked: Linked,
  sight: CallerScopes,
  uses: (block: BlockSyntax, name: string) => boolean,
): void {
  for (const call of linked.calls) {
    if (!call.isCertain || call.target.to.kind === 'inline') continue;
    checkPassed(call);
    checkMissing(call, sight, uses);
  }
  checkEndless(linked);
}

function checkPassed({ from, target, to }: Call): void {
  const { report } = from;
  const { name: called } = to.workflow;
  const unknown: TomlEntry[] = [];
  for (const entry of target.variables) {
    const variable = to.variables.find(({ name }) => name === entry.key);
    if (variable === undefined) unknown.push(entry);
    else if (variable.isFile) {
      const message = `"${entry.key}" names a file where "${called}" is run itself; here it is taken as it is`;
      report.warning('file-variable', entry.keyPlace, message, 'Pass the text of the file, or the path as a string.');
    } else checkPassedType(report, entry.value, variable);
  }
  const [first, ...more] = unknown;
  if (first === undefined) return;
  const names = unknown.map(({ key }) => key);
  const message = `"${called}" declares no variable${more.length === 0 ? '' : 's'} ${listed(names)}`;
  const it = more.length === 0 ? 'it' : 'them';
  const declare = `Declare ${it} under [${called}.variables], or do not pass ${it}.`;
  const hint = more.length > 0 ? declare : suggest(first.key, namesOf(to), declare);
  report.warning('undeclared-variable', first.keyPlace, message, hint);
}

function namesOf({ variables }: BlockSyntax): readonly string[] {
  return variables.map(({ name }) => name);
}

/** A literal must have the declared type; a reference is checked when it is filled. */
function checkPassedType(report: Report, value: TomlValue, { name, type }: VariableSyntax): void {
  if (value.kind === 'string' && value.value.includes('{{')) return;
  const wrong = value.kind === 'string' ? coerce(value.value, type) : typeError(tomlToJson(value), type);
  const message = typeof wrong === 'string' ? wrong : wrong === null || wrong.ok ? null : wrong.error;
  if (message === null) return;
  report.error('wrong-type', value.place, `"${name}" is declared otherwise: ${message}`, 'Pass a value of that type.');
}

function checkMissing(call: Call, sight: CallerScopes, uses: (block: BlockSyntax, name: string) => boolean): void {
  const { from, target, to } = call;
  const { names, openness } = sight.around(from);
  for (const variable of to.variables) {
    const { name, required, hasDefault, isFile } = variable;
    if (target.variables.some(({ key }) => key === name)) continue;
    if (hasDefault && isFile) {
      const message = `the default of "${name}" names a file, which is read only where "${to.workflow.name}" is run itself`;
      from.report.warning('file-variable', target.place, message, `Pass its text: variables = { ${name} = "…" }.`);
    }
    if (hasDefault || target.brings.includes(name) || names.has(name)) continue;
    if (from.variables.some((declared) => declared.name === name) || openness === 'called') continue;
    if (required || uses(to, name)) reportMissing(call, variable, openness === 'closed');
  }
}

function reportMissing(
  { from, target, to }: Call,
  { name, required, place }: VariableSyntax,
  isCertain: boolean,
): void {
  const isSameFile = from.report === to.report;
  const related = isSameFile ? [{ message: 'declared here', place }] : [];
  const hint =
    target.kind === 'recover'
      ? `Give it a default; a workflow that is named by on_error is handed nothing.`
      : `Pass it: variables = { ${name} = "…" }.`;
  const message = `"${to.workflow.name}" ${required ? 'requires' : 'uses'} the variable "${name}", and is not handed it`;
  from.report[required && isCertain ? 'error' : 'warning']('variable-not-passed', target.place, message, hint, related);
}

/** Only unconditional calls are endless: a condition, a possibly empty list or a failure ends the recursion. */
function checkEndless({ blocks, calls }: Linked): void {
  const always = new Map<BlockSyntax, Call[]>();
  for (const call of calls) {
    if (call.target.kind === 'expand' && call.isCertain) {
      const list = always.get(call.from);
      if (list === undefined) always.set(call.from, [call]);
      else list.push(call);
    }
  }
  for (const cycle of findCycles(blocks, (block) => always.get(block) ?? [])) {
    const last = cycle.at(-1);
    if (last === undefined) continue;
    const ring = [last.to, ...cycle.map(({ to }) => to)].map(({ workflow }) => workflow.name);
    const shown = ring.length > 12 ? [...ring.slice(0, 6), '…', ...ring.slice(-5)] : ring;
    const message = `this calls itself without end: ${shown.join(' → ')}`;
    const hint = 'Use a branch to decide whether it continues; otherwise the limits of the run stop it.';
    last.from.report.warning('endless-expansion', last.target.place, message, hint);
  }
}
