// What a fork keeps and what it runs, and why: for `meow plan` before it exists, and for `meow why` afterwards.

import { isJsonMap, type Json, type JsonMap } from '../base/json.ts';
import { sanitize } from '../base/sanitize.ts';
import { writtenText } from '../ir/text.ts';
import { apply } from '../kernel/apply.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { judgeStep, type Judgement } from '../kernel/keep.ts';
import { initialState, type RunState, type StepState } from '../kernel/state.ts';
import { shownSteps } from './cause.ts';

export interface PlanView {
  readonly since: string;
  readonly steps: readonly PlannedStep[];
}

export interface PlannedStep {
  readonly step: string;
  readonly kept: boolean;
  readonly why: string;
}

/** Finds the line of the source that says this about a step: `PATH:LINE`; null if there is none. */
export type FindLine = (step: StepState, text: string) => string | null;

/** `old`: the run that is forked. `planned`: the fork after its first record. */
export function planView(old: RunState, planned: RunState, findLine: FindLine): PlanView {
  const since = planned.fork?.from ?? '';
  const steps = shownSteps(planned).map((step): PlannedStep => {
    const kept = step.keptFrom !== null;
    return { step: step.id, kept, why: kept ? `unchanged since ${since}` : whyItRuns(planned, step, findLine) };
  });
  const ids = new Set(Object.values(planned.program.blocks).flatMap((block) => block.steps.map(({ id }) => id)));
  const later = shownSteps(old)
    .filter(({ id, status, definition }) => status === 'done' && !planned.steps.has(id) && ids.has(definition.id))
    .map(({ id }): PlannedStep => ({ step: id, kept: false, why: 'a step before it runs' }));
  return { since, steps: [...steps, ...later] };
}

export function planLines({ since, steps }: PlanView): readonly string[] {
  const kept = steps.filter((step) => step.kept).length;
  const rest = steps.filter((step) => !step.kept);
  return [
    `A fork of ${since} would keep ${kept} of ${steps.length} steps.`,
    ...rest.map(({ step, why }) => sanitize(`  ${step} runs: ${why}`)),
  ];
}

/** Why a fork has kept a step, or not, in a sentence; null if the run is not a fork or the step has not started. */
export function whyKept(
  program: RunState['program'],
  records: readonly JournalRecord[],
  id: string,
  findLine: FindLine,
): string | null {
  const state = initialState(program);
  let reason: string | null = null;
  for (const { decisions, at } of records) {
    for (const decision of decisions) {
      const step = state.steps.get(id);
      if (decision.kind === 'step-started' && decision.step === id && step !== undefined && reason === null)
        reason = decision.keptFrom === undefined ? whyItRuns(state, step, findLine) : '';
      apply(state, decision, at);
    }
  }
  const step = state.steps.get(id);
  if (state.fork === null || step === undefined || reason === null) return null;
  if (step.keptFrom !== null) return `It was kept from run ${step.keptFrom}: nothing about it has changed.`;
  return `It was not kept from run ${state.fork.from}: ${reason === '' ? whyNotKeptAfterAll(step) : reason}.`;
}

function whyItRuns(state: RunState, step: StepState, findLine: FindLine): string {
  const judgement = judgeStep(state, step);
  if (judgement === null) return 'nothing is known about it';
  return reasonText(judgement, step, state.fork?.from ?? '', findLine);
}

/** Nothing about the step itself has changed. */
function whyNotKeptAfterAll(step: StepState): string {
  const part = firstRun(step);
  if (part === null) return 'its items have changed';
  const decision = asksPerson(step)
    ? `its decision is kept, and nobody is asked again unless --from ${step.id} discards it; `
    : '';
  return `${decision}${part.id}, which is below it, runs`;
}

/** Whether a person decided what is below the step: a gate, or a condition that waits for an approval. */
function asksPerson({ definition: { act } }: StepState): boolean {
  if (act.kind !== 'effect') return false;
  if (act.effect.kind === 'gate') return true;
  return act.effect.kind === 'command' && /\bmeow\s+await-approval\b/.test(writtenText(act.effect.script));
}

function firstRun({ children }: StepState): StepState | null {
  for (const part of children.flatMap(({ steps }) => steps))
    if (part.attempt > 0 && part.keptFrom === null) return firstRun(part) ?? part;
  return null;
}

function reasonText(judgement: Judgement, step: StepState, from: string, findLine: FindLine): string {
  switch (judgement.kind) {
    case 'kept':
      return step.status === 'pending' ? 'the steps before it are not known yet' : whyNotKeptAfterAll(step);
    case 'unfinished':
      return judgement.status === null ? `it is not in ${from}` : `in ${from} it was ${judgement.status}`;
    case 'discarded':
      return judgement.step === step.id
        ? 'it was discarded with --from'
        : `${judgement.step} was discarded with --from`;
    case 'depends':
      return `it depends on ${judgement.on}, which runs`;
    case 'changed':
      return changeText(judgement.old, judgement.now, step, findLine);
    case 'changed-script':
      return `${judgement.path}:1: the script has changed`;
    case 'leads-nowhere':
      return `its answer leads to ${judgement.block}, which the workflow no longer has`;
    case 'part':
      return `it is part of ${judgement.of}, which runs`;
  }
}

function changeText(old: JsonMap, now: JsonMap, step: StepState, findLine: FindLine): string {
  const change = firstChange(old, now, []);
  if (change === null) return 'what it asks for has changed';
  const [before, after] = changedLines(shown(change.old), shown(change.now));
  const place = findLine(step, after);
  const what = change.path.filter((name) => name !== 'effect').join('.') || 'the step';
  return `${place === null ? '' : `${place}: `}${what} changed from ${JSON.stringify(before)} to ${JSON.stringify(after)}`;
}

interface Change {
  readonly path: readonly string[];
  readonly old: Json;
  readonly now: Json;
}

function firstChange(old: Json, now: Json, path: readonly string[]): Change | null {
  if (JSON.stringify(old) === JSON.stringify(now)) return null;
  const [one, other] = [entriesOf(old), entriesOf(now)];
  if (one === null || other === null) return { path, old, now };
  for (const name of new Set([...one.keys(), ...other.keys()])) {
    const change = firstChange(one.get(name) ?? null, other.get(name) ?? null, [...path, name]);
    if (change !== null) return change;
  }
  return null;
}

function entriesOf(value: Json): ReadonlyMap<string, Json> | null {
  if (Array.isArray(value)) return new Map((value as readonly Json[]).map((item, index) => [String(index), item]));
  return isJsonMap(value) ? new Map(Object.entries(value)) : null;
}

function shown(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The first lines that differ. */
function changedLines(old: string, now: string): readonly [string, string] {
  const [before, after] = [old.split('\n'), now.split('\n')];
  const at = Array.from({ length: Math.max(before.length, after.length) }, (_, index) => index).findIndex(
    (index) => before[index] !== after[index],
  );
  return [before[at] ?? '', after[at] ?? ''];
}
