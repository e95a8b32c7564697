// Whatever an author is in the middle of writing, the editor's questions about it have answers, and no answer lies
// outside of the text.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EditorWorkspace } from '../../src/app/editor.ts';

const FOLDER = join(import.meta.dirname, '../../examples');
const FILES = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((file) =>
  /\.(?:meow\.toml|ya?ml|md)$/.test(file),
);
const JUNK = ['', '{{', '[[', '"', '"""', '\n[', '<goto>', '- {', ': &a [*a', '\u{1F63A}', '\r', '\0', '{{a.outputs.'];

test('a workflow that is cut anywhere, with anything in its place, can be asked about', () => {
  const edits = fc.record({
    file: fc.constantFrom(...FILES),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    removed: fc.nat(400),
    junk: fc.constantFrom(...JUNK),
    asked: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(edits, ({ file, at, removed, junk, asked }) => {
      const path = join(FOLDER, file);
      const whole = readFileSync(path, 'utf8');
      const cut = Math.floor(at * whole.length);
      const text = `${whole.slice(0, cut)}${junk}${whole.slice(cut + removed)}`;
      const workspace = new EditorWorkspace(FOLDER, {
        textOf: (other) => (other === path ? text : null),
        paths: () => [path],
      });
      const workflow = workspace.workflowOf(path);
      const problems = workflow === null ? [] : workspace.problemsOf(workflow);
      const definitions = workspace.definitionsIn(path);
      const inside = [...problems.filter((problem) => problem.path === path), ...definitions].map(({ place }) => place);
      for (const { from, to } of inside) {
        expect(from).toBeGreaterThanOrEqual(0);
        expect(from).toBeLessThanOrEqual(to);
        expect(to).toBeLessThanOrEqual(text.length);
      }
      for (const offset of [cut, cut + junk.length, Math.floor(asked * text.length)]) {
        workspace.suggest(path, offset);
        workspace.keyAt(path, offset);
        workspace.symbolAt(path, offset);
      }
    }),
    { numRuns: 150 },
  );
});
