// Finds the line of a workflow's files that says something about a step.

import { readFileSync } from 'node:fs';

import type { Program } from '../ir/program.ts';
import type { StepState } from '../kernel/state.ts';
import { tolerate } from '../sys/errors.ts';
import type { FindLine } from '../view/plan.ts';
import { shownPath, sourcePathsOf } from './sources.ts';

/** Reads the files as they are now. */
export function lineFinder(project: { readonly cwd: string }, program: Program): FindLine {
  const files = sourcePathsOf(program).flatMap((path) => {
    const text = tolerate(['ENOENT', 'EACCES', 'EISDIR'], null, () => readFileSync(path, 'utf8'));
    return text === null ? [] : [{ path: shownPath(project, path), lines: text.split('\n') }];
  });
  return ({ definition: { id } }: StepState, text) => {
    // A state of a machine is a file of its own.
    const own = files.filter(({ path }) => path.replace(/^.*\//, '').startsWith(`${id}.`));
    const wanted = text.trim();
    for (const { path, lines } of [...own, ...files]) {
      const from = Math.max(
        0,
        lines.findIndex((line) => namesStep(line, id)),
      );
      const has = (line: string): boolean => wanted !== '' && line.includes(wanted);
      const after = lines.slice(from).findIndex(has);
      const at = after === -1 ? lines.findIndex(has) : from + after;
      if (at !== -1) return `${path}:${at + 1}`;
    }
    for (const { path, lines } of files) {
      const at = lines.findIndex((line) => namesStep(line, id));
      if (at !== -1) return `${path}:${at + 1}`;
    }
    return null;
  };
}

/** `id = "build"`, `id: build` or `- id: "build"` */
function namesStep(line: string, id: string): boolean {
  return /^\s*-?\s*id\s*[=:]\s*["']?([^"'\s#]+)/.exec(line)?.[1] === id;
}
