// Finds the line of a workflow's files that says something about a step.

import { readFileSync } from 'node:fs';

import type { Program, Step } from '../ir/program.ts';
import { type Text, writtenText } from '../ir/text.ts';
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
  return ({ definition }: StepState, text) => {
    const { id } = definition;
    // A state of a machine is a file of its own.
    const own = files.filter(({ path }) => path.replace(/^.*\//, '').startsWith(`${id}.`));
    const wanted = spellingsOf(text, definition);
    for (const { path, lines } of [...own, ...files]) {
      const from = Math.max(
        0,
        lines.findIndex((line) => namesStep(line, id)),
      );
      const has = (line: string): boolean => wanted.some((spelling) => line.includes(spelling));
      const after = lines.slice(from).findIndex(has);
      const at = after === -1 ? lines.findIndex(has) : from + after;
      if (at !== -1) return `${path}:${at + 1}`;
    }
    for (const { path, lines } of files) {
      const at = lines.findIndex((line) => namesStep(line, id));
      if (at !== -1) return `${path}:${at + 1}`;
    }
    const [state] = own;
    return state === undefined ? null : `${state.path}:1`;
  };
}

/** How a file may write a line that a step asks for: with its placeholders, and as a quoted string. */
function spellingsOf(text: string, definition: Step): readonly string[] {
  const line = text.trim();
  if (line === '') return [];
  const templates = linesIn(definition.act).filter((written) => written.includes('{{') && fits(written, line));
  return [line, ...templates].flatMap((spelling) => [spelling, JSON.stringify(spelling).slice(1, -1)]);
}

/** Whether a line with placeholders may have become this one. */
function fits(written: string, line: string): boolean {
  const parts = written.split(/\{\{.*?\}\}/).map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`).test(line);
}

/** The lines of all texts, as they were written. */
function linesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.split('\n').map((line) => line.trim());
  if (typeof value !== 'object' || value === null) return [];
  if ('parts' in value) return linesIn(writtenText(value as Text));
  return Object.values(value).flatMap(linesIn);
}

/** `id = "build"`, `id: build` or `- id: "build"` */
function namesStep(line: string, id: string): boolean {
  return /^\s*-?\s*id\s*[=:]\s*["']?([^"'\s#]+)/.exec(line)?.[1] === id;
}
