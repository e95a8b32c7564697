// Memory of a simulated agent between starts, in a file that may be absent.

import { readJsonFile, writeJsonFile } from '../sys/json-file.ts';
import type { Memory } from './rules.ts';
import { NOTHING_REMEMBERED } from './rules.ts';

export function writeMemory(path: string, memory: Memory): void {
  writeJsonFile(path, memory);
}

export function readMemory(path: string): Memory {
  return (readJsonFile(path) as Memory | null) ?? NOTHING_REMEMBERED;
}
