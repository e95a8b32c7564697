// Coverage of workflows by the tests of `meow test`, with paths as the user knows them.

import { dirname, relative, resolve } from 'node:path';

import type { Program } from '../ir/program.ts';
import { Coverage, type CoverageResult, keyOf, percentOf, startedIn } from '../testing/coverage.ts';
import type { CompletedRun } from './testing.ts';

export interface ShownCoverage extends Pick<CoverageResult, 'steps' | 'routes'> {
  readonly percent: number;
  /** `PATH:LINE: step build` */
  readonly missing: readonly string[];
}

export class TestCoverage {
  readonly #coverage = new Coverage();
  readonly #started = new Set<string>();
  readonly #programs = new Map<string, Program>();
  readonly #cwd: string;

  constructor(cwd: string) {
    this.#cwd = cwd;
  }

  add({ compiled, end }: CompletedRun): void {
    // Languages show paths as seen from the folder of the workflow, which is where the tests compile it.
    const folder = dirname(compiled.path);
    this.#coverage.add(compiled.outline?.() ?? [], end, ({ file, line }) => ({
      file: relative(this.#cwd, resolve(folder, file)),
      line,
    }));
    for (const step of startedIn(end)) this.#started.add(step);
    this.#programs.set(compiled.path, end.state.program);
  }

  /** The Program that tests of the workflow at this absolute path ran; null if there were none. */
  programOf(path: string): Program | null {
    return this.#programs.get(path) ?? null;
  }

  hasStarted(block: string, step: string): boolean {
    return this.#started.has(keyOf(block, step));
  }

  result(): ShownCoverage {
    const { steps, routes, missing } = this.#coverage.result();
    const shown = missing.map(({ place: { file, line }, what }) => ({ file, line, what }));
    const sorted = shown.toSorted((one, other) =>
      one.file === other.file ? one.line - other.line : one.file < other.file ? -1 : 1,
    );
    return {
      steps,
      routes,
      percent: percentOf({ steps, routes }),
      missing: sorted.map(({ file, line, what }) => `${file}:${line}: ${what}`),
    };
  }
}
