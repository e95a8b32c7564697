import { expect, test } from 'vitest';

import { DEFAULT_CONFIG, readConfig } from './config.ts';

const problems = (text: string): readonly string[] =>
  readConfig({ file: 'config.toml', text }).diagnostics.map(
    ({ span, severity, message, hint }) => `${span.line}:${span.column} ${severity} ${message} (${hint ?? ''})`,
  );

test.each([
  ['[budget]\nday_usd = -1', '2:11 error "day_usd" must be above 0, got -1'],
  ['[budget]\nreserve_usd = -0.5', '2:15 error "reserve_usd" must be 0 or more, got -0.5'],
  ['[budget]\nrun_usd = "5"', '2:11 error "run_usd" must be a number, got'],
  ['[budget]\nday_usd = 1\nweek_usd = 2', '3:1 warning'],
])('%s is refused with its place', (text, expected) => {
  const [first = ''] = problems(text);
  expect(first).toContain(expected);
  expect(first).toMatch(/\(.+\)$/);
});

test('budgets of the user and of the project both hold', () => {
  const user = readConfig({ file: 'u', scope: 'user', text: '[budget]\nday_usd = 5' });
  const both = readConfig({ file: 'p', text: '[budget]\nday_usd = 3', base: user.config ?? DEFAULT_CONFIG });
  expect(both.config?.money.budgets).toMatchObject([
    { scope: 'user', dayUsd: 5, runUsd: null, reserveUsd: 0.5 },
    { scope: 'project', dayUsd: 3 },
  ]);
});
