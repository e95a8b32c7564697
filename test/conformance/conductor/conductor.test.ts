// Golden files: each YAML file here is a workflow, and its result must be that of `NAME.txt`: every diagnostic, and the
// Program if the name begins with `good-` or `pattern-`. `UPDATE=1` rewrites them; commit only changes that you can
// explain. The prompts of the cases are in `prompts/`, or are built in.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { type Diagnostic, hasErrors } from '../../../src/base/source.ts';
import { checkProgram } from '../../../src/ir/check.ts';
import type { Block, Program, Step } from '../../../src/ir/program.ts';
import { writtenText } from '../../../src/ir/text.ts';
import type { Transition } from '../../../src/ir/transition.ts';
import type { CompiledConductor } from '../../../src/languages/conductor/compile.ts';
import { compileAt } from './rig.ts';

const ROOT = import.meta.dirname;
const PROJECT = join(ROOT, '../../..');
const cases = readdirSync(ROOT).filter((name) => name.endsWith('.yaml'));
const isGood = (name: string): boolean => /^(?:good|pattern)-/.test(name);

describe('a Conductor workflow compiles to its golden file', () => {
  test.each(cases)('%s', (name) => {
    const golden = join(ROOT, name.replace(/\.yaml$/, '.txt'));
    const compiled = compileAt(ROOT, name);
    const written = write(compiled, name);
    if (process.env['UPDATE'] !== undefined) writeFileSync(golden, written);
    expect(written).toBe(readFileSync(golden, 'utf8'));
    expect(compiled.program === null).toBe(hasErrors(compiled.diagnostics));
    if (compiled.program !== null) {
      expect(checkProgram(compiled.program)).toEqual([]);
      // It is plain data.
      expect(JSON.parse(JSON.stringify(compiled.program))).toEqual(compiled.program);
    }
    for (const diagnostic of compiled.diagnostics) checkShape(diagnostic);
  });
});

test.each(cases.filter(isGood))('%s has no diagnostics', (name) => {
  expect(compileAt(ROOT, name).diagnostics).toEqual([]);
});

test('every known problem is shown, and listed in the reference', () => {
  const shown = new Set(cases.flatMap((name) => compileAt(ROOT, name).diagnostics.map(({ code }) => code)));
  const folder = join(PROJECT, 'src/languages/conductor');
  const sources = readdirSync(folder)
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== 'config.ts')
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n');
  const known = [...sources.matchAll(/\.(?:error|warning)\(\s*(?:\w+ \? '[a-z-]+' : )?'([a-z-]+)'/g)];
  const codes = new Set(known.map(({ 1: code = '' }) => code));
  expect(codes.size).toBeGreaterThan(30);
  expect([...codes].filter((code) => !shown.has(code))).toEqual([]);
  const reference = readFileSync(join(PROJECT, 'docs/languages/conductor.md'), 'utf8');
  const listed = [...reference.matchAll(/^\| `([a-z-]+)` \| /gm)].map(({ 1: code = '' }) => code);
  expect([...shown].filter((code) => !listed.includes(code))).toEqual([]);
});

/** The position is in the text, and the source line is that of the position. */
function checkShape({ span, sourceLine, hint }: Diagnostic): void {
  expect(hint).not.toBe('');
  const [path = ''] = [join(ROOT, span.file), join(PROJECT, span.file)].filter((each) => existsSync(each));
  expect(path).not.toBe('');
  const text = readFileSync(path, 'utf8');
  expect(sourceLine).toBe(text.replace(/^\uFEFF/, '').split(/\r?\n/)[span.line - 1]);
  expect(span.column + span.length - 1).toBeLessThanOrEqual(Math.max(1, sourceLine.length));
}

function write({ program, diagnostics, notes }: CompiledConductor, name: string): string {
  const told = diagnostics.length === 0 ? 'nothing to say\n' : diagnostics.map(draw).join('\n');
  const found = notes.map((note) => `${note}\n`).join('');
  return `${told}${found}${program === null || !isGood(name) ? '' : `\n${drawProgram(program, name)}`}`;
}

/** The smallest in full; for the others the effect and the routes of each step. */
function drawProgram(program: Program, name: string): string {
  if (name === 'good-minimal.yaml') return `${pretty(program, '')}\n`;
  const { entry, blocks, attachments } = program;
  return `entry ${entry}\n${attachments['conductor'] ?? ''}\n\n${Object.values(blocks).map(drawBlock).join('\n')}`;
}

function drawBlock({ name, steps, naming }: Block): string {
  return steps.map((step) => drawStep(name, naming, step)).join('\n');
}

function drawStep(block: string, naming: Block['naming'], step: Step): string {
  const { id, executor, timeout, repromptsMax, routes, act, needs } = step;
  const more = [
    ...(id === block ? [] : [`step ${id}`]),
    ...(needs.length === 0 ? [] : [`after ${needs.join(', ')}`]),
    ...(timeout === null ? [] : [`timeout ${JSON.stringify(timeout)}`]),
    ...(repromptsMax === 0 ? [] : [`reprompts ${String(repromptsMax)}`]),
    ...(naming === 'visit-last' ? [] : [naming]),
  ];
  const leads = new Map<string, string[]>();
  for (const [key, transition] of Object.entries(routes)) {
    const to = drawTransition(transition);
    leads.set(to, [...(leads.get(to) ?? []), key]);
  }
  return [
    [`${block}: ${executor}`, ...more].join(', '),
    `  ${drawAct(act)}`,
    ...[...leads].map(([to, keys]) => `  ${keys.join(' ')} → ${to}`),
    '',
  ].join('\n');
}

function drawAct(act: Step['act']): string {
  if (act.kind === 'block') return `performed by ${writtenText(act.target.block)}`;
  if (act.kind !== 'effect') return act.kind;
  return pretty(JSON.parse(JSON.stringify(act.effect, shortened)), '  ');
}

function drawTransition(transition: Transition): string {
  if (transition.kind === 'stop') return `the run is ${transition.verdict}`;
  if (transition.kind !== 'goto') return transition.kind;
  const { target, session, dropCallers } = transition;
  return `${writtenText(target.block)}${session === 'fresh' ? '' : ` (${session})`}${dropCallers ? ' (drops callers)' : ''}`;
}

/** Prompts are long, and stored elsewhere. */
function shortened(key: string, value: unknown): unknown {
  return key === 'text' && typeof value === 'string' && value.length > 60 ? `${value.slice(0, 60)}…` : value;
}

const WIDTH = 120;

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
