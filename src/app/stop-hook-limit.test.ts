import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nextNudge } from './stop-hook-limit.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'meow-nudges-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('an agent that stops without having reported', () => {
  test('is told at once at first, then later and later, and in the end not any more', () => {
    const pauses = Array.from({ length: 101 }, () => nextNudge(join(folder, 'hooks'), 'a'));
    expect(pauses.slice(0, 12)).toEqual([0, 0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 45_000]);
    expect(pauses.slice(99)).toEqual([45_000, null]);
  });

  test('is told at once again when it is at another step', () => {
    for (let times = 0; times < 8; times += 1) nextNudge(join(folder, 'hooks'), 'a');
    expect(nextNudge(join(folder, 'hooks'), 'b')).toBe(0);
    expect(nextNudge(join(folder, 'hooks'), 'a')).toBe(0);
  });

  test('is told where nothing can be counted', () => {
    expect(nextNudge(null, 'a')).toBe(0);
    expect(nextNudge(join(folder, 'none', 'hooks'), 'a')).toBe(0);
  });
});
