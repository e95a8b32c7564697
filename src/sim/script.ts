// The script of simulated agents: `NAME.sim.toml` beside `NAME.meow.toml`. Rules are tried in order; the first that
// matches a prompt determines what the agent does. A prompt without a matching rule is completed as requested.
//
//   [[on]]
//   agent = "worker-*"    all conditions are optional; `*` is a wildcard
//   step = "build.*"
//   prompt = "fix"        part of the prompt, or a pattern: "/fix(es)?/"
//   times = 1             how often each agent follows the rule; later prompts skip it
//   do = [{ say = "…" }, { done = { k = "v" } }]
//
// A rule that ends without a report ends the agent's turn: the stop hook sends the prompt again, and the later rules
// are tried. Every text may contain `{{agent}}`, `{{step}}` and `{{n}}` (the number of the prompt).

import type { Json, JsonMap } from '../base/json.ts';
import { type Diagnostic, hasErrors, makeSource } from '../base/source.ts';
import { checkKeys, createReport, type Report } from '../languages/report.ts';
import { countAt, listAt, missing, stringAt } from '../languages/toml-fields.ts';
import { placeWithin, type TomlTable } from '../languages/toml-tree.ts';
import { readToml } from '../languages/toml.ts';
import { type Action, readAction } from './script-action.ts';

export interface SimScript {
  readonly rules: readonly Rule[];
}

export interface Rule {
  /** Patterns with `*`; null matches everything. */
  readonly agent: string | null;
  readonly step: string | null;
  readonly prompt: PromptPattern | null;
  readonly times: number | null;
  readonly actions: readonly Action[];
}

export type PromptPattern =
  | { readonly kind: 'part'; readonly text: string }
  | { readonly kind: 'expression'; readonly expression: RegExp };

/** `name`: the path as the user wrote it. The script is null if a diagnostic is an error. */
export function readSimScript(
  text: string,
  name: string,
): { readonly script: SimScript | null; readonly diagnostics: readonly Diagnostic[] } {
  const report = createReport(makeSource(name, text));
  const root = text.trim() === '' ? null : readToml(report);
  const script = { rules: root === null ? [] : readRules(report, root) };
  const diagnostics = report.diagnostics();
  return { script: hasErrors(diagnostics) ? null : script, diagnostics };
}

/** Replaces the placeholders in a value. */
export function filled<T extends Json>(value: T, words: Readonly<Record<string, string>>): T;
export function filled(value: Json, words: Readonly<Record<string, string>>): Json {
  if (typeof value === 'string') {
    return value.replaceAll(/\{\{\s*(agent|step|n)\s*\}\}/g, (whole, word: string) => words[word] ?? whole);
  }
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => filled(item, words));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value as JsonMap).map(([key, item]) => [key, filled(item, words)]));
}

const RULES_HINT = 'Write each rule as a table of its own: [[on]], and below it do = [{ done = true }].';

function readRules(report: Report, root: TomlTable): readonly Rule[] {
  checkKeys(report, root, ['on'], 'the script', 'error');
  return (listAt(report, root, 'on', RULES_HINT)?.items ?? []).flatMap((item) => {
    if (item.kind === 'table') return [readRule(report, item)];
    report.error('wrong-type', item.place, 'a rule must be a table', RULES_HINT);
    return [];
  });
}

function readRule(report: Report, table: TomlTable): Rule {
  checkKeys(report, table, ['agent', 'step', 'prompt', 'times', 'do'], 'a rule', 'error');
  if (!table.entries.has('do')) {
    missing(report, table.place, 'the rule', 'do', 'Say what is to be done: do = [{ done = true }].');
  }
  return {
    agent: stringAt(report, table, 'agent')?.value ?? null,
    step: stringAt(report, table, 'step')?.value ?? null,
    prompt: readPattern(report, table),
    times: countAt(report, table, 'times', 1),
    actions: (listAt(report, table, 'do', 'Write a list of actions: do = [{ say = "…" }].')?.items ?? []).flatMap(
      (item) => readAction(report, item) ?? [],
    ),
  };
}

function readPattern(report: Report, table: TomlTable): PromptPattern | null {
  const text = stringAt(report, table, 'prompt');
  if (text === null) return null;
  const { value } = text;
  if (value.length < 3 || !value.startsWith('/') || !value.endsWith('/')) return { kind: 'part', text: value };
  try {
    return { kind: 'expression', expression: new RegExp(value.slice(1, -1), 's') };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const place = placeWithin(text, 1, value.length - 1);
    report.error('invalid-pattern', place, error.message, 'Text between slashes is a regular expression.');
    return null;
  }
}
