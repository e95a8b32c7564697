import { expect, test } from 'vitest';

import { runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { success } from '../ir/effect.ts';
import type { Input } from '../kernel/input.ts';
import { costText } from './cost.ts';
import { plainPalette } from './row.ts';
import { runLines, stepLines } from './step-lines.ts';
import { runView, stepViews } from './step.ts';
import { summaryLines } from './summary-lines.ts';
import { treeLines } from './tree-lines.ts';

test.each([
  [{ usd: 0.42, tokens: 120_034, unpriced: 0 }, '$0.42'],
  [{ usd: 12, tokens: 0, unpriced: 0 }, '$12.00'],
  [{ usd: 0.0042, tokens: 9, unpriced: 0 }, '$0.004'],
  [{ usd: 0.42, tokens: 9, unpriced: 1 }, '9 tokens'],
  [{ usd: 0, tokens: 999, unpriced: 1 }, '999 tokens'],
  [{ usd: 0, tokens: 120_034, unpriced: 1 }, '120.0k tokens'],
  [{ usd: 0, tokens: 3_400_000, unpriced: 1 }, '3.4M tokens'],
  [{ usd: 0, tokens: 0, unpriced: 2 }, ''],
])('%j is shown as %j', (cost, text) => {
  expect(costText(cost)).toBe(text);
});

const costs = (effect: string, usd: number | null, tokens: number | null): Input => ({
  kind: 'effect-finished',
  effect,
  outcome: success({}, { usage: { usd, tokens } }),
});

test('costs are shown in the tree, at the end, and of runs and steps', () => {
  const { state, records } = runKernel('a turn x\nb turn x\nc', costs('a#1', 0.25, 9), costs('b#1', 0.5, null));
  const tree = {
    now: 0,
    width: 80,
    height: 30,
    palette: plainPalette,
    ascii: false,
    closing: false,
    interrupted: false,
  };
  expect(treeLines(state, tree)[0]).toContain('  $0.75  ');
  expect(treeLines(state, tree)[1]).toBe('✓ a  1.0s  $0.25');
  expect(runLines(runView(state), plainPalette).some((line) => /cost: +\$0\.75$/.test(line))).toBe(true);
  const [a, , c] = stepViews(state, records);
  expect(a?.cost).toEqual({ usd: 0.25, tokens: 9, unknown_turns: 0 });
  expect(a && stepLines(a, plainPalette).some((line) => /cost: +\$0\.25/.test(line))).toBe(true);
  expect(c?.cost).toBeNull();
  const ended = runKernel('a turn x', costs('a#1', 0.25, 9)).state;
  expect(summaryLines(ended, plainPalette)[0]).toBe('done in 1.0s for $0.25: 1 done');
});
