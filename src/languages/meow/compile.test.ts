// What no golden file can show: that no text whatever makes the compiler throw, hang or contradict itself.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { hasErrors } from '../../base/source.ts';
import { checkProgram } from '../../ir/check.ts';
import { DEFAULT_LIMITS } from '../../ir/program.ts';
import type { Compiled } from '../language.ts';
import { compileMeow, type OtherFiles, validateMeow } from './compile.ts';
import { createSearch } from './language.ts';
import { attempts } from '../../../test/rig/sample.ts';

const compile = (text: string): Compiled => compileMeow({ file: 'a.meow.toml', text, workflow: null, given: [] });

/** Whatever a reference names, it is the file itself: cycles between files are fine, also through a broken one. */
function othersOf(text: string): OtherFiles {
  createSearch({ kind: 'main' }).add({ file: 'a.meow.toml', text });
  return { files: [{ file: 'b.meow.toml', text }], find: () => 'b.meow.toml' };
}

function checkSound(text: string): void {
  const { program, diagnostics } = compile(text);
  expect(program === null).toBe(hasErrors(diagnostics));
  const lines = text.split('\n');
  for (const { span, sourceLine, hint } of [...diagnostics, ...validateMeow({ file: 'a.meow.toml', text })]) {
    expect(lines[span.line - 1]).toContain(sourceLine);
    expect(span.column).toBeGreaterThan(0);
    expect(span.length).toBeGreaterThan(0);
    expect(hint).toBeTruthy();
  }
  const others = othersOf(text);
  const linked = compileMeow({ file: 'a.meow.toml', text, workflow: null, given: null, others });
  expect(linked.program === null).toBe(hasErrors(linked.diagnostics));
  if (linked.program !== null) expect(checkProgram(linked.program)).toEqual([]);
  validateMeow({ file: 'a.meow.toml', text, others });
  const places = diagnostics.map(({ span }) => span.line * 1e6 + span.column);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
}

describe('no text makes the compiler throw', { timeout: 60_000 }, () => {
  const folder = join(import.meta.dirname, '../../../test/conformance/meow');
  const corpus = readdirSync(folder)
    .filter((file) => file.endsWith('.toml'))
    .map((file) => readFileSync(join(folder, file), 'utf8'));

  test('not random ones', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 300 }), checkSound), { numRuns: attempts(500) });
  });

  test('not random bytes', () => {
    const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => new TextDecoder().decode(array));
    fc.assert(fc.property(bytes, checkSound), { numRuns: attempts(500) });
  });

  test('not workflows with a part cut out, put in or exchanged', () => {
    const put = fc.oneof(
      fc.constantFrom(
        '',
        '"',
        '\n',
        '=',
        '[',
        ']',
        '{{',
        '}}',
        '{{x}}',
        '$(',
        "'",
        '`',
        '\\',
        '<<EOF\n',
        '\0',
        '3',
        '[]',
        '{}',
        'true',
      ),
      fc.string({ maxLength: 5 }),
    );
    const mutated = fc.tuple(fc.constantFrom(...corpus), fc.nat(), fc.nat(30), put).map(([text, at, cut, piece]) => {
      const from = at % (text.length + 1);
      return text.slice(0, from) + piece + text.slice(from + cut);
    });
    fc.assert(fc.property(mutated, checkSound), { numRuns: attempts(1_000) });
  });

  test('not workflows with a key of another step', () => {
    const lines = corpus.flatMap((text) => text.split('\n')).filter((line) => /^\w+ = /.test(line));
    const mixed = fc.tuple(fc.constantFrom(...corpus), fc.nat(), fc.array(fc.constantFrom(...lines), { maxLength: 4 }));
    fc.assert(
      fc.property(mixed, ([text, at, more]) => {
        const all = text.split('\n');
        checkSound([...all.slice(0, at % all.length), ...more, ...all.slice(at % all.length)].join('\n'));
      }),
      { numRuns: attempts(1_500) },
    );
  });

  test('not two workflows in one', () => {
    const crossed = fc.tuple(fc.constantFrom(...corpus), fc.constantFrom(...corpus), fc.nat(), fc.nat());
    fc.assert(
      fc.property(crossed, ([a, b, x, y]) => {
        checkSound(a.slice(0, x % (a.length + 1)) + b.slice(y % (b.length + 1)));
      }),
      { numRuns: attempts(1_000) },
    );
  });
});

