// Memory of a simulated agent between starts, in a file that may be absent.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Memory } from './rules.ts';
import { NOTHING_REMEMBERED } from './rules.ts';

export function writeMemory(path: string, memory: Memory): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(memory)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function readMemory(path: string): Memory {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Memory;
  } catch (error) {
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    // The file may be truncated by a machine crash.
    if (isAbsent || error instanceof SyntaxError) return NOTHING_REMEMBERED;
    throw error;
  }
}
