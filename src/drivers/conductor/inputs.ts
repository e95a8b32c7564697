// Inputs of prompts, and how they are inserted: `{{name}}`, in one pass, so that text in a value is never treated as a
// placeholder. Each name must have a value before an agent starts, unless the prompt marks it as optional.
//
//   run_id, run_dir, worktree, step_id    always available
//   diff               all changes of the run, as a patch
//   component_kind, eval_profile          from the workflow
//   harness_report     of the latest validation that left one
//   validation         results of validators, the latest of each step
//   fix_instructions   of the latest evaluation
//   transcript         last output of the latest agent turn
//   STEP.NAME          an output of the latest visit of a step
//
// Inputs that the prompt does not place are appended to it, each under its name.

import { err, ok, type Result } from '../../base/errors.ts';
import { isJsonMap, type Json, own } from '../../base/json.ts';
import type { Hints, PromptText } from '../../ir/conductor.ts';
import { storedFileOf, type StoredFile, typeError } from '../../ir/output.ts';
import { plainText } from '../../ir/text.ts';
import { mapsIn, type Visit } from './context.ts';
import { latestValidations, validationOf } from './evidence.ts';

export interface InputSources {
  readonly runId: string;
  readonly runDir: string;
  readonly worktree: string;
  readonly step: string;
  readonly hints: Hints;
  readonly history: readonly Visit[];
  /** Computed on demand. The error is a sentence that says why there is none. */
  readonly diff: () => Promise<Result<string, string>>;
  /** Path relative to the run directory. */
  readonly report: (path: string) => Result<Json, string>;
  readonly transcript: (path: string) => Result<string, string>;
  /** Reads an output that is stored in a file. */
  readonly kept: (file: StoredFile) => Result<string, string>;
}

/** Values by name; an error says why there is none. */
export type InputValues = ReadonlyMap<string, Result<Json, string>>;

/** Inputs of the prompt and of the step, and those that are always available. */
export async function inputValues(
  prompt: PromptText,
  inputs: readonly string[],
  sources: InputSources,
): Promise<InputValues> {
  const names = new Set([...inputs, ...prompt.inputs.map(({ name }) => name), ...holesOf(prompt.text)]);
  const values = new Map<string, Result<Json, string>>();
  for (const name of names) values.set(name, await valueOf(name, sources));
  return values;
}

export function fillPrompt(prompt: PromptText, inputs: readonly string[], values: InputValues): Result<string, string> {
  const texts = new Map<string, string>();
  for (const [name, value] of values) {
    const declared = prompt.inputs.find((input) => input.name === name);
    if (!value.ok) {
      if (declared?.required !== false) return err(`the prompt ${prompt.id} needs ${name}, and ${value.error}`);
      texts.set(name, '');
      continue;
    }
    const problem = declared === undefined ? null : typeError(value.value, declared.type);
    if (problem !== null) return err(`the prompt ${prompt.id} cannot be given ${name}: ${problem}`);
    texts.set(name, plainText(value.value));
  }
  const placed = new Set(holesOf(prompt.text));
  const filled = prompt.text.replaceAll(HOLE, (_hole, name?: string) =>
    name === undefined ? '{{' : (texts.get(name.trim()) ?? ''),
  );
  const behind = [...new Set(inputs)].filter((name) => !placed.has(name) && values.get(name)?.ok === true);
  const sections = behind.map((name) => `\n\n## ${name}\n\n${texts.get(name) ?? ''}`);
  return ok(`${filled.trimEnd()}${sections.map((section) => section.trimEnd()).join('')}\n`);
}

/** `{{{{` is a literal pair of braces. */
const HOLE = /\{\{\{\{|\{\{([^{}\n]*)\}\}/g;

function holesOf(text: string): readonly string[] {
  return [...text.matchAll(HOLE)].flatMap(([, name]) => (name === undefined ? [] : [name.trim()]));
}

async function valueOf(name: string, sources: InputSources): Promise<Result<Json, string>> {
  const { history, runId: run_id, runDir: run_dir, worktree, step: step_id } = sources;
  const constant = own({ run_id, run_dir, worktree, step_id }, name);
  if (constant !== undefined) return ok(constant);
  const { componentKind: component_kind, evalProfile: eval_profile } = sources.hints;
  const hint = own({ component_kind, eval_profile }, name);
  if (hint !== undefined) return hint === null ? err(`defaults.${name} is not set`) : ok(hint);
  switch (name) {
    case 'diff':
      return sources.diff();
    case 'validation': {
      const validations = latestValidations(history);
      return validations.length === 0 ? err('nothing has been validated yet') : ok(validations.map(validationOf));
    }
    case 'harness_report': {
      const path = reportOf(history);
      return path === null ? err('no validation has left a harness report') : sources.report(path);
    }
    case 'fix_instructions': {
      const said = history.findLast(({ kind }) => kind === 'evaluate')?.outputs['fix_instructions'] ?? null;
      return said === null ? err('the latest evaluation gave no fix_instructions') : ok(said);
    }
    case 'transcript': {
      const work = history.findLast(({ kind, endedAt }) => kind === 'work' && endedAt !== null);
      const path = mapsIn(work?.outputs['artifacts']).find(({ role }) => role === 'runner_transcript')?.['path'];
      return typeof path === 'string' ? sources.transcript(path) : err('no agent has worked yet');
    }
    default:
      return outputNamed(name, sources);
  }
}

/** Path of the latest harness report, relative to the run directory. */
export function reportOf(history: readonly Visit[]): string | null {
  const reports = latestValidations(history).map(({ outputs }) => outputs['harness_report']);
  return reports.findLast((report) => typeof report === 'string') ?? null;
}

function outputNamed(name: string, { history, kept }: InputSources): Result<Json, string> {
  const [step = '', ...path] = name.split('.');
  if (path.length === 0) return err(`there is no such input; outputs of steps are named STEP.NAME`);
  const visit = history.findLast((each) => each.step === step && each.endedAt !== null);
  if (visit === undefined) return err(`${step} has not been visited before`);
  let value: Json | undefined = visit.outputs;
  for (const part of path) value = isJsonMap(value) ? own(value, part) : undefined;
  if (value === undefined) return err(`${visit.id} has no output ${path.join('.')}`);
  const file = storedFileOf(value);
  return file === null ? ok(value) : kept(file);
}