describe('large texts are read in good time', () => {
  const script = (command: string): string =>
    `[main]\n[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = '''${command}'''\n`;

  test.each([
    ['{{', '{{'],
    ['{{ ', '{{ '],
    ['{{x}}', '{{x}}'],
    ['{{workflow_id}}', '{{workflow_id}}'],
    ['"$(', '"$('],
    ['`', '`\\'],
    ['heredocs', 'cat <<E\n'],
    ['closed heredocs', 'cat <<E\n{{date}}\nE\n'],
    ['backslashes', '\\'],
    ['backslashes in a heredoc', 'cat <<E\n\\\n'],
    ['cases', 'case x in '],
    ['comments', '# {{date}}\n'],
  ])('half a megabyte of %s', (_name, piece) => {
    const { diagnostics } = compile(script(piece.repeat(Math.floor(500_000 / piece.length))));
    expect(diagnostics.length).toBeLessThan(1_000);
  });

  test('ten thousand steps in a chain, each with a reference', () => {
    const steps = Array.from({ length: 10_000 }, (_, index) => {
      const before = `s${String(index - 1)}`;
      const rest =
        index === 0 ? 'command = "true"' : `command = "echo {{${before}.outputs.exit_code}}"\nneeds = ["${before}"]`;
      return `[[main.steps]]\nid = "s${String(index)}"\nexecutor = "shell"\n${rest}\n`;
    });
    const { program, diagnostics } = compile(`[main]\n${steps.join('')}`);
    expect(diagnostics).toEqual([]);
    expect(program?.blocks['main']?.steps).toHaveLength(10_000);
  });

  test('a ring of ten thousand steps is one mistake', () => {
    const steps = Array.from({ length: 10_000 }, (_, index) => {
      const next = String((index + 1) % 10_000);
      return `[[main.steps]]\nid = "s${String(index)}"\nexecutor = "shell"\ncommand = "true"\nneeds = ["s${next}"]\n`;
    });
    expect(compile(`[main]\n${steps.join('')}`).diagnostics).toMatchObject([{ code: 'need-cycle' }]);
  });
});

describe('large workflows are linked in good time', () => {
  const step = (workflow: string, id: string, rest: string): string => `[[${workflow}.steps]]\nid = "${id}"\n${rest}\n`;
  const numbers = Array.from({ length: 1_000 }, (_, index) => String(index));

  test('a chain of workflows, each seeing what those before it declare', () => {
    const chain = numbers.map(
      (n) =>
        `[w${n}.variables]\nv${n} = "x"\n${step(`w${n}`, 'go', `executor = "expand"\ntemplate = ".w${String((Number(n) + 1) % 300)}"`)}`,
    );
    const text = `${chain.slice(0, 300).join('')}[main]\n${step('main', 'a', 'executor = "expand"\ntemplate = ".w0"')}`;
    expect(compile(text).diagnostics).toMatchObject([{ code: 'endless-expansion' }]);
  });

  test('a template that thousands of steps lead to, and refers to what none of them has', () => {
    const calls = numbers.map((n) => step('main', `s${n}`, 'executor = "expand"\ntemplate = ".t"'));
    const uses = numbers.map((n) =>
      step('t', `u${n}`, `executor = "shell"\ncommand = "echo {{nobody${n}.outputs.x}}"`),
    );
    const { diagnostics } = compile(`[main]\n${calls.join('')}[t]\n${uses.join('')}`);
    expect(diagnostics.at(-1)).toMatchObject({ code: 'too-many-problems' });
  });

  test('a variable that is passed under its own name, everywhere', () => {
    const calls = numbers.map((n) =>
      step('main', `s${n}`, 'executor = "expand"\ntemplate = "{{kind}}"\nvariables = { kind = "{{kind}}" }'),
    );
    const { diagnostics } = compile(`[main.variables]\nkind = "main"\n${calls.join('')}`);
    expect(diagnostics).toEqual([]);
  });

  test('agents by the thousands', () => {
    const agents = numbers.flatMap((n) => [
      step('main', `s${n}`, `executor = "spawn"\nagent = "a${n}"`),
      step('main', `p${n}`, `executor = "agent"\nagent = "a${n}"\nprompt = "x"\nneeds = ["s${n}"]`),
    ]);
    expect(compile(`[main]\n${agents.join('')}`).diagnostics).toEqual([]);
  });

  test('patterns below a workflow that leads to itself', () => {
    const needs = `needs = ["a.${'*.'.repeat(200)}z"]`;
    const text = [
      '[main]\n',
      step('main', 'a', 'executor = "branch"\ncondition = "true"\non_true = { template = "main" }'),
      step('main', 'b', 'executor = "branch"\ncondition = "true"\non_true = { template = "main" }'),
      step('main', 'c', `executor = "shell"\ncommand = "true"\n${needs}`),
    ].join('');
    expect(compile(text).diagnostics).toMatchObject([{ code: 'empty-pattern' }]);
  });

  test('steps inline in steps inline in steps', () => {
    const nest = (depth: number): string =>
      depth === 0
        ? '{ id = "a", executor = "shell", command = "true" }'
        : `{ id = "a", executor = "branch", condition = "true", on_true = { inline = [${nest(depth - 1)}] } }`;
    const { program, diagnostics } = compile(`[main]\nsteps = [${nest(20)}]\n`);
    expect(diagnostics).toEqual([]);
    expect(Object.keys(program?.blocks ?? {})).toHaveLength(21);
    for (const depth of [100, 1_000])
      expect(compile(`[main]\nsteps = [${nest(depth)}]\n`).diagnostics.length).toBeLessThan(500);
  });
});

