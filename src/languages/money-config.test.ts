import { expect, test } from 'vitest';

import { DEFAULT_CONFIG, readConfig } from './config.ts';

const problems = (text: string): readonly string[] =>
  readConfig({ file: 'config.toml', text }).diagnostics.map(
    ({ span, severity, message, hint }) => `${span.line}:${span.column} ${severity} ${message} (${hint ?? ''})`,
  );

test.each([
  ['[budget]\nday_usd = -1', '2:11 error "day_usd" must be above 0, got -1'],
  ['[budget]\noverrun = -1', '2:11 error "overrun" must be 0 or more, got -1'],
  ['[budget]\nreserve_usd = -0.5', '2:15 error "reserve_usd" must be 0 or more, got -0.5'],
  ['[budget]\nrun_usd = "5"', '2:11 error "run_usd" must be a number, got'],
  ['[budget]\nday_usd = 1\nweek_usd = 2', '3:1 warning'],
  ['[prices]\nclaude = { input = 1, output = 1 }', '2:1 error the price "claude" names no model'],
  ['[prices]\n"a/b" = { input = 1 }', '2:9 error the price of "a/b" has no "output"'],
  ['[prices]\n"a/b" = { input = -1, output = 1 }', '2:19 error "input" must be 0 or more, got -1'],
  ['[quiet]\nhours = "8-18"', '2:9 error "hours" must be two times, got "8-18"'],
  ['[quiet]\nhours = "08:00-18:00"\ntimezone = "Mars/Base"', '3:12 error there is no time zone "Mars/Base"'],
  ['[quiet]\ntimezone = "UTC"', '1:1 error [quiet] has no "hours"'],
  ['[notify]\nwebhook = "example.com"', '2:11 error "webhook" is not a URL: "example.com"'],
  ['[notify]\nwebhook = "ftp://example.com"', '2:11 error "webhook" has the scheme ftp, not http or https'],
  ['[notify]\nwebhook = { url = "http://169.254.169.254/" }', '2:19 error "url" leads to a link-local address'],
  ['[notify]\nwebhook = { format = "json" }', '2:11 error webhook has no "url"'],
  ['[notify]\nwebhook = { url = "$U", secret = "plain" }', '2:34 error "secret" must name an environment variable'],
  ['[notify]\non = ["gates"]', '2:7 error'],
])('%s is refused with its place', (text, expected) => {
  const [first = ''] = problems(text);
  expect(first).toContain(expected);
  expect(first).toMatch(/\(.+\)$/);
});

test('budgets of the user and of the project both hold', () => {
  const user = readConfig({ file: 'u', scope: 'user', text: '[budget]\nday_usd = 5' });
  const both = readConfig({ file: 'p', text: '[budget]\nday_usd = 3', base: user.config ?? DEFAULT_CONFIG });
  expect(both.config?.money.budgets).toMatchObject([
    { scope: 'user', dayUsd: 5, runUsd: null, reserveUsd: 0.5, overrun: 0.5 },
    { scope: 'project', dayUsd: 3 },
  ]);
});
