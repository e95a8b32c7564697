// A step in a worktree: the cost of a snapshot before it and of detecting its changes.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Repository } from '../src/drivers/git/repository.ts';
import type { Worktree } from '../src/drivers/git/worktree.ts';
import type { Bench, Figure, Measurement, Target } from './measure.ts';
import {
  atMost,
  count,
  duration,
  environment,
  figure,
  interleaveWarm,
  median,
  ratios,
  timeProcess,
} from './measure.ts';

const FILES = 1_000;
const FILES_PER_FOLDER = 20;
const CHANGED = 20;
/** A process takes milliseconds, and they vary. */
const PER_ROUND = 10;

export const git: Measurement = {
  name: 'git',
  method:
    `A worktree of a repository of ${count(FILES)} files: a snapshot before a step (that after the previous step, or a new one), ` +
    'another after it, and the list of its changes, against one `git status` there; in a clean tree, and with ' +
    `${CHANGED} files that were changed before. The time of ${PER_ROUND} in a row. And a snapshot that must read all of those files.`,
  async measure(bench) {
    const worktree = await makeWorktree(bench);
    const figures = [await step(bench, worktree, 'a clean tree', atMost(2))];
    change(worktree, 'once');
    // Younger files are read again, because they might still change unnoticed.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    figures.push(await step(bench, worktree, `${CHANGED} changed files`, atMost(2)));
    figures.push(await freshSnapshot(bench, worktree));
    return figures;
  },
};

async function step(bench: Bench, worktree: Worktree, what: string, target: Target): Promise<Figure> {
  const samples = await interleaveWarm(bench.rounds, {
    meow: async () => {
      const began = performance.now();
      for (let n = 0; n < PER_ROUND; n += 1) {
        const before = await sure(worktree.snapshot('pre_step'));
        const after = await sure(worktree.snapshot('post_step'));
        await sure(worktree.changes(before, after));
      }
      return (performance.now() - began) / PER_ROUND;
    },
    git: () => timeStatus(bench, worktree),
  });
  return figure({
    what: `git: around a step, ${what}, against git status`,
    measured: duration(median(samples.meow)),
    against: duration(median(samples.git)),
    values: ratios(samples.meow, samples.git),
    unit: '×',
    target,
    samples,
  });
}

async function freshSnapshot(bench: Bench, worktree: Worktree): Promise<Figure> {
  let round = 0;
  const samples = await interleaveWarm(bench.rounds, {
    meow: async () => {
      change(worktree, `round ${round++}`);
      const began = performance.now();
      await sure(worktree.snapshot('pre_step'));
      return performance.now() - began;
    },
    git: () => timeStatus(bench, worktree),
  });
  return figure({
    what: `git: a snapshot of ${CHANGED} files just changed, against git status`,
    measured: duration(median(samples.meow)),
    against: duration(median(samples.git)),
    values: ratios(samples.meow, samples.git),
    unit: '×',
    samples,
  });
}

function timeStatus(bench: Bench, worktree: Worktree): number {
  let total = 0;
  for (let n = 0; n < PER_ROUND; n += 1) total += timeProcess('git', ['status'], worktree.path, { HOME: bench.folder });
  return total / PER_ROUND;
}

function change(worktree: Worktree, text: string): void {
  for (let n = 0; n < CHANGED; n += 1)
    writeFileSync(join(worktree.path, fileName(n * FILES_PER_FOLDER)), `${text} ${n}\n`);
}

async function makeWorktree(bench: Bench): Promise<Worktree> {
  const user = join(bench.folder, 'user');
  mkdirSync(user);
  for (let n = 0; n < FILES; n += 1) {
    if (n % FILES_PER_FOLDER === 0) mkdirSync(join(user, fileName(n), '..'), { recursive: true });
    writeFileSync(join(user, fileName(n)), `${'some words '.repeat(100)}${n}\n`);
  }
  const run = (...args: readonly string[]): number => timeProcess('git', args, user);
  run('init', '--quiet');
  run('add', '-A');
  run('-c', 'user.name=bench', '-c', 'user.email=bench@localhost', 'commit', '--quiet', '-m', 'base');
  // Git reads files that are as young as its index.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  const repository = await sure(Repository.open(user, environment(bench.folder)));
  const folder = { path: join(bench.folder, 'tree'), runFolder: join(bench.folder, 'run') };
  const worktree = await sure(repository.addWorktree({ run: 'bench', base: repository.head, ...folder }));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  timeProcess('git', ['update-index', '--refresh'], worktree.path);
  await sure(worktree.snapshot('post_step'));
  return worktree;
}

function fileName(n: number): string {
  return join(`folder-${Math.floor(n / FILES_PER_FOLDER)}`, `file-${n}.txt`);
}

async function sure<T>(
  result: Promise<{ ok: true; value: T } | { ok: false; error: { message: string } }>,
): Promise<T> {
  const answer = await result;
  if (answer.ok) return answer.value;
  throw new Error(answer.error.message);
}