test('of a very long line only the part at fault is kept, and of a very long name its beginning', () => {
  const long = 'x'.repeat(500_000);
  const text = `[main]\n[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = "${long} {{nobody}} ${long}"\nneeds = ["${long}"]\n`;
  const { diagnostics } = compile(text);
  expect(diagnostics.map(({ code }) => code)).toEqual(['unknown-variable', 'unknown-need']);
  for (const { message, span, sourceLine, sourceColumn } of diagnostics) {
    expect(sourceLine.length).toBeLessThanOrEqual(1_000);
    expect(message.length).toBeLessThanOrEqual(1_001);
    const line = text.split('\n')[span.line - 1] ?? '';
    expect(line.slice(sourceColumn - 1, sourceColumn - 1 + sourceLine.length)).toBe(sourceLine);
  }
  const [{ span, sourceLine, sourceColumn } = expect.fail()] = diagnostics;
  expect(sourceLine.slice(span.column - sourceColumn)).toMatch(/^\{\{nobody\}\} x/);
});

test('where nothing will run, what is required counts as given', () => {
  const text =
    '[main]\n[main.variables]\na = { required = true }\n[[main.steps]]\nid = "s"\nexecutor = "shell"\ncommand = "echo {{a}}"\n';
  expect(compile(text).diagnostics).toMatchObject([{ code: 'missing-variable' }]);
  const looked = compileMeow({ file: 'a.meow.toml', text, workflow: null, given: null });
  expect(looked.diagnostics).toEqual([]);
  expect(looked.program?.blocks['main']?.parameters).toMatchObject([{ name: 'a', required: true }]);
});

test('a workflow with more steps than a run may have is refused at once', () => {
  const text = `[main]\n${[1, 2, 3].map((id) => `[[main.steps]]\nid = "${String(id)}"\nexecutor = "shell"\ncommand = "true"\n`).join('')}`;
  const limits = { ...DEFAULT_LIMITS, stepsMax: 2 };
  const compiled = compileMeow({ file: 'a', text, workflow: null, given: [], limits });
  expect(compiled.diagnostics).toMatchObject([{ code: 'too-many-steps' }]);
});

test('a variable with neither default nor value is missing where it is used, before anything runs', () => {
  const text = (command: string): string =>
    `[main.variables]\nx = { type = "string" }\n[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = "${command}"\n`;
  expect(compile(text('echo {{x}}')).diagnostics).toMatchObject([{ code: 'missing-variable' }]);
  expect(compile(text('echo')).diagnostics).toEqual([]);
});
