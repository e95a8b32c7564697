// The time of the file system for the files of a step. On most it is negligible. Some take milliseconds for
// minutes after many files were deleted (ext4 without a journal). Then the figures of everything that runs commands
// mean little, and this one shows it.

import { closeSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { atMost, count, type Figure, figure } from './measure.ts';
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
    for (const file of FILES) closeSync(openSync(join(root, `${stepId(index)}.1.${file}`), 'a'));
  }
  return performance.now() - began;
}

/** Files and folders that a run has left, for each of its steps or turns. */
export function inodesOf(
  run: string,
  { what, steps, target }: { readonly what: string; readonly steps: number; readonly target: number },
): Figure {
  const left = readdirSync(run, { recursive: true }).length;
  return figure({
    what: `inodes: ${what}`,
    measured: `${count(left)} of ${count(steps)}`,
    against: '',
    values: [left / steps],
    unit: 'inodes',
    target: atMost(target),
    samples: { left: [left] },
  });
}

/** Creates and deletes this many files in the folder. */
export function deleteFiles(folder: string, count: number): void {
  const root = join(folder, 'deleted');
  mkdirSync(root);
  for (let index = 0; index < count; index++) closeSync(openSync(join(root, `${index}`), 'a'));
  rmSync(root, { recursive: true });
}
