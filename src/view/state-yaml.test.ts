import { expect, test } from 'vitest';
import fc from 'fast-check';

import { parseProgram } from '../../test/kernel-rig/program-text.ts';
import { bad, ok, runKernel, START, START_TIME } from '../../test/kernel-rig/run-kernel.ts';
import type { JsonMap } from '../base/json.ts';
import { type Program, UNLIMITED } from '../ir/program.ts';
import { decide } from '../kernel/decide.ts';
import type { Input } from '../kernel/input.ts';
import { initialState } from '../kernel/state.ts';
import { changedSteps, StateYaml } from './state-yaml.ts';

test('the file has the documented form', () => {
  const { state } = runKernel(
    'e each [1] sub\nlast needs e agent w1\nblock sub\na',
    ok('e.0.a#1', { ticket: 'PROJ-1', more: true }),
  );
  expect(new StateYaml(state).text().split('\n').slice(1)).toEqual([
    'id: wf-1',
    'template: trace',
    'language: meow',
    'status: running',
    'started_at: 2026-01-08T21:00:00.000Z',
    'counts: {"pending": 0, "running": 1, "done": 2, "failed": 0, "skipped": 0}',
    'vars:',
    '  who: ann',
    'meta:',
    '  ticket: T-1',
    'agents:',
    '  w1:',
    '    status: active',
    '    current_step: last',
    'steps:',
    '  e:',
    '    executor: shell',
    '    status: done',
    '    attempt: 1',
    '    started_at: 2026-01-08T21:00:00.000Z',
    '    finished_at: 2026-01-08T21:00:01.000Z',
    '    expanded_into: ["e.0"]',
    '  last:',
    '    executor: shell',
    '    agent: w1',
    '    status: running',
    '    attempt: 1',
    '    needs: ["e"]',
    '    started_at: 2026-01-08T21:00:01.000Z',
    '  e.0.a:',
    '    executor: shell',
    '    status: done',
    '    attempt: 1',
    '    expanded_from: e',
    '    started_at: 2026-01-08T21:00:00.000Z',
    '    finished_at: 2026-01-08T21:00:01.000Z',
    '    outputs:',
    '      ticket: PROJ-1',
    '      more: true',
    '',
  ]);
});

test('a cleanup script stays readable if that is safe', () => {
  const { state } = runKernel('a');
  const command = {
    kind: 'command',
    cwd: null,
    env: {},
    captures: [],
    verdict: 'success',
    errors: [],
    steering: null,
  } as const;
  const holes = { parts: ['git worktree remove ', { path: ['who'], quote: [] }, '\n\n  true\n'] };
  const program: Program = {
    ...state.program,
    cleanup: { success: { ...command, script: holes }, failure: { ...command, script: ' \t\r\n' }, stop: null },
  };
  const text = new StateYaml({ ...state, program }).text();
  expect(text).toContain(
    'cleanup_on_success: |\n  git worktree remove {{who}}\n\n    true\ncleanup_on_failure: " \\t\\r\\n"\n',
  );
});

test.each([
  '',
  'a',
  'true',
  'No',
  'null',
  '~',
  '1',
  '-',
  '- a',
  'a: b',
  'a #b',
  '"',
  "'",
  '{',
  '\\',
  'a\nb',
  'a\u0007\u0085\u2028\ufeff',
  '🐈',
  '\u007f',
  ' a',
  '2026-01-08',
])('the string %j is read back as it is, as a value and as a name', (text) => {
  expect(readBack({ [text]: text })).toEqual({ [text]: text });
});

test('any data is read back unchanged', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), (data) => {
      const value = JSON.parse(JSON.stringify(data)) as JsonMap;
      expect(readBack(value)).toEqual(value);
    }),
  );
});

test('a name may be longer than a YAML key on one line', () => {
  for (const name of ['x'.repeat(2_000), ' '.repeat(2_000)]) expect(readBack({ [name]: 1 })).toEqual({ [name]: 1 });
});

test('half a surrogate pair is replaced', () => {
  expect(readBack({ a: 'x\ud800y' })).toEqual({ a: 'x\ufffdy' });
});

test('after any changes the cached text equals a fresh one', () => {
  const program = Array.from({ length: 200 }, (_, index) =>
    index < 3 ? `s${index}` : `s${index} needs s${index - 3} retry 2`,
  );
  const state = initialState(
    parseProgram([
      ...program,
      'e each [1,2,3] sub needs s10 width 1',
      'block sub',
      'a on_error recover:fix',
      'block fix',
      'm',
    ]),
  );
  const yaml = new StateYaml(state);
  const take = (input: Input, at: number): void => {
    const decisions = decide(state, input, at);
    yaml.invalidate(changedSteps([{ seq: 1, at, input, decisions }]));
    expect(yaml.text()).toBe(new StateYaml(state).text());
  };
  take(START, START_TIME);
  for (let turn = 1; turn < 150; turn++) {
    const [effect, step] = [...state.inFlight][turn % state.inFlight.size] ?? [];
    if (effect === undefined || step === undefined) break;
    const fails =
      turn % 4 === 0 && (step.definition.id === 'a' || (step.definition.retry.attemptsMax > 1 && step.failures === 0));
    take(fails ? bad(effect) : ok(effect, { turn }), START_TIME + turn);
    for (const timer of state.timers.keys()) take({ kind: 'deadline-passed', timer }, START_TIME + turn);
  }
  take({ kind: 'stop-requested', by: 'ann', force: false }, START_TIME + 1_000);
  for (const effect of state.inFlight.keys()) take(bad(effect, 'stopped'), START_TIME + 1_001);
  expect(state.phase).toBe('ended');
});

/** The variables of a run that was started with these, as its text has them. */
function readBack(variables: JsonMap): unknown {
  const state = initialState(parseProgram(['a']));
  const request = { id: 'wf-1', mark: 'm', variables, meta: {}, cwd: '/', allowOutside: false, allowance: UNLIMITED };
  decide(state, { kind: 'run-requested', request, programHash: 'hash' }, START_TIME);
  const read = readYaml(new StateYaml(state).text());
  return (read as { vars: unknown }).vars;
}

/** A strict reader of the little YAML that is written: block maps, bare words, JSON. */
function readYaml(text: string): unknown {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const map = (indent: string): unknown => {
    const entries: [string, unknown][] = [];
    for (;;) {
      const line = lines[0];
      if (line === undefined || !line.startsWith(indent) || line[indent.length] === ' ') break;
      lines.shift();
      let rest = line.slice(indent.length);
      let name: string;
      if (rest.startsWith('? ')) {
        name = scalar(rest.slice(2)) as string;
        rest = lines.shift()?.slice(indent.length + 1) ?? '';
      } else {
        const [, written = ''] = /^("(?:[^"\\]|\\.)*"|[A-Za-z_][\w./#-]*):/.exec(rest) ?? [];
        expect(written).not.toBe('');
        expect(written.length).toBeLessThanOrEqual(1_024);
        name = written.startsWith('"') ? (JSON.parse(written) as string) : written;
        rest = rest.slice(written.length + 1);
      }
      entries.push([name, rest === '' ? map(`${indent}  `) : scalar(rest.slice(1))]);
    }
    return Object.fromEntries(entries);
  };
  const read = map('');
  expect(lines).toEqual([]);
  return read;
}

function scalar(text: string): unknown {
  // eslint-disable-next-line no-control-regex -- what YAML allows nowhere unescaped
  expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/);
  const word = /^[A-Za-z_][\w./#-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return word || /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? text : (JSON.parse(text) as unknown);
}
