import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KEEP_SEGMENTS, segmentsOf } from './transcript-segments.ts';

test('of a long output the beginning and the end are kept, each byte at its offset', () => {
  const folder = mkdtempSync(join(tmpdir(), 'meow-segments-'));
  try {
    const transcript = join(folder, 'transcript');
    const printed = randomBytes(100_000_000);
    execFileSync('sh', ['-c', KEEP_SEGMENTS, 'sh', transcript], { input: printed });
    const parts = segmentsOf(transcript);
    for (const { path, at, size } of parts) {
      expect(readFileSync(path).equals(printed.subarray(at, at + size))).toBe(true);
    }
    const [first, ...last] = parts;
    expect(first?.at).toBe(0);
    expect(last.length).toBeLessThanOrEqual(3);
    expect(last.at(-1)).toMatchObject({ size: printed.length - (last.at(-1)?.at ?? 0) });
    expect(parts.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(printed.length);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
