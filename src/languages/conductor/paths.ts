// Paths and globs in a workflow, with `${…}`.

import type { Place } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { textAt } from '../yaml-fields.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import { textsAt } from './fields.ts';
import { pathProblem, tidyPath } from './path-problem.ts';

/** Built-in names of every step and prompt. */
export const RUN_WORDS: readonly string[] = ['run_id', 'run_dir', 'worktree', 'step_id'];

/** Files in the worktree. */
export function globsAt(report: Report, map: YamlMap, key: string, example: string): readonly string[] | null {
  const globs = textsAt(report, map, key, example);
  for (const glob of globs ?? []) checkPath(report, key, glob);
  return globs?.map(({ text }) => tidyPath(text)) ?? null;
}

/** Of a validator: may contain `${…}`, but nothing that makes them absolute. */
export function artifactsAt(report: Report, map: YamlMap): readonly YamlScalar[] {
  const globs = textsAt(report, map, 'artifacts', 'artifacts: ["harness_report.json", "logs/**"]') ?? [];
  for (const glob of globs) {
    checkWords(report, 'artifacts', glob);
    const [, word = null] = ABSOLUTE_WORD.exec(glob.text) ?? [];
    if (word === null) checkPath(report, 'artifacts', glob);
    else {
      const message = `"artifacts": ${JSON.stringify(glob.text)} is absolute`;
      report.error('invalid-path', glob.place, message, 'Globs are seen from "cwd": set cwd to that folder.');
    }
  }
  return globs;
}

const ABSOLUTE_WORD = /^\$\{(run_dir|worktree)\}/;

/** Relative to the worktree, unless it starts with a folder of the run. */
export function cwdAt(report: Report, map: YamlMap): string | null {
  const cwd = textAt(report, map, 'cwd');
  if (cwd === null) return null;
  checkWords(report, 'cwd', cwd);
  checkPath(report, 'cwd', { ...cwd, text: cwd.text.replace(ABSOLUTE_WORD, '.') });
  return cwd.text;
}

export function checkPath(report: Report, key: string, { text, place }: YamlScalar): void {
  const problem = pathProblem(text);
  if (problem !== null) report.error('invalid-path', place, `"${key}": ${problem.message}`, problem.hint);
}

/** Every `${…}` must be one of the known names. */
export function checkWords(report: Report, key: string, value: YamlScalar): void {
  for (const { 0: whole, 1: word = '', index } of value.text.matchAll(/\$\{([^}]*)\}?/g)) {
    if (RUN_WORDS.includes(word) && whole.endsWith('}')) continue;
    const known = `Known: ${listed(RUN_WORDS.map((each) => `\${${each}}`))}.`;
    const message = `"${key}": ${whole} is not a known placeholder`;
    const place = within(report, value, whole, index);
    report.error('unknown-word', place, message, () => {
      const meant = suggest(word, RUN_WORDS, known);
      return whole.endsWith('}') || meant === known ? meant : `Close it: ${whole}}.`;
    });
  }
}

/** Position of words in the source, if they appear there literally. */
function within(report: Report, { place, text }: YamlScalar, words: string, at: number): Place {
  const written = report.source.text.slice(place.from, place.to);
  const found = written.indexOf(words, Math.max(0, written.indexOf(text.slice(0, at)) + at));
  const from = found === -1 ? written.indexOf(words) : found;
  return from === -1 ? place : { from: place.from + from, to: place.from + from + words.length };
}
