import { expect, test } from 'vitest';

import { interpolate } from './context.ts';
import { asGlob } from './globs.ts';

const PLACES = { run_id: 'wf-1', run_dir: '/p/.meow/run/wf-1', worktree: '/w', step_id: 'check' };

test('every name stands for its value, as often as it is written', () => {
  const text = '${run_id} ${run_dir}/${step_id}/${step_id} ${worktree}';
  expect(interpolate(text, PLACES)).toEqual({ ok: true, value: 'wf-1 /p/.meow/run/wf-1/check/check /w' });
});

test('what is no name in braces stays as it is', () => {
  const text = '$HOME $$ {a,b} $(x) } $';
  expect(interpolate(text, PLACES)).toEqual({ ok: true, value: text });
});

test('what a value holds is not looked at again', () => {
  expect(interpolate('${run_dir}', { ...PLACES, run_dir: '${run_id}' })).toEqual({ ok: true, value: '${run_id}' });
});

test('a value can be written so that it is no pattern', () => {
  const written = interpolate('${run_dir}/*', { ...PLACES, run_dir: '/a[1]' }, asGlob);
  expect(written).toEqual({ ok: true, value: String.raw`/a\[1\]/*` });
});

test.for([
  ['${run_dri}', '${run_dri} is not a known placeholder; did you mean ${run_dir}?'],
  ['${constructor}', '${constructor} is not a known placeholder; there are run_id, run_dir, worktree, step_id'],
  ['${}', '${} is not a known placeholder; there are run_id, run_dir, worktree, step_id'],
  ['a ${run_id', '${ is not closed in "a ${run_id"'],
])('%s is refused', ([text = '', message]) => {
  expect(interpolate(text, PLACES)).toEqual({ ok: false, error: message });
});
