// Prints the difference of two runs, for `meow diff`.

import type { Json } from '../base/json.ts';
import { formatDuration } from '../base/time.ts';
import type { RunState } from '../kernel/state.ts';
import type { Palette } from './row.ts';
import { runDiff } from './run-diff.ts';
import { costText } from './usage.ts';

export function runDiffLines(a: RunState, b: RunState, now: number, paint: Palette): readonly string[] {
  const diff = runDiff(a, b, now);
  const shown = (value: Json | null): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const lines = [
    ...(diff.program.same ? [] : ['the programs differ']),
    ...diff.variables.map(
      ({ variable, a: one, b: other }) => `variable ${paint.bold(variable)}  ${shown(one)} → ${shown(other)}`,
    ),
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
