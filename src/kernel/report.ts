// Checks an agent's report about its step (`meow done`): the step must be in progress, and the outputs as declared. The
// message handler calls it to answer the agent; the kernel calls it again to decide.

import { err, ok, type Result } from '../base/errors.ts';
import { type Json, own } from '../base/json.ts';
import { asType, type Expectation, type Outputs, typeError } from '../ir/output.ts';
import type { RunState, StepState } from './state.ts';

export interface Report {
  /** The reporting agent; null if unknown. */
  readonly agent: string | null;
  /** Null means the agent's current step. */
  readonly step: string | null;
  readonly outputs: Outputs;
  /** Id of the message; null if it has none. */
  readonly message: string | null;
}

export type ReportCheck = Readonly<
  /** `unknown`: outputs that were not declared. They are recorded. */
  | { kind: 'accepted'; step: string; outputs: Outputs; unknown: readonly string[] }
  /** Accepted before. */
  | { kind: 'repeated'; step: string | null }
  | { kind: 'refused'; message: string }
>;

/** An agent can report wrongly for as long as it runs. */
const REFUSALS_MAX = 20;

/** Whether a refused report about the step is recorded. */
export function recordsRefusal({ status, refusedReports }: StepState): boolean {
  return status === 'running' && refusedReports < REFUSALS_MAX;
}

/** Why the file that an output names does not count. */
export type FileProblem = Readonly<{ name: string; problem: string }>;

/** `files`: problems with the files of the outputs, which only the message handler can see. */
export function checkReport(state: RunState, report: Report, files: readonly FileProblem[] = []): ReportCheck {
  const { message } = report;
  // The sender missed the reply; the agent may have another step by now.
  if (message !== null && state.seenMessages.has(message)) return { kind: 'repeated', step: report.step };
  const step = reportedStep(state, report);
  if (!step.ok) return { kind: 'refused', message: step.error };
  const { effect, status, id } = step.value;
  const expects = expectationsOf(step.value);
  if (expects === null) return { kind: 'refused', message: `step ${id} is not an agent step` };
  const typed = typedOutputs(expects, report.outputs, status === 'running' ? files : []);
  if (status === 'done' || status === 'completing') {
    return typed.ok && sameOutputs(typed.value, reportedOutputs(step.value, expects, typed.value))
      ? { kind: 'repeated', step: id }
      : { kind: 'refused', message: `step ${id} was already reported with other outputs` };
  }
  if (status !== 'running' || effect?.kind !== 'prompt') {
    return { kind: 'refused', message: `step ${id} is ${status}, so it cannot be reported` };
  }
  if (step.value.stopping !== null) return { kind: 'refused', message: `step ${id} is being stopped` };
  if (!typed.ok) return { kind: 'refused', message: typed.error };
  const asked = new Set(expects.map(({ name }) => name));
  const unknown = Object.keys(typed.value).filter((name) => !asked.has(name));
  return { kind: 'accepted', step: id, outputs: typed.value, unknown };
}

export type RequiredFile = Readonly<{ name: string; path: string; from: string }>;

/** Files that must exist for the outputs to be valid, and the folder that relative paths start from. */
export function requiredFiles(state: RunState, stepId: string, outputs: Outputs): readonly RequiredFile[] {
  const step = state.steps.get(stepId);
  const expects = step === undefined ? null : expectationsOf(step);
  const from = state.agents.get(step?.agent ?? '')?.info?.workdir ?? state.request?.cwd ?? '';
  return (expects ?? []).flatMap(({ name, type }) => {
    const path = own(outputs, name);
    return type === 'file_path' && typeof path === 'string' ? [{ name, path, from }] : [];
  });
}

function reportedStep(state: RunState, { agent, step }: Report): Result<StepState, string> {
  if (step !== null) {
    const named = state.steps.get(step);
    if (named === undefined) return err(`there is no step ${step} in this run`);
    if (agent !== null && named.agent !== null && named.agent !== agent)
      return err(`step ${step} belongs to agent ${named.agent}, not to ${agent}`);
    return ok(named);
  }
  if (agent === null) return err('unknown agent: MEOW_AGENT is not set');
  const known = state.agents.get(agent);
  // An idle agent may be reporting its last step again.
  const reported = known?.busy ?? known?.latest ?? null;
  return reported === null ? err(`agent ${agent} has no step in progress`) : ok(reported);
}

function expectationsOf({ definition: { act } }: StepState): readonly Expectation[] | null {
  return act.kind === 'effect' && act.effect.kind === 'prompt' ? act.effect.expects : null;
}

function typedOutputs(
  expects: readonly Expectation[],
  outputs: Outputs,
  files: readonly FileProblem[],
): Result<Outputs, string> {
  const typed = new Map(Object.entries(outputs));
  const missing: string[] = [];
  const invalid: string[] = [];
  for (const { name, type, required } of expects) {
    const given = own(outputs, name);
    const value = given === undefined ? null : typedOutput(given, type);
    if (value === null && required) missing.push(`  ✗ ${name} (${type}): Not provided`);
    if (value?.ok === true) typed.set(name, value.value);
    if (value?.ok === false) invalid.push(`  ✗ ${name} (${type}): ${value.error}`);
  }
  // The usage names what must be fixed: files only if nothing else is wrong.
  const toFix = new Set(missing.length === 0 && invalid.length === 0 ? files.map(({ name }) => name) : []);
  invalid.push(...files.map(({ name, problem }) => `  ✗ ${name} (file_path): ${problem}`));
  if (missing.length === 0 && invalid.length === 0) return ok(Object.fromEntries(typed));
  const wanted = expects.filter(({ name, required }) => required || toFix.has(name));
  const sections = [
    [missing.length === 0 ? 'Invalid outputs' : 'Missing required outputs'],
    missing.length === 0 ? [] : ['Required:', ...missing],
    invalid.length === 0 ? [] : ['Invalid:', ...invalid],
    ['Usage:', `  ${['meow done', ...wanted.map(({ name }) => `--output ${name}=<value>`)].join(' ')}`],
  ];
  return err(sections.flatMap((lines) => (lines.length === 0 ? [] : [lines.join('\n')])).join('\n\n'));
}

function typedOutput(given: Json, type: Expectation['type']): Result<Json, string> {
  if (type !== 'string' && type !== 'file_path') return asType(given, type);
  if (typeof given !== 'string') return err(typeError(given, 'string') ?? '');
  return given.trim() === '' ? err('is empty') : ok(given);
}

/** The step's outputs that can be compared with the report. A verdict may have added others. */
function reportedOutputs({ outputs }: StepState, expects: readonly Expectation[], report: Outputs): Outputs {
  const names = new Set([...expects.map(({ name }) => name), ...Object.keys(report)]);
  return Object.fromEntries(Object.entries(outputs).filter(([name]) => names.has(name)));
}

function sameOutputs(one: Outputs, other: Outputs): boolean {
  const sorted = (outputs: Outputs): string =>
    JSON.stringify(Object.entries(outputs).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return sorted(one) === sorted(other);
}
