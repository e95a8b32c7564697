import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

import { AccountLimits, accountOf, evenPlace } from './account-limits.ts';

const folder = mkdtempSync(join(tmpdir(), 'meow-limits-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('the longest limit of an account applies to all until it is over', () => {
  const limits = new AccountLimits(folder, 60_000);
  expect(limits.of('sim a', 0)).toBe(null);
  limits.report('sim a', { until: 5_000, reportedBy: 'r1' }, 0);
  limits.report('sim a', { until: 9_000, reportedBy: 'r2' }, 0);
  limits.report('sim a', { until: 7_000, reportedBy: 'r3' }, 0);
  expect(new AccountLimits(folder, 0).of('sim a', 8_999)).toEqual({ until: 9_000, reportedBy: 'r2' });
  expect(limits.of('sim a', 9_000)).toBe(null);
  expect(limits.of('sim b', 0)).toBe(null);
});

test('those who wait start at even distances from the reset on, in whatever process', () => {
  const slots = Array.from({ length: 8 }, () => new AccountLimits(folder, 80).slot('sim c', 1_000, 0));
  expect(slots.toSorted((a, b) => a - b)).toEqual([1000, 1010, 1020, 1030, 1040, 1050, 1060, 1070]);
  expect(slots[0]).toBe(1_000);
  // The next limit begins anew.
  expect(new AccountLimits(folder, 80).slot('sim c', 9_000, 5_000)).toBe(9_000);
});

test('the places are even for any number that waits', () => {
  for (const count of [2, 3, 5, 16, 33]) {
    const places = Array.from({ length: count }, (_, index) => evenPlace(index)).toSorted((a, b) => a - b);
    const gaps = [...places, 1].slice(1).map((place, index) => place - (places[index] ?? 0));
    expect(Math.max(...gaps) / Math.min(...gaps)).toBeLessThanOrEqual(2);
  }
});

test('an account is an adapter and its credential', () => {
  const account = accountOf('claude', { HOME: '/h', ANTHROPIC_API_KEY: 'k1', GITHUB_TOKEN: 'x' });
  expect(account).toMatch(/^claude [0-9a-f]{8}$/);
  expect(accountOf('claude', { HOME: '/h', ANTHROPIC_API_KEY: 'k1', GITHUB_TOKEN: 'y', PATH: '/' })).toBe(account);
  expect(accountOf('claude', { HOME: '/h', ANTHROPIC_API_KEY: 'k2' })).not.toBe(account);
  expect(accountOf('codex', { HOME: '/h', ANTHROPIC_API_KEY: 'k1' })).not.toBe(account);
});
