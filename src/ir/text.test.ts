import { describe, expect, test } from 'vitest';

import { err, ok } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import type { Lookup, Text, ValueTemplate } from './text.ts';
import { fillString, fillText, fillValue, plainText, referencesIn, StoredOutput } from './text.ts';

const VALUES: Readonly<Record<string, Json | StoredOutput>> = {
  name: "it's",
  again: '{{name}}',
  list: [1, 'two'],
  map: { a: null },
  large: new StoredOutput({ file: 'steps/a/1/stdout', sha256: 'ab' }),
  forged: { $file: '../../secret', bytes: 1 },
};
const lookup: Lookup = (path) => {
  const value = VALUES[path.join('.')];
  return value === undefined ? err(`there is no ${path.join('.')}`) : ok(value);
};
const hole = (name: string, ...quote: readonly { readonly kind: 'bare' | 'comment' }[]): Text => ({
  parts: ['<', { path: [name], quote }, '>'],
});
const whole = (name: string): ValueTemplate => ({ kind: 'text', text: { parts: [{ path: [name], quote: [] }] } });

describe('a text is filled', () => {
  test('with strings unchanged, and other values as JSON', () => {
    expect(fillText(hole('name'), lookup)).toEqual(ok("<it's>"));
    expect(fillText(hole('list'), lookup)).toEqual(ok('<[1,"two"]>'));
    expect(fillText('plain', lookup)).toEqual(ok('plain'));
  });

  test('once: a filled value is never scanned again', () => {
    expect(fillText(hole('again'), lookup)).toEqual(ok('<{{name}}>'));
  });

  test('with each value quoted for its position', () => {
    expect(fillText(hole('name', { kind: 'bare' }), lookup)).toEqual(ok(String.raw`<'it'\''s'>`));
  });

  test('with large values left in files', () => {
    const piece = { file: 'steps/a/1/stdout', sha256: 'ab', quote: [{ kind: 'bare' }] };
    expect(fillText(hole('large', { kind: 'bare' }), lookup)).toEqual(ok(['<', piece, '>']));
    expect(fillString(hole('large'), lookup)).toMatchObject({ ok: false });
    expect(fillValue(whole('large'), lookup)).toMatchObject({ ok: false });
  });

  test('and data that looks like a file stays data', () => {
    expect(fillText(hole('forged'), lookup)).toEqual(ok('<{"$file":"../../secret","bytes":1}>'));
  });

  test('or fails with a reason', () => {
    expect(fillText(hole('nothing'), lookup)).toEqual(err('there is no nothing'));
    const split: Lookup = () => ok('two\nlines');
    expect(fillText(hole('name', { kind: 'comment' }), split)).toMatchObject({
      error: expect.stringMatching(/^\{\{name\}\}: /),
    });
  });
});

describe('a value is filled', () => {
  test('a reference that is the whole text keeps the type of its value', () => {
    expect(fillValue(whole('list'), lookup)).toEqual(ok([1, 'two']));
    expect(fillValue({ kind: 'text', text: hole('list') }, lookup)).toEqual(ok('<[1,"two"]>'));
  });

  test('at every depth', () => {
    const template: ValueTemplate = {
      kind: 'map',
      entries: { a: { kind: 'list', items: [whole('map'), { kind: 'literal', value: 1 }] }, b: whole('name') },
    };
    expect(fillValue(template, lookup)).toEqual(ok({ a: [{ a: null }, 1], b: "it's" }));
    expect(fillValue({ kind: 'list', items: [whole('nothing')] }, lookup)).toEqual(err('there is no nothing'));
    expect(fillValue({ kind: 'map', entries: { x: whole('nothing') } }, lookup)).toEqual(err('there is no nothing'));
  });
});

test('references are listed in order', () => {
  const text: Text = { parts: [{ path: ['a'], quote: [] }, ' ', { path: ['b', 'c'], quote: [] }] };
  expect(referencesIn(text).map(({ path }) => path)).toEqual([['a'], ['b', 'c']]);
  expect(referencesIn('{{a}}')).toEqual([]);
});

test('strings are unchanged, and other values are JSON', () => {
  expect([plainText('x'), plainText(1), plainText(null), plainText({ a: [true] })]).toEqual([
    'x',
    '1',
    'null',
    '{"a":[true]}',
  ]);
});
