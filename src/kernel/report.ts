// What an agent reports about its step (`meow done`): whether it is its turn, and whether the outputs are what was asked
// for. Whoever takes the report in asks here first, to say what is wrong; the kernel asks again, and decides.

import type { Json } from '../base/json.ts';
import { own } from '../base/json.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import type { Expectation, Outputs } from '../ir/output.ts';
import { coerce, misfit } from '../ir/output.ts';
import type { RunState, StepState } from './state.ts';

export interface Report {
  /** Who reports; null where nobody says. */
  readonly agent: string | null;
  /** Which step it is about; null means what the agent is working on. */
  readonly step: string | null;
  readonly outputs: Outputs;
  /** The id of the message that brings it; null where it has none. */
  readonly message: string | null;
}

export type ReportVerdict =
  /** `unknown`: outputs that nobody asked for. They are kept. */
  | {
      readonly kind: 'accepted';
      readonly step: string;
      readonly outputs: Outputs;
      readonly unknown: readonly string[];
    }
  /** It was accepted before. */
  | { readonly kind: 'repeated'; readonly step: string | null }
  | { readonly kind: 'refused'; readonly message: string };

export function judgeReport(state: RunState, report: Report): ReportVerdict {
  const { message } = report;
  // Its sender did not hear the answer; the agent may have other work by now.
  if (message !== null && state.heard.has(message)) return { kind: 'repeated', step: report.step };
  const step = stepReported(state, report);
  if (!step.ok) return { kind: 'refused', message: step.error };
  const { effect, status, id } = step.value;
  const expects = expectationsOf(step.value);
  if (expects === null) return { kind: 'refused', message: `step ${id} is no work of an agent` };
  const typed = typedOutputs(expects, report.outputs);
  if (status === 'done' || status === 'completing') {
    return typed.ok && sameOutputs(typed.value, reportedOf(step.value, expects, typed.value))
      ? { kind: 'repeated', step: id }
      : { kind: 'refused', message: `step ${id} has been reported already, with other outputs` };
  }
  if (status !== 'running' || effect?.kind !== 'prompt') {
    return { kind: 'refused', message: `step ${id} is ${status}: there is nothing to report` };
  }
  if (step.value.stopping !== null) return { kind: 'refused', message: `step ${id} is being stopped` };
  if (!typed.ok) return { kind: 'refused', message: typed.error };
  const asked = new Set(expects.map(({ name }) => name));
  const unknown = Object.keys(typed.value).filter((name) => !asked.has(name));
  return { kind: 'accepted', step: id, outputs: typed.value, unknown };
}

/** Files that must exist for the outputs to be what was asked for, and the folder that they are seen from. */
export function filesNamed(
  state: RunState,
  stepId: string,
  outputs: Outputs,
): readonly { readonly name: string; readonly path: string; readonly from: string }[] {
  const step = state.steps.get(stepId);
  const expects = step === undefined ? null : expectationsOf(step);
  const from = state.agents.get(step?.agent ?? '')?.opening?.workdir ?? state.request?.cwd ?? '';
  return (expects ?? []).flatMap(({ name, type }) => {
    const path = own(outputs, name);
    return type === 'file_path' && typeof path === 'string' ? [{ name, path, from }] : [];
  });
}

function stepReported(state: RunState, { agent, step }: Report): Result<StepState, string> {
  if (step !== null) {
    const named = state.steps.get(step);
    if (named === undefined) return err(`there is no step ${step} in this run`);
    if (agent !== null && named.agent !== null && named.agent !== agent)
      return err(`step ${step} is the work of agent ${named.agent}, not of ${agent}`);
    return ok(named);
  }
  if (agent === null) return err('nobody says which agent this is: MEOW_AGENT is not set');
  const busy = state.agents.get(agent)?.busy ?? latestOf(state, agent);
  return busy === null ? err(`agent ${agent} has nothing to do at the moment`) : ok(busy);
}

/** What an agent that is idle has worked on last: it may be reporting that again. */
function latestOf(state: RunState, agent: string): StepState | null {
  return state.agents.get(agent)?.latest ?? null;
}

function expectationsOf({ definition: { act } }: StepState): readonly Expectation[] | null {
  return act.kind === 'effect' && act.effect.kind === 'prompt' ? act.effect.expects : null;
}

function typedOutputs(expects: readonly Expectation[], outputs: Outputs): Result<Outputs, string> {
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
  if (missing.length === 0 && invalid.length === 0) return ok(Object.fromEntries(typed));
  const what = missing.length === 0 ? 'Invalid outputs' : 'Missing required outputs';
  const parts = [
    [what],
    missing.length === 0 ? [] : ['Required:', ...missing],
    invalid.length === 0 ? [] : ['Invalid:', ...invalid],
    ['Usage:', `  ${usageLine(expects)}`],
  ];
  return err(
    parts
      .filter((part) => part.length > 0)
      .map((part) => part.join('\n'))
      .join('\n\n'),
  );
}

function usageLine(expects: readonly Expectation[]): string {
  const required = expects.filter((expected) => expected.required);
  return ['meow done', ...required.map(({ name }) => `--output ${name}=<value>`)].join(' ');
}

function typedOutput(given: Json, type: Expectation['type']): Result<Json, string> {
  switch (type) {
    case 'string':
    case 'file_path':
      if (typeof given !== 'string') return err(misfit(given, 'string') ?? '');
      return given.trim() === '' ? err('is empty') : ok(given);
    case 'number':
    case 'boolean': {
      if (typeof given === 'string') return coerce(given, type);
      const problem = misfit(given, type);
      return problem === null ? ok(given) : err(problem);
    }
    case 'json':
      return typeof given === 'string' ? coerce(given, 'json') : ok(given);
  }
}

/** What the step has of what is asked for and reported: a decision of a person adds to its outputs. */
function reportedOf({ outputs }: StepState, expects: readonly Expectation[], report: Outputs): Outputs {
  const names = new Set([...expects.map(({ name }) => name), ...Object.keys(report)]);
  return Object.fromEntries(Object.entries(outputs).filter(([name]) => names.has(name)));
}

function sameOutputs(one: Outputs, other: Outputs): boolean {
  const sorted = (outputs: Outputs): string => JSON.stringify(Object.entries(outputs).toSorted(byName));
  return sorted(one) === sorted(other);
}

function byName([one]: readonly [string, Json], [other]: readonly [string, Json]): number {
  return one < other ? -1 : 1;
}
