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
import { segmentMatcher } from '../base/names.ts';
import { type Diagnostic, hasErrors, makeSource } from '../base/source.ts';
import { namesOf } from '../languages/keys.ts';
import { checkKeys, createReport, missing, type Report } from '../languages/report.ts';
import { RULE, SIM } from '../languages/sim-keys.ts';
import { countAt, listAt, stringAt } from '../languages/toml-fields.ts';
import { placeWithin, type TomlTable } from '../languages/toml-tree.ts';
import { readToml } from '../languages/toml.ts';
import { readRecord } from '../sys/files.ts';
import { type Action, readAction } from './script-action.ts';
import { fields, isNumber, mapOf } from '../base/shape.ts';

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
  checkKeys(report, root, namesOf(SIM.root.keys), 'the script', 'error');
  return (listAt(report, root, 'on', RULES_HINT)?.items ?? []).flatMap((item) => {
    if (item.kind === 'table') {
      checkKeys(report, item, namesOf(RULE.keys), 'a rule', 'error');
      return [readRule(report, item)];
    }
    report.error('wrong-type', item.place, 'a rule must be a table', RULES_HINT);
    return [];
  });
}

/** The caller checks the keys. */
export function readRule(report: Report, table: TomlTable): Rule {
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

// Chooses the rule for a prompt, and counts the rules that were followed, in a file: a restarted agent continues counting.

export interface Memory {
  readonly prompts: number;
  /** Uses of each rule, by index in the script. */
  readonly followed: Readonly<Record<number, number>>;
}

export const NOTHING_REMEMBERED: Memory = { prompts: 0, followed: {} };

/** The file may be absent. */
export function readMemory(path: string): Memory {
  return readRecord(path, fields<Memory>({ prompts: isNumber, followed: mapOf(isNumber) })) ?? NOTHING_REMEMBERED;
}

export type Situation = Readonly<Record<'agent' | 'step' | 'prompt', string>>;

/** Index of the first matching rule from `from` on; null if none. */
export function ruleFor(
  rules: readonly Rule[],
  situation: Situation,
  memory: Memory,
  from: number,
): { readonly rule: Rule; readonly number: number } | null {
  for (const [number, rule] of rules.entries()) {
    if (number < from || !fits(rule, situation)) continue;
    if (rule.times === null || (memory.followed[number] ?? 0) < rule.times) return { rule, number };
  }
  return null;
}

export function withPrompt(memory: Memory): Memory {
  return { ...memory, prompts: memory.prompts + 1 };
}

export function withRule(memory: Memory, number: number): Memory {
  return { ...memory, followed: { ...memory.followed, [number]: (memory.followed[number] ?? 0) + 1 } };
}

function fits(rule: Rule, { agent, step, prompt }: Situation): boolean {
  if (rule.agent !== null && !segmentMatcher(rule.agent)(agent)) return false;
  if (rule.step !== null && ![step, visitOf(step)].some(segmentMatcher(rule.step))) return false;
  if (rule.prompt === null) return true;
  return rule.prompt.kind === 'part' ? prompt.includes(rule.prompt.text) : rule.prompt.expression.test(prompt);
}

/** The visit of a Conductor step that a turn is a part of: `fix#2` for `fix#2.turn`. Other steps: their own id. */
function visitOf(step: string): string {
  return /^.*#\d+(?=\.[^#]*$)/.exec(step)?.[0] ?? step;
}
