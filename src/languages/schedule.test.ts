import { expect, test } from 'vitest';

import { readSchedule } from './schedule.ts';

function read(text: string): ReturnType<typeof readSchedule> {
  return readSchedule({
    file: 's.toml',
    text,
    zoneProblem: (zone) => (zone === 'Mars' ? 'there is no time zone "Mars"' : null),
    cronProblem: (cron) => (cron === 'never' ? 'it never comes' : null),
  });
}

/** `line: code` of every problem. */
function problems(text: string): readonly string[] {
  return read(text).diagnostics.map(({ span, code }) => `${span.line}: ${code}`);
}

test('a schedule with a cron line', () => {
  const text = `cron = "0 3 * * *"\ntimezone = "UTC"\npath = "w.meow.toml"\nargs = ["--budget-usd", "5"]\noverlap = "queue"
missed = "skip"\njitter = "30s"\npaused = true\n[variables]\nx = 1\n`;
  expect(read(text)).toEqual({
    schedule: {
      when: { kind: 'cron', cron: '0 3 * * *', timezone: 'UTC' },
      path: 'w.meow.toml',
      variables: { x: 1 },
      args: ['--budget-usd', '5'],
      overlap: 'queue',
      missed: 'skip',
      jitterMs: 30_000,
      paused: true,
    },
    diagnostics: [],
  });
});

test('triggers have defaults', () => {
  expect(read('path = "w"\n[trigger]\nwatch = ["src/**"]').schedule?.when).toEqual({
    kind: 'watch',
    globs: ['src/**'],
    settleMs: 2_000,
  });
  expect(read('path = "w"\n[trigger]\nhook = "deploy"\nsecret = "$S"\nrate = "5/s"').schedule?.when).toEqual({
    kind: 'hook',
    hook: 'deploy',
    secret: '$S',
    body: 'body',
    rate: { count: 5, perMs: 1_000 },
  });
});

test.each([
  ['no path', 'cron = "0 3 * * *"', ['1: missing-key']],
  ['neither cron nor trigger', 'path = "w"', ['1: missing-key']],
  ['both', 'path = "w"\ncron = "x"\n[trigger]\nwatch = ["a"]', ['3: conflicting-keys']],
  ['a line that never comes', 'path = "w"\ncron = "never"', ['2: invalid-cron']],
  ['an unknown time zone', 'path = "w"\ncron = "x"\ntimezone = "Mars"', ['3: unknown-timezone']],
  ['a hook without a secret', 'path = "w"\n[trigger]\nhook = "a"', ['2: missing-key']],
  ['a hook with a wrong name', 'path = "w"\n[trigger]\nhook = "A B"\nsecret = "$S"', ['3: invalid-value']],
  ['a wrong rate', 'path = "w"\n[trigger]\nhook = "a"\nsecret = "$S"\nrate = "many"', ['5: invalid-value']],
  ['overlap of a hook', 'path = "w"\noverlap = "skip"\n[trigger]\nhook = "a"\nsecret = "$S"', ['2: conflicting-keys']],
  ['hook and watch', 'path = "w"\n[trigger]\nhook = "a"\nwatch = ["b"]', ['2: conflicting-keys']],
  ['nothing to watch', 'path = "w"\n[trigger]\nwatch = []', ['3: invalid-value']],
  ['an unknown key', 'path = "w"\ncron = "x"\ncorn = "y"', ['3: unknown-key']],
  ['an unknown overlap', 'path = "w"\ncron = "x"\noverlap = "maybe"', ['3: invalid-value']],
])('%s is refused with its place', (_, text, expected) => {
  const { schedule } = read(text);
  expect(schedule).toBe(null);
  expect(problems(text)).toEqual(expected);
});
