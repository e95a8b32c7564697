// Shared parts of measurements: figures, interleaved samples, and timed children.
//
//   M1  A subject and its baseline are measured alternately, in one run. The ratio of two neighbours in time is kept,
//       not the ratio of two averages: a machine that is busy for a while is busy for both.
//   M2  The figure is the median of the rounds; the best round is shown next to it.
//   M3  Every child gets the same small environment: PATH and HOME. Nothing of the caller's configuration reaches it.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

export interface Measurement {
  readonly name: string;
  /** The method, for readers of the results. */
  readonly method: string;
  measure(bench: Bench): Promise<readonly Figure[]>;
}

export interface Bench {
  readonly rounds: number;
  /**
   * Empty, and only for this measurement. It is deleted after the last one: deleting many files slows some disks down.
   */
  readonly folder: string;
}

export type Unit = '×' | '/s' | 's' | 'ms' | 'MB' | 'KB' | '%' | 'inodes' | 'rows' | 'processes';

export interface Figure {
  readonly what: string;
  /** The subject and the baseline, for people. */
  readonly measured: string;
  readonly against: string;
  readonly value: number;
  /** Best of all rounds. */
  readonly best: number;
  readonly unit: Unit;
  readonly target: Target | null;
  /** Raw samples, in milliseconds unless their name says otherwise. */
  readonly samples: Readonly<Record<string, readonly number[]>>;
}

export interface Target {
  readonly kind: 'at-most' | 'at-least';
  readonly value: number;
}

export function atMost(value: number): Target {
  return { kind: 'at-most', value };
}

export function atLeast(value: number): Target {
  return { kind: 'at-least', value };
}

export const ROOT = join(import.meta.dirname, '..');
export const MEOW = join(ROOT, 'bin', 'meow');

/** Takes one sample of each side in every round, in alternating order. */
export async function interleave<Side extends string>(
  rounds: number,
  sides: Readonly<Record<Side, () => number | Promise<number>>>,
): Promise<Record<Side, number[]>> {
  const names = Object.keys(sides) as Side[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Side, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) samples[name].push(await sides[name]());
  }
  return samples;
}

/** Like `interleave`, after a warm-up round that is not counted: caches are filled, code is compiled. */
export async function interleaveWarm<Side extends string>(
  rounds: number,
  sides: Readonly<Record<Side, () => number | Promise<number>>>,
): Promise<Record<Side, number[]>> {
  await interleave(1, sides);
  return interleave(rounds, sides);
}

/** Round by round. */
export function ratios(of: readonly number[], to: readonly number[]): number[] {
  return of.map((value, round) => value / (to[round] ?? Number.NaN));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The figure of several rounds with one value each. */
export function figure(
  parts: Omit<Figure, 'value' | 'best' | 'target'> & { readonly values: readonly number[]; readonly target?: Target },
): Figure {
  const { values, target = null, ...rest } = parts;
  const moreIsBetter = target === null ? rest.unit === '/s' : target.kind === 'at-least';
  const best = moreIsBetter ? Math.max(...values) : Math.min(...values);
  return { ...rest, target, value: median(values), best };
}

/**
 * The time of the process from its start to its exit, in milliseconds. It must exit with 0. `more`: additional
 * environment variables.
 */
export function timeProcess(
  command: string,
  args: readonly string[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
): number {
  const began = performance.now();
  const { status, signal, error, stderr } = spawnSync(command, args, {
    cwd,
    env: { ...environment(cwd), ...more },
    stdio: ['ignore', 'ignore', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  });
  const ms = performance.now() - began;
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status ?? signal}:\n${String(stderr)}`);
  return ms;
}

/** Children find the same `node` as this process. */
export function environment(home: string): Record<string, string> {
  return { PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`, HOME: home };
}

export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'meow-bench-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A new folder with a `.meow`, so that its runs stay in it. */
export function makeProject(bench: Bench, name: string): string {
  const project = join(bench.folder, name);
  mkdirSync(join(project, '.meow'), { recursive: true });
  return project;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** `12,345` */
export function count(value: number): string {
  return whole.format(value);
}

/** `0.82 s`, `12.3 ms`, `45 µs` */
export function duration(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms >= 1) return `${ms.toFixed(ms >= 100 ? 0 : 1)} ms`;
  return `${(ms * 1000).toFixed(ms >= 0.1 ? 0 : 1)} µs`;
}
