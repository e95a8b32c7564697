// What the file system takes for the folders and files that a step leaves. On most it is next to nothing. Some take
// milliseconds while many files were deleted a short time ago (ext4 without a journal, for minutes): then the figures of
// everything that runs commands are worth little, and this one tells.

import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { stepId } from './workflow.ts';

const FILES = ['stdout', 'stderr', 'status'];
let calls = 0;

/** For so many steps, in milliseconds. */
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
