// Golden files: each folder and each YAML file here is a workflow, and its result must be that of `NAME.txt`: the
// diagnostics of a run, the Program if the name begins with `good-` (in full for the smallest), and the diagnostics of
// a check. `UPDATE=1` rewrites them; commit only changes that you can explain. `others/` contains workflows that the
// cases enter.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { type Diagnostic, hasErrors } from '../../../src/base/source.ts';
import { checkProgram } from '../../../src/ir/check.ts';
import type { Program } from '../../../src/ir/program.ts';
import type { CompiledRaymond } from '../../../src/languages/raymond/compile.ts';
import { compileAt, validateAt } from './rig.ts';

const ROOT = import.meta.dirname;
const cases = readdirSync(ROOT).filter((name) => name !== 'others' && !/\.(?:txt|ts)$/.test(name));

describe('Raymond prompts compile to their golden file', () => {
  test.each(cases)('%s', (name) => {
    const golden = join(ROOT, `${name.replace(/\.yaml$/, '')}.txt`);
    const compiled = compileAt(ROOT, name, { given: ['given'] });
    const checked = validateAt(ROOT, name);
    const written = `# meow run\n\n${write(compiled, name)}\n# meow validate\n\n${drawAll(checked)}`;
    if (process.env['UPDATE'] !== undefined) writeFileSync(golden, written);
    expect(written).toBe(readFileSync(golden, 'utf8'));
    expect(compiled.program === null).toBe(hasErrors(compiled.diagnostics));
    if (compiled.program !== null) {
      expect(checkProgram(compiled.program)).toEqual([]);
      // It is plain data.
      expect(JSON.parse(JSON.stringify(compiled.program))).toEqual(compiled.program);
    }
    for (const diagnostic of [...compiled.diagnostics, ...checked]) checkShape(diagnostic);
  });
});

test.each(cases.filter((name) => name.startsWith('good-')))('%s has no diagnostics', (name) => {
  expect(compileAt(ROOT, name, { given: ['given'] }).diagnostics).toEqual([]);
  expect(validateAt(ROOT, name)).toEqual([]);
});

test('every known problem is shown, and listed in the reference', () => {
  const codes = cases.flatMap((name) => [...compileAt(ROOT, name).diagnostics, ...validateAt(ROOT, name)]);
  const reference = readFileSync(join(ROOT, '../../../docs/languages/raymond.md'), 'utf8');
  const sources = readdirSync(join(ROOT, '../../../src/languages/raymond'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => readFileSync(join(ROOT, '../../../src/languages/raymond', file), 'utf8'))
    .join('\n');
  const known = [...sources.matchAll(/(?:error|warning|complain|\])\(\s*'([a-z-]+)'/g)].map(({ 1: code = '' }) => code);
  expect(known.length).toBeGreaterThan(25);
  const shown = new Set(codes.map(({ code }) => code));
  expect([...new Set(known)].filter((code) => !shown.has(code))).toEqual([]);
  const listed = [...reference.matchAll(/^\| `([a-z-]+)` \| /gm)].map(({ 1: code = '' }) => code);
  expect([...shown].filter((code) => !listed.includes(code))).toEqual([]);
});

/** The position is in the text, and the source line is that of the position. */
function checkShape({ span, sourceLine, hint, code }: Diagnostic): void {
  expect(hint).not.toBe('');
  // These have no text to show.
  if (code === 'not-text' || code === 'leads-out') return;
  const path = join(ROOT, span.file);
  if (!existsSync(path) || !/\.\w+$/.test(path)) return;
  const text = readFileSync(path, 'utf8');
  expect(sourceLine).toBe(text.replace(/^\uFEFF/, '').split(/\r?\n/)[span.line - 1]);
  expect(span.column + span.length - 1).toBeLessThanOrEqual(Math.max(1, sourceLine.length));
}

function write({ program, diagnostics }: CompiledRaymond, name: string): string {
  if (program === null || !name.startsWith('good-')) return drawAll(diagnostics);
  const there = withoutHomes(program);
  return `${drawAll(diagnostics)}\n${pretty(name === 'good-minimal' ? there : inShort(there), '')}\n`;
}

/** Its folders depend on the location of the tree. */
function withoutHomes(program: Program): Program {
  const machines = Object.entries(program.machines).map(
    ([name, { home: _home, ...machine }]) => [name, machine] as const,
  );
  return { ...program, machines: Object.fromEntries(machines) };
}

const WIDTH = 140;

/** JSON, on one line if it fits. */
function pretty(value: unknown, indent: string): string {
  const short = JSON.stringify(value);
  if (short.length + indent.length <= WIDTH || typeof value !== 'object' || value === null) return short;
  const inner = `${indent} `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => `${inner}${pretty(item, inner)}`).join(',\n')}\n${indent}]`;
  }
  const entries = Object.entries(value).map(([key, item]) => `${inner}${JSON.stringify(key)}: ${pretty(item, inner)}`);
  return `{\n${entries.join(',\n')}\n${indent}}`;
}

/** Without the parts that are the same for all. */
function inShort({ source, entry, blocks, machines, steerings }: NonNullable<CompiledRaymond['program']>): unknown {
  const states = Object.values(blocks).filter(({ steps }) => steps[0]?.executor !== 'ask');
  return {
    source,
    entry,
    blocks: states.map(({ name, parameters, steps, visits }) => ({
      name,
      parameters: Object.fromEntries(parameters.map((each) => [each.name, each.fallback])),
      steps,
      visits,
    })),
    machines,
    steerings,
  };
}

function drawAll(diagnostics: readonly Diagnostic[]): string {
  return diagnostics.length === 0 ? 'nothing to say\n' : diagnostics.map(draw).join('\n');
}

function draw({ severity, code, message, span, sourceLine, hint, related }: Diagnostic): string {
  const at = ({ file, line, column }: Diagnostic['span']): string => `${file}:${String(line)}:${String(column)}`;
  return [
    `${at(span)}: ${severity} ${code}: ${message}`,
    `  | ${sourceLine}`,
    `  | ${' '.repeat(span.column - 1)}${'^'.repeat(span.length)}`,
    ...(hint === null ? [] : [`  = ${hint}`]),
    ...related.map((other) => `  - ${at(other.span)}: ${other.message}`),
    '',
  ].join('\n');
}
