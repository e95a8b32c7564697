import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';

import { runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { localRunFiles } from '../stores/local-run-files.ts';
import type { Adapters } from './adapters.ts';
import { attemptOutput, ConvertedTexts } from './output-streams.ts';

const SECRET = 'ghp_0123456789abcdefghijABCDEFGHIJ012345';

test('a range has the bytes of its place, and stars for a secret that it contains only a part of', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'output-'));
  vi.stubEnv('HOME', folder);
  try {
    const text = `${'é'.repeat(5_000)} ${SECRET} end`;
    mkdirSync(join(folder, 'steps'));
    writeFileSync(join(folder, 'steps/a.1.stdout'), text);
    const { state, records } = runKernel('a');
    // A command has no events.
    const adapters = (): Adapters => ({ find: () => null }) as unknown as Adapters;
    const run = { id: 'r', state, records };
    const more = { adapters, converted: new ConvertedTexts() };
    const { streams } = await attemptOutput(localRunFiles(folder), run, { step: 'a', attempt: 1 }, more);
    const stdout = streams.find(({ stream }) => stream === 'stdout');
    const read = async (from: number, length: number): Promise<string> => {
      const pieces: Uint8Array[] = [];
      for await (const { bytes } of stdout?.read(from, length) ?? []) pieces.push(bytes);
      return Buffer.concat(pieces).toString();
    };
    expect(stdout?.size).toBe(Buffer.byteLength(text));
    const at = 10_001;
    expect(await read(at - 3, 3)).toBe('é ');
    expect(await read(0, 20_000)).toBe(text.replace(SECRET, '*'.repeat(SECRET.length)));
    expect(await read(at + 10, 5)).toBe('*****');
    expect(await read(at + SECRET.length - 2, 6)).toBe('** end');
  } finally {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  }
});
