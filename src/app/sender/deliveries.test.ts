import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

import { Deliveries, GIVE_UP_MS, retryDelayMs } from './deliveries.ts';

const folder = mkdtempSync(join(tmpdir(), 'meow-deliveries-'));
afterAll(() => rmSync(folder, { recursive: true }));

const MESSAGE = { id: 'm', kind: 'gate' };

test('retries wait 1, 2, 4 … seconds, and ten minutes at most', () => {
  expect([1, 2, 3, 9, 10, 11, 200].map(retryDelayMs)).toEqual([
    1_000, 2_000, 4_000, 256_000, 512_000, 600_000, 600_000,
  ]);
});

test('a receiver that is down for an hour gets the message when it is back, wherever the sender was killed', () => {
  const path = join(folder, 'hour');
  const backAt = 3_600_000;
  let now = 0;
  let attempts = 0;
  for (;;) {
    // Each attempt by another sender, which knows what the file says.
    const deliveries = new Deliveries(path);
    const due = deliveries.dueAt('m', 'webhook', now);
    if (due === null) break;
    now = Math.max(now, due);
    attempts += 1;
    deliveries.note(MESSAGE, 'webhook', now >= backAt ? null : 'down', now);
    // A line that was cut off does not hide the next one.
    if (attempts === 3) appendFileSync(path, '{"id":"m","chan');
  }
  expect(now).toBeLessThan(backAt + 600_000);
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ status: 'sent', attempt: attempts, error: null });
});

test('after a day it is given up, and the other channels are not', () => {
  const deliveries = new Deliveries(join(folder, 'day'));
  let now = 0;
  let attempts = 0;
  for (let due: number | null = 0; due !== null; due = deliveries.dueAt('m', 'webhook', now)) {
    now = Math.max(now, due);
    attempts += 1;
    deliveries.note(MESSAGE, 'webhook', 'down', now);
  }
  expect(now).toBeGreaterThanOrEqual(GIVE_UP_MS);
  expect(now).toBeLessThan(GIVE_UP_MS + 600_000);
  expect(attempts).toBeLessThan(200);
  expect(deliveries.dueAt('m', 'command', now)).toBe(now);
});
