// Golden files: `test/conformance/LANGUAGE/CASE.in` is compiled, and what comes of it must be `CASE.txt`: the Program,
// and every diagnostic as a person would see it. `UPDATE=1` rewrites them; commit only what you can explain.
//
// A first line `#! workflow=NAME given=a,b=value validate` says what the case is run with. Files in folders below are no
// cases: they are what the references of cases lead to.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { type Diagnostic, hasErrors } from '../src/base/source.ts';
import { checkProgram } from '../src/ir/check.ts';
import type { Compiled } from '../src/languages/language.ts';
import { compileMeow, type OtherFiles, validateMeow } from '../src/languages/meow/compile.ts';
import { createSearch } from '../src/languages/meow/language.ts';
import { spellingsOf } from '../src/languages/meow/target.ts';

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
    if (compiled.program !== null) expect(checkProgram(compiled.program)).toEqual([]);
    for (const diagnostic of compiled.diagnostics) checkShape(diagnostic);
  });
});

test.each(cases.filter((file) => /^(good|pattern)-/.test(file)))('%s has no errors', (file) => {
  expect(hasErrors(compileCase(file, readFileSync(join(MEOW, file), 'utf8')).diagnostics)).toBe(false);
});

function compileCase(file: string, text: string): Pick<Compiled, 'program' | 'diagnostics'> {
  const options = /^#!(.*)/.exec(text)?.[1] ?? '';
  const given = /given=(\S+)/.exec(options)?.[1]?.split(',') ?? [];
  const pairs = given.map((pair) => pair.split('=')).filter((pair) => pair.length === 2);
  const values: Readonly<Record<string, string>> = Object.fromEntries(pairs);
  const others = readOthers(file, text, values);
  const adapters = { forced: null, fallback: () => 'claude' };
  if (/\bvalidate\b/.test(options))
    return { program: null, diagnostics: validateMeow({ file, text, others, adapters }) };
  const names = given.map((pair) => pair.replace(/=.*/, ''));
  const workflow = /workflow=(\S+)/.exec(options)?.[1] ?? null;
  return compileMeow({ file, text, workflow, given: names, values, others, adapters });
}

/** Only what stands beside a file, or below it. */
function readOthers(entry: string, entryText: string, values: Readonly<Record<string, string>>): OtherFiles {
  const search = createSearch(values);
  const files = new Map([[entry, entryText]]);
  const find = (from: string, name: string): string | null =>
    spellingsOf(join(dirname(from), name)).find((path) => existsSync(join(MEOW, path))) ?? null;
  const open = [...search.add({ file: entry, text: entryText })];
  for (let wanted = open.shift(); wanted !== undefined; wanted = open.shift()) {
    const file = find(wanted.from, wanted.name);
    if (file === null || files.has(file)) continue;
    const text = readFileSync(join(MEOW, file), 'utf8');
    files.set(file, text);
    open.push(...search.add({ file, text }));
  }
  return { files: [...files].map(([file, text]) => ({ file, text })), find };
}

/** The place is in the text, and the source line is the one that the place names. */
function checkShape({ span, sourceLine, sourceColumn, hint }: Diagnostic): void {
  const text = readFileSync(join(MEOW, span.file), 'utf8');
  const line = text.replace(/^\uFEFF/, '').split(/\r?\n/)[span.line - 1];
  expect(sourceLine.replace(/^\uFEFF/, '')).toBe(line);
  expect(sourceColumn).toBe(1);
  expect(span.column).toBeGreaterThanOrEqual(1);
  expect(span.column + span.length - 1).toBeLessThanOrEqual(Math.max(1, sourceLine.length));
  expect(hint).not.toBe('');
}

function write({ program, diagnostics }: Pick<Compiled, 'program' | 'diagnostics'>): string {
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
