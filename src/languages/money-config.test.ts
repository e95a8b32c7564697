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
  ['[prices]\ncodex = { input = 1, output = 2 }', '2:1 error the price "codex" names no model'],
  ['[prices]\n"codex/gpt" = { input = 1 }', '2:15 error the price "codex/gpt" has no output'],
  ['[quiet]\nhours = "8-18"', '2:9 error "hours" must be two different times of the day, got "8-18"'],
  ['[quiet]\nhours = "08:00-25:00"', '2:9 error "hours" must be'],
  ['[quiet]\nhours = "08:00-08:00"', '2:9 error "hours" must be'],
  ['[quiet]\nhours = "08:00-18:00"\ntimezone = "Mars/Olympus"', '3:12 error there is no time zone "Mars/Olympus"'],
  ['[quiet]\ntimezone = "UTC"', '1:1 error [quiet] has no hours'],
  ['[accounts]\nspread = "soon"', '2:10 error "spread" must be a duration'],
])('%s is refused with its place', (text, expected) => {
  const [first = ''] = problems(text);
  expect(first).toContain(expected);
  expect(first).toMatch(/\(.+\)$/);
});

test('budgets of the user and of the project both hold; everything else of the project wins', () => {
  const user = readConfig({ file: 'u', scope: 'user', text: '[budget]\nday_usd = 5\n[accounts]\nspread = "9s"' });
  const both = readConfig({
    file: 'p',
    text: '[budget]\nday_usd = 3\n[accounts]\nspread = "1s"\n[quiet]\nhours = "00:00-24:00"',
    base: user.config ?? DEFAULT_CONFIG,
  });
  expect(both.config?.money.budgets).toMatchObject([
    { scope: 'user', dayUsd: 5, runUsd: null, reserveUsd: 0.5, overrun: 0.5 },
    { scope: 'project', dayUsd: 3 },
  ]);
  expect(both.config?.money).toMatchObject({ spreadMs: 1_000, quiet: { from: 0, to: 1440, timezone: null } });
});
