// Workflows in the reference compile: complete ones as they are, lists of steps inside a workflow.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { compileText } from './rig.ts';

const REFERENCE = join(import.meta.dirname, '../../../docs/languages/conductor.md');
const AROUND = 'workflow_id: w\nversion: 1\ndescription: d\nentry_step: ';
/** A part lacks the rest of its workflow. */
const ELSEWHERE = ['missing-target', 'golden-without-gate'];

const text = readFileSync(REFERENCE, 'utf8');
const fences = [...text.matchAll(/^```(yaml[^\n]*)\n([\s\S]*?)^```$/gm)].map(
  ({ 1: info = '', 2: inside = '', index }) => ({
    line: text.slice(0, index).split('\n').length,
    info,
    inside,
  }),
);

describe('workflows in the reference compile', () => {
  test.each(fences.filter(({ info }) => info === 'yaml'))('line $line', ({ inside }) => {
    expect(problemsOf(inside)).toEqual([]);
  });

  test.each(fences.filter(({ info }) => info === 'yaml steps'))('the step on line $line', ({ inside }) => {
    const entry = /^- id: (\S+)/.exec(inside)?.[1] ?? '';
    const problems = problemsOf(`${AROUND}${entry}\nsteps:\n${inside.replaceAll(/^/gm, '  ')}`);
    expect(problems.filter((problem) => !ELSEWHERE.some((code) => problem.startsWith(code)))).toEqual([]);
  });

  test('exist, and no other kind does', () => {
    expect(fences.length).toBeGreaterThan(5);
    expect(fences.filter(({ info }) => !['yaml', 'yaml steps'].includes(info))).toEqual([]);
  });
});

function problemsOf(workflow: string): readonly string[] {
  const { diagnostics } = compileText(import.meta.dirname, 'w.yaml', workflow);
  return diagnostics.map(({ code, span, message }) => `${code}: line ${String(span.line)}: ${message}`);
}
