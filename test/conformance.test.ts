// Golden files: `test/conformance/LANGUAGE/CASE.in` is compiled, and what comes of it must be `CASE.txt`: the Program,
// and every diagnostic as a person would see it. `UPDATE=1` rewrites them; commit only what you can explain.
//
// A first line `#! workflow=NAME given=a,b validate` says what the case is run with.

import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Diagnostic } from '../src/base/diagnostic.ts';
import { hasErrors } from '../src/base/diagnostic.ts';
import type { Compiled } from '../src/languages/meow/compile.ts';
import { compileMeow, validateMeow } from '../src/languages/meow/compile.ts';

const MEOW = join(import.meta.dirname, 'conformance/meow');
const cases = readdirSync(MEOW).filter((file) => file.endsWith('.meow.toml'));

describe('MEOW text compiles to what its golden file says', () => {
  test.each(cases)('%s', (file) => {
    const goldenFile = join(MEOW, file.replace('.meow.toml', '.txt'));
    const text = readFileSync(join(MEOW, file), 'utf8');
    const compiled = compileCase(file, text);
    const written = write(compiled);
    if (process.env['UPDATE'] !== undefined) writeFileSync(goldenFile, written);
    expect(written).toBe(readFileSync(goldenFile, 'utf8'));
    expect(compiled.program === null).toBe(hasErrors(compiled.diagnostics) || /^#!.*\bvalidate\b/.test(text));
    for (const diagnostic of compiled.diagnostics) checkShape(diagnostic, text);
  });
});

function compileCase(file: string, text: string): Compiled {
  const options = /^#!(.*)/.exec(text)?.[1] ?? '';
  if (/\bvalidate\b/.test(options)) return { program: null, diagnostics: validateMeow({ file, text }) };
  const given = /given=(\S+)/.exec(options)?.[1]?.split(',') ?? [];
  return compileMeow({ file, text, workflow: /workflow=(\S+)/.exec(options)?.[1] ?? null, given });
}

/** The place is in the text, and the source line is the one that the place names. */
function checkShape({ span, sourceLine, sourceColumn, hint }: Diagnostic, text: string): void {
  const line = text.replace(/^\uFEFF/, '').split(/\r?\n/)[span.line - 1];
  expect(sourceLine.replace(/^\uFEFF/, '')).toBe(line);
  expect(sourceColumn).toBe(1);
  expect(span.column).toBeGreaterThanOrEqual(1);
  expect(span.column + span.length - 1).toBeLessThanOrEqual(Math.max(1, sourceLine.length));
  expect(hint).not.toBe('');
}

function write({ program, diagnostics }: Compiled): string {
  const parts = diagnostics.map(draw);
  if (program !== null) parts.push(`${JSON.stringify(program, null, 2)}\n`);
  return parts.length === 0 ? 'nothing to say\n' : parts.join('\n');
}

function draw({ severity, code, message, span, sourceLine, hint, related }: Diagnostic): string {
  const at = ({ file, line, column }: Diagnostic['span']): string => `${file}:${String(line)}:${String(column)}`;
  return [
    `${at(span)}: ${severity} ${code}: ${message}`,
    `  | ${sourceLine.replace(/^\uFEFF/, '')}`,
    `  | ${' '.repeat(span.column - 1)}${'^'.repeat(span.length)}`,
    ...(hint === null ? [] : [`  = ${hint}`]),
    ...related.map((other) => `  - ${at(other.span)}: ${other.message}`),
    '',
  ].join('\n');
}
