// What prompts of a run are given, and how it gets into them: `{{name}}`, in one pass, so that nothing that a value says is
// taken for a hole. Each name must have a value before an agent is started, unless the prompt calls it optional.
//
//   run_id, run_dir, worktree, step_id    always there
//   diff               all that the run has changed, as a patch
//   component_kind, eval_profile          as the workflow says
//   harness_report     of the latest validation that left one
//   validation         what validators came to, of each step the latest
//   fix_instructions   of the latest evaluation
//   transcript         the end of what the latest turn of an agent put out
//   STEP.NAME          an output of the latest visit of a step
//
// What a step asks for and its prompt does not place is put behind the prompt, each under its name.

import { isJsonMap, own } from '../../base/json.ts';
import type { Json } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Hints, PromptText } from '../../ir/conducted.ts';
import { typeError } from '../../ir/output.ts';
import { plainText } from '../../ir/text.ts';
import type { Visit } from './context.ts';
import { latestValidations, validationOf } from './evidence.ts';

export interface InputSources {
  readonly runId: string;
  readonly runDir: string;
  readonly worktree: string;
  readonly step: string;
  readonly hints: Hints;
  readonly history: readonly Visit[];
  /** Asked for where it is wanted. An error is a sentence: why there is none. */
  readonly diff: () => Promise<Result<string, string>>;
  /** Path, seen from the run's directory. */
  readonly report: (path: string) => Result<Json, string>;
  readonly transcript: (path: string) => Result<string, string>;
  /** Of an output that is kept in a file: its name. */
  readonly kept: (file: string) => Result<string, string>;
}

/** Values by their names; an error says why there is none. */
export type InputValues = ReadonlyMap<string, Result<Json, string>>;

/** What the prompt asks for, what the step asks for, and what is always there. */
export async function inputValues(
  prompt: PromptText,
  asked: readonly string[],
  sources: InputSources,
): Promise<InputValues> {
  const names = new Set([...asked, ...prompt.inputs.map(({ name }) => name), ...holesOf(prompt.text)]);
  const values = new Map<string, Result<Json, string>>();
  for (const name of names) values.set(name, await valueOf(name, sources));
  return values;
}

/** An error is a sentence. */
export function fillPrompt(prompt: PromptText, asked: readonly string[], values: InputValues): Result<string, string> {
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
  const behind = [...new Set(asked)].filter((name) => !placed.has(name) && values.get(name)?.ok === true);
  const sections = behind.map((name) => `\n\n## ${name}\n\n${texts.get(name) ?? ''}`);
  return ok(`${filled.trimEnd()}${sections.map((section) => section.trimEnd()).join('')}\n`);
}

/** `{{{{` is a pair of braces that stands for itself. */
const HOLE = /\{\{\{\{|\{\{([^{}\n]*)\}\}/g;

function holesOf(text: string): readonly string[] {
  return [...text.matchAll(HOLE)].flatMap(([, name]) => (name === undefined ? [] : [name.trim()]));
}

async function valueOf(name: string, sources: InputSources): Promise<Result<Json, string>> {
  const { history, hints } = sources;
  switch (name) {
    case 'run_id':
      return ok(sources.runId);
    case 'run_dir':
      return ok(sources.runDir);
    case 'worktree':
      return ok(sources.worktree);
    case 'step_id':
      return ok(sources.step);
    case 'component_kind':
      return hints.componentKind === null ? err('defaults.component_kind is not set') : ok(hints.componentKind);
    case 'eval_profile':
      return hints.evalProfile === null ? err('defaults.eval_profile is not set') : ok(hints.evalProfile);
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
      const path = transcriptOf(history);
      return path === null ? err('no agent has worked yet') : sources.transcript(path);
    }
    default:
      return outputNamed(name, sources);
  }
}

/** Of the latest harness report, seen from the run's directory. */
export function reportOf(history: readonly Visit[]): string | null {
  const reports = latestValidations(history).map(({ outputs }) => outputs['harness_report']);
  const path = reports.findLast((report) => typeof report === 'string');
  return typeof path === 'string' ? path : null;
}

function transcriptOf(history: readonly Visit[]): string | null {
  const artifacts = history.findLast(({ kind, endedAt }) => kind === 'work' && endedAt !== null)?.outputs['artifacts'];
  if (!Array.isArray(artifacts)) return null;
  const found = (artifacts as readonly Json[]).find((one) => isJsonMap(one) && one['role'] === 'runner_transcript');
  const path = isJsonMap(found) ? found['path'] : undefined;
  return typeof path === 'string' ? path : null;
}

function outputNamed(name: string, { history, kept }: InputSources): Result<Json, string> {
  const [step = '', ...path] = name.split('.');
  if (path.length === 0) return err(`there is no such input; outputs of steps are named STEP.NAME`);
  const visit = history.findLast((each) => each.step === step && each.endedAt !== null);
  if (visit === undefined) return err(`${step} has not been visited before`);
  let value: Json | undefined = visit.outputs;
  for (const part of path) value = isJsonMap(value) ? own(value, part) : undefined;
  if (value === undefined) return err(`${visit.id} has no output ${path.join('.')}`);
  const file = isJsonMap(value) && Object.keys(value).length === 2 && 'bytes' in value ? value['$file'] : undefined;
  return typeof file === 'string' ? kept(file) : ok(value);
}
