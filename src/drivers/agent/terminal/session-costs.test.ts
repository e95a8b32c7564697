import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

import { SessionCosts } from './session-costs.ts';

const folder = mkdtempSync(join(tmpdir(), 'meow-session-costs-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('each prompt has used what was added to the session after it, also for a later engine', () => {
  const file = join(folder, 'session.jsonl');
  const work = (id: string, output: number): void =>
    appendFileSync(
      file,
      `${JSON.stringify({ message: { id, usage: { input_tokens: 100, output_tokens: output } } })}\n`,
    );
  // A session that was resumed has used something before.
  work('old', 1);
  const costs = new SessionCosts(folder);
  costs.begin('p1', file);
  work('m1', 10);
  work('m2', 20);
  // Delivered again: what it has used before counts.
  costs.begin('p1', file);
  expect(costs.usedBy('p1', file)).toMatchObject({ usd: null, tokens: 230 });
  costs.begin('p2', file);
  work('m3', 5);
  const later = new SessionCosts(folder);
  expect(later.usedBy('p2', file).tokens).toBe(105);
  expect(later.usedBy('p2', file).tokens).toBe(105);
});

test('without a file, after a change of the session, and for an unknown prompt it is unknown', () => {
  const costs = new SessionCosts(folder);
  costs.begin('p3', join(folder, 'none.jsonl'));
  const unknown = { usd: null, tokens: null };
  expect(costs.usedBy('p3', join(folder, 'none.jsonl'))).toEqual(unknown);
  expect(costs.usedBy('p3', join(folder, 'other.jsonl'))).toEqual(unknown);
  expect(costs.usedBy('p3', null)).toEqual(unknown);
  expect(costs.usedBy('p4', join(folder, 'session.jsonl'))).toEqual(unknown);
});
