// The difference of two runs as data: program, variables, statuses of steps, outputs, the order in which steps ended, time and cost.
// Steps are compared by their ids. `run-diff-lines.ts` prints it.

import { isSameJson, type Json } from '../base/json.ts';
import type { RunState, StepState, StepStatus } from '../kernel/state.ts';
import { shownSteps } from './cause.ts';
import { shownVariables } from './status.ts';
import { type CostView, costView, runDuration, stepCost, stepDuration } from './usage.ts';

/** Printed by `meow diff --json`. Its keys are a contract with scripts. */
export interface RunDiff {
  readonly runs: readonly [string, string];
  readonly program: { readonly same: boolean };
  /** Different values; null if the run does not have the variable. */
  readonly variables: readonly { readonly variable: string; readonly a: Json; readonly b: Json }[];
  /** Different statuses; null if the run does not have the step. */
  readonly steps: readonly { readonly step: string; readonly a: string | null; readonly b: string | null }[];
  readonly outputs: readonly {
    readonly step: string;
    readonly output: string;
    readonly a: Json;
    readonly b: Json;
  }[];
  /** Steps of both runs that ended in another order; the positions count from 1. */
  readonly order: readonly { readonly step: string; readonly a: number; readonly b: number }[];
  readonly time: { readonly a_ms: number | null; readonly b_ms: number | null };
  readonly cost: { readonly a: CostView; readonly b: CostView };
}

/** `now`: for active runs. */
export function runDiff(a: RunState, b: RunState, now: number): RunDiff {
  const [stepsA, stepsB] = [byId(a), byId(b)];
  const ids = [...new Set([...stepsA.keys(), ...stepsB.keys()])];
  return {
    runs: [a.request?.id ?? '', b.request?.id ?? ''],
    program: { same: isSameJson(a.program as unknown as Json, b.program as unknown as Json) },
    variables: variablesOf(a, b),
    steps: ids.flatMap((step) => {
      const [one, other] = [stepsA.get(step)?.status ?? null, stepsB.get(step)?.status ?? null];
      return one === other ? [] : [{ step, a: one, b: other }];
    }),
    outputs: ids.flatMap((step) => outputsOf(step, stepsA.get(step), stepsB.get(step))),
    order: movedSteps(endedIn(a), endedIn(b)),
    time: { a_ms: runDuration(a, now), b_ms: runDuration(b, now) },
    cost: { a: costView(a.cost), b: costView(b.cost) },
  };
}

export interface ComparedStep {
  readonly step: string;
  /** Null if the run does not have it. */
  readonly a: SideOfStep | null;
  readonly b: SideOfStep | null;
  /** Whether status or outputs differ. */
  readonly differs: boolean;
}

export interface SideOfStep {
  readonly status: StepStatus;
  readonly attempt: number;
  readonly duration_ms: number | null;
  /** Of all attempts; null if none was reported. */
  readonly cost: CostView | null;
}

/** Every step of both runs, aligned by its id: those of the first run in their order, then those that only the second has. */
export function comparedSteps(a: RunState, b: RunState, now: number): readonly ComparedStep[] {
  const [stepsA, stepsB] = [byId(a), byId(b)];
  return [...new Set([...stepsA.keys(), ...stepsB.keys()])].map((step) => {
    const [one, other] = [stepsA.get(step), stepsB.get(step)];
    return {
      step,
      a: one === undefined ? null : sideOf(a, one, now),
      b: other === undefined ? null : sideOf(b, other, now),
      differs: one?.status !== other?.status || outputsOf(step, one, other).length > 0,
    };
  });
}

function sideOf(state: RunState, step: StepState, now: number): SideOfStep {
  const cost = stepCost(step);
  const { status, attempt } = step;
  return { status, attempt, duration_ms: stepDuration(state, step, now), cost: cost && costView(cost) };
}

function variablesOf(a: RunState, b: RunState): RunDiff['variables'] {
  const [one, other] = [a, b].map(({ request }) => shownVariables(request?.variables ?? {}));
  return [...new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})])].flatMap((variable) => {
    const values = { a: one?.[variable] ?? null, b: other?.[variable] ?? null };
    return isSameJson(values.a, values.b) ? [] : [{ variable, ...values }];
  });
}

function byId(state: RunState): ReadonlyMap<string, StepState> {
  return new Map(shownSteps(state).map((step) => [step.id, step]));
}

/** Only of steps that both runs have: the others differ by their status. */
function outputsOf(step: string, a: StepState | undefined, b: StepState | undefined): RunDiff['outputs'] {
  if (a === undefined || b === undefined) return [];
  return [...new Set([...Object.keys(a.outputs), ...Object.keys(b.outputs)])].flatMap((output) => {
    const [one, other] = [a.outputs[output] ?? null, b.outputs[output] ?? null];
    return isSameJson(one, other) ? [] : [{ step, output, a: one, b: other }];
  });
}

/** Ids of the steps that have ended, in that order. Kept ones ended in another run. */
function endedIn(state: RunState): readonly string[] {
  return shownSteps(state)
    .filter(({ finishedAt, status, keptFrom }) => finishedAt !== null && status !== 'skipped' && keptFrom === null)
    .toSorted((one, other) => (one.finishedAt ?? 0) - (other.finishedAt ?? 0) || one.order - other.order)
    .map(({ id }) => id);
}

/** The fewest steps whose place must change to turn one order into the other. */
function movedSteps(a: readonly string[], b: readonly string[]): RunDiff['order'] {
  const inB = new Set(b);
  const common = new Set(a.filter((step) => inB.has(step)));
  const [orderA, orderB] = [a, b].map((order) => order.filter((step) => common.has(step))) as [string[], string[]];
  const placeInB = new Map(orderB.map((step, index) => [step, index]));
  const kept = longestRise(orderA.map((step) => placeInB.get(step) ?? 0));
  return orderA.flatMap((step, index) =>
    kept.has(index) ? [] : [{ step, a: index + 1, b: (placeInB.get(step) ?? 0) + 1 }],
  );
}

/** Positions of a longest increasing subsequence. */
function longestRise(values: readonly number[]): ReadonlySet<number> {
  /** For each length, the position of the smallest value that ends a rise of that length. */
  const ends: number[] = [];
  const before = new Map<number, number | undefined>();
  for (const [position, value] of values.entries()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((values[ends[middle] ?? 0] ?? 0) < value) low = middle + 1;
      else high = middle;
    }
    before.set(position, ends[low - 1]);
    ends[low] = position;
  }
  const rise = new Set<number>();
  for (let at = ends.at(-1); at !== undefined; at = before.get(at)) rise.add(at);
  return rise;
}
