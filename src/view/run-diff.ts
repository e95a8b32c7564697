// The difference of two runs, as data and as lines: statuses of steps, outputs, the order in which steps ended, time and cost.
// Steps are compared by their ids.

import { isSameJson, type Json } from '../base/json.ts';
import { formatDuration } from '../base/time.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import type { Palette } from './row.ts';
import { shownSteps } from './cause.ts';
import { type CostView, costText, costView, runDuration } from './usage.ts';

/** Printed by `meow diff --json`. Its keys are a contract with scripts. */
export interface RunDiff {
  readonly runs: readonly [string, string];
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

/** `now`: for runs that go on. */
export function runDiff(a: RunState, b: RunState, now: number): RunDiff {
  const [stepsA, stepsB] = [byId(a), byId(b)];
  const ids = [...new Set([...stepsA.keys(), ...stepsB.keys()])];
  return {
    runs: [a.request?.id ?? '', b.request?.id ?? ''],
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

export function runDiffLines(a: RunState, b: RunState, now: number, paint: Palette): readonly string[] {
  const diff = runDiff(a, b, now);
  const shown = (value: Json | null): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const lines = [
    ...diff.steps.map(({ step, a: one, b: other }) => `${paint.bold(step)}  ${one ?? 'absent'} → ${other ?? 'absent'}`),
    ...diff.outputs.map(
      ({ step, output, a: one, b: other }) => `${paint.bold(`${step}.${output}`)}  ${shown(one)} → ${shown(other)}`,
    ),
    ...diff.order.map(({ step, a: one, b: other }) => `${paint.bold(step)}  ended as number ${one} → ${other}`),
  ];
  const time = (ms: number | null): string => (ms === null ? 'not started' : formatDuration(ms));
  const price = ({ cost }: RunState): string => costText(cost) || 'none';
  const [idA, idB] = diff.runs;
  return [
    ...(lines.length === 0 ? [`${idA} and ${idB} have the same steps, outputs and order`] : lines),
    paint.dim(`time  ${time(diff.time.a_ms)} → ${time(diff.time.b_ms)}`),
    ...(costText(a.cost) === costText(b.cost) ? [] : [paint.dim(`cost  ${price(a)} → ${price(b)}`)]),
  ];
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
  const common = new Set(a.filter((step) => b.includes(step)));
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
