// The time of the file system for the folders and files of a step. On most it is negligible. Some take milliseconds for
// minutes after many files were deleted (ext4 without a journal). Then the figures of everything that runs commands
// mean little, and this one shows it.

import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { stepId } from './workflow.ts';

const FILES = ['stdout', 'stderr', 'status'];
let calls = 0;

/** For this many steps, in milliseconds. */
export function timeStepFiles(folder: string, steps: number): number {
  calls += 1;
  const root = join(folder, `step-files-${calls}`);
  mkdirSync(root);
  const began = performance.now();
  for (let index = 0; index < steps; index++) {
    const attempt = join(root, stepId(index), '1');
    mkdirSync(join(root, stepId(index)));
    mkdirSync(attempt);
    for (const file of FILES) closeSync(openSync(join(attempt, file), 'a'));
  }
  return performance.now() - began;
}
