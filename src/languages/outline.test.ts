import { expect, test } from 'vitest';
import { compileMeow } from './meow/compile.ts';
import { renamedOutline } from './outline.ts';

test('steps and routes of a MEOW workflow have the lines on which they are written', () => {
  const text = `[main]
[[main.steps]]
id = "gate"
executor = "branch"
condition = "true"
on_true = { inline = [{ id = "yes", executor = "shell", command = "true" }] }
on_false = { template = ".no" }
[[main.steps]]
id = "risky"
executor = "shell"
command = "true"
on_error = "no"
[no]
[[no.steps]]
id = "log"
executor = "shell"
command = "true"
`;
  const { outline } = compileMeow({ file: 'w.meow.toml', text, workflow: null, given: null });
  const lines = (outline?.() ?? []).flatMap(({ step, place, routes }) => [
    `${step} ${place.file}:${place.line}`,
    ...routes.map(({ label, place: { line }, taken }) => `${step} ${label} ${line} ${JSON.stringify(taken)}`),
  ]);
  expect(lines.toSorted()).toEqual([
    'gate on_false 7 {"kind":"outcome","words":["false","timeout"]}',
    'gate on_true 6 {"kind":"outcome","words":["true"]}',
    'gate w.meow.toml:3',
    'log w.meow.toml:15',
    'risky on_error 12 {"kind":"recovery"}',
    'risky w.meow.toml:9',
    'yes w.meow.toml:6',
  ]);
});

test('the blocks of an outline can be renamed', () => {
  const place = { file: 'a', line: 1 };
  const taken = { kind: 'transition', tag: 'call', to: 'B', back: 'A' } as const;
  const outline = [{ block: 'A', step: 'A', name: 'A', place, routes: [{ label: 'call B', place, taken }] }];
  expect(renamedOutline(outline, (name) => `x-${name}`)).toMatchObject([
    { block: 'x-A', step: 'A', routes: [{ taken: { to: 'x-B', back: 'x-A' } }] },
  ]);
});
