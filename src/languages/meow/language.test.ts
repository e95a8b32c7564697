import { describe, expect, test } from 'vitest';

import { createSearch } from './language.ts';

const expand = (template: string, rest = ''): string =>
  `[[main.steps]]\nid = "s"\nexecutor = "expand"\ntemplate = "${template}"\n${rest}\n`;

function wanted(text: string, given: Readonly<Record<string, string>> = {}): readonly string[] {
  return createSearch(given)
    .add({ file: 'a', text })
    .map(({ name }) => name);
}

describe('a file is wanted', () => {
  test('where a reference names it, each once', () => {
    expect(wanted(expand('lib/x#a') + expand('lib/x#b') + expand('./y') + expand('z'))).toEqual(['lib/x', './y', 'z']);
  });

  test('not where a workflow of the same file is meant', () => {
    expect(wanted(`${expand('.own')}${expand('own')}${expand('main')}${expand('#far')}[own]\nsteps = []\n`)).toEqual(
      [],
    );
  });

  test('by a branch, a recovery, a foreach, and by steps inline', () => {
    const text = `[[main.steps]]
id = "a"
executor = "branch"
condition = "true"
on_error = "r#x"
on_true = { template = "t" }
on_false = { inline = [{ id = "b", on_timeout = { template = "deep" }, on_error = "continue" }] }
[[main.steps]]
id = "c"
executor = "foreach"
template = "each"
`;
    expect(wanted(text).toSorted()).toEqual(['deep', 'each', 'r', 't']);
  });

  test('by what a variable is given, has as its default, or is handed', () => {
    const text = `[main.variables]\nkind = "default#x"\n${expand('{{kind}}')}${expand('.main', 'variables = { kind = "handed" }')}`;
    expect(wanted(text, { kind: 'given' }).toSorted()).toEqual(['default', 'given', 'handed']);
  });

  test('by variables that stand for others, and parts of values', () => {
    const text = `[main.variables]\none = "{{two}}"\ntwo = { default = { file = "lib/deep", other = 3 } }\n${expand('{{one.file}}#{{name}}')}`;
    expect(wanted(text, { name: 'x' })).toEqual(['lib/deep']);
  });

  test('by the items of a list that is written out', () => {
    const text = '[[main.steps]]\nid = "a"\nexecutor = "foreach"\nitems = ["x", "y"]\ntemplate = "lib/{{item}}"\n';
    expect(wanted(text)).toEqual(['lib/x', 'lib/y']);
  });
});

test('a value is looked for from the file that uses it, and from the one that it is written in', () => {
  const search = createSearch({});
  expect(search.add({ file: 'a', text: expand('b#run', 'variables = { kind = "tools" }') })).toEqual([
    { from: 'a', name: 'b' },
  ]);
  expect(search.add({ file: 'b', text: `[run]\n${expand('{{kind}}').replaceAll('main', 'run')}` })).toEqual([
    { from: 'b', name: 'tools' },
    { from: 'a', name: 'tools' },
  ]);
});

test('variables that stand for each other come to an end', () => {
  const text = `[main.variables]\na = "{{b.x}}"\nb = "{{a.y}}"\n${expand('{{a}}')}`;
  expect(wanted(text)).toEqual([]);
});

test('a file that is no TOML wants nothing', () => {
  expect(wanted('[main')).toEqual([]);
});
