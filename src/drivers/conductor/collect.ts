// Artifacts of a validator: files that match its globs and that it has written.
//
// collect/1  A file that existed before and is unchanged is not an artifact: neither an agent's claim nor a report of
//            an earlier pass can pass for a result of this validator.
// collect/2  Artifacts of an earlier pass of the step are removed before the next pass; nothing else is ever removed.
// collect/3  A path that leaves its base folder, and a link that leaves the tree, are refused.
// collect/4  Each artifact is stored twice: with the visit, and by its own path in the run directory, where reports
//            refer to it. Files that the engine writes there are not overwritten.

import { lstatSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';

import { err, ok, type Result } from '../../base/errors.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED, tolerate, tolerateAsync } from '../../sys/errors.ts';
import { isWithin, makeFolderBelow } from '../../sys/files.ts';
import type { Problem } from '../outputs.ts';
import { fileName } from '../step-folder.ts';
import { copyNew, removeAt, type VisitFolder } from './artifacts.ts';
import { interpolate, type Places } from './context.ts';
import { asGlob, glob, type Glob, literalOf } from './globs.ts';
import { mayBeReport, type Reading, readReport } from './harness-report.ts';

export interface Pattern {
  /** The author's text. */
  readonly text: string;
  /** Absolute base folder. */
  readonly root: string;
  readonly glob: Glob;
  /** The only path that it can match; null if it has wildcards. */
  readonly literal: string | null;
  /** Its folders before the first wildcard. */
  readonly folder: string;
}

/** Absolute paths with a fingerprint that changes with each write. */
export type Found = Readonly<Record<string, string>>;

/** Format of the step's outputs. */
export type CollectedArtifact = {
  /** Path of the copy, which is kept with the visit; relative to the run directory. */
  readonly path: string;
  /** Relative to the worktree, or absolute. */
  readonly source: string;
  /** The file did not exist before. */
  readonly created: boolean;
};

/** `found`: before it was started. */
interface Validation {
  readonly id: string;
  readonly places: Places;
  readonly visit: VisitFolder;
  readonly found: Found;
}

export type CollectedReport = Reading & { readonly path: string };

interface Collected {
  readonly artifacts: CollectedArtifact[];
  readonly reports: CollectedReport[];
  readonly problems: Problem[];
}

export function patternsOf(texts: readonly string[], cwd: string, places: Places): Result<readonly Pattern[], string> {
  const patterns: Pattern[] = [];
  for (const text of texts) {
    const filled = interpolate(text, places, asGlob);
    if (!filled.ok) return filled;
    const pattern = filled.value.replace(/^(?:\.\/+)+/, '');
    const literal = literalOf(pattern);
    if (leaves(pattern) || (literal !== null && leaves(literal)))
      return err(`the artifact ${text} is refused: it leaves the folder that the validator runs in`);
    if (literal !== null && (literal === '' || literal.includes('\0')))
      return err(`the artifact ${JSON.stringify(text)} is refused: it is not a file path`);
    const names = pattern.split('/').slice(0, -1).map(literalOf);
    const folder = names.slice(0, [...names, null].indexOf(null)).join('/');
    patterns.push({ text, root: cwd, glob: glob(pattern), literal, folder });
  }
  return ok(patterns);
}

/** Files that exist before the validator starts, without those of an earlier pass (collect/2). */
export async function foundBefore(
  patterns: readonly Pattern[],
  earlier: readonly CollectedArtifact[],
  places: Places,
): Promise<Result<Found, string>> {
  for (const { source, created } of earlier) {
    const path = resolve(places.worktree, source);
    for (const { root, glob: one } of patterns) {
      const name = relative(root, path);
      if (!isWithin(root, path) || !one.matches(name)) continue;
      if (created) removeFile(path, treeOf(path, places));
      const kept = join(places.run_dir, name);
      if (!isReserved(name) && kept !== path) removeFile(kept, places.run_dir);
    }
  }
  const found: Record<string, string> = {};
  for (const pattern of patterns) {
    const names = await matching(pattern, places);
    if (!names.ok) return names;
    for (const name of names.value) {
      const path = join(pattern.root, name);
      const mark = markOf(path);
      if (mark !== null) found[path] = mark;
    }
  }
  return ok(found);
}

/** Called after the validator has ended. */
export async function collect(patterns: readonly Pattern[], validation: Validation): Promise<Collected> {
  const collected: Collected = { artifacts: [], reports: [], problems: [] };
  const { artifacts, problems } = collected;
  const seen = new Set<string>();
  for (const pattern of patterns) {
    const names = await matching(pattern, validation.places);
    if (!names.ok) {
      problems.push({ kind: 'output-invalid', message: names.error });
      continue;
    }
    for (const name of names.value) {
      const path = join(pattern.root, name);
      if (seen.has(path)) continue;
      seen.add(path);
      if (artifacts.length === ARTIFACTS_MAX) {
        const message = `the artifact ${name} is left out: there are ${ARTIFACTS_MAX} of this validator already`;
        problems.push({ kind: 'output-invalid', message });
        return collected;
      }
      take(collected, validation, pattern, name);
    }
    if (names.value.length === 0 && pattern.literal !== null)
      problems.push({ kind: 'output-missing', message: `the artifact ${pattern.text} is absent` });
  }
  return collected;
}

/** A worktree may contain many matching files beforehand. */
const MATCHES_MAX = 20_000;
const ARTIFACTS_MAX = 1_000;
const BYTES_MAX = 256 * 1024 * 1024;
/** A larger file cannot be checked, so it might be any report. */
const REPORT_BYTES_MAX = 64 * 1024 * 1024;
const UNREADABLE = [...ABSENT, ...REFUSED];

/** Adds a file to the collection, if it is an artifact of the validator. */
function take(collected: Collected, validation: Validation, { root, literal }: Pattern, name: string): void {
  const { id, places, visit } = validation;
  const path = join(root, name);
  const found = validation.found[path] ?? null;
  const required = literal !== null;
  const problem = (kind: Problem['kind'], why: string): void => {
    collected.problems.push({ kind, message: `the artifact ${name} ${why}` });
  };
  const missing = (why: string): void => (required ? problem('output-missing', why) : undefined);
  try {
    if (!isInside(treeOf(path, places), path))
      return problem('output-invalid', 'is refused: it is a link out of the tree');
    const stat = statSync(path);
    if (!stat.isFile() && !required) return;
    if (!stat.isFile())
      return problem('output-invalid', stat.isDirectory() ? `is a folder: write ${name}/**` : 'is not a regular file');
    if (found !== null && found === markOf(path))
      return missing('was there before, and the validator has not written it');
    if (stat.size > BYTES_MAX) return problem('output-invalid', `has ${stat.size} bytes: too many to be kept`);
    const copy = visit.copy('validation_report', join(fileName(id), name), path, required);
    keepByPath(path, name, places.run_dir);
    const source = isWithin(places.worktree, path) ? relative(places.worktree, path) : path;
    const isReport = mayBeReport(name);
    if (isReport && stat.size > REPORT_BYTES_MAX)
      return problem('output-invalid', `has ${stat.size} bytes: too many for a report`);
    const reading = isReport ? readReport(name, readFileSync(path)) : null;
    collected.artifacts.push({ path: copy.path, source, created: found === null });
    if (reading?.report || reading?.problem) collected.reports.push({ ...reading, path: copy.path });
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return missing('leads nowhere');
    if (isErrno(error, ...REFUSED, ...EXHAUSTED)) return problem('output-invalid', `cannot be kept (${error.message})`);
    throw error;
  }
}

function keepByPath(path: string, name: string, runDir: string): void {
  const place = join(runDir, name);
  // A folder of that name may contain somebody's files.
  const isFolder = lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
  if (place === path || isReserved(name) || isFolder) return;
  makeFolderBelow(runDir, dirname(place));
  removeAt(place);
  copyNew(path, place);
}

/** In the run directory these names belong to the engine. */
function isReserved(name: string): boolean {
  return /^(?:artifacts\/|(?:metadata\.json|status\.json|events\.ndjson|final-state\.txt|diff\.patch|transcript\.md|\.gitignore)$)/.test(
    name,
  );
}

function leaves(path: string): boolean {
  return isAbsolute(path) || /(?:^|[/{,])\.\.(?:[/},]|$)/.test(path);
}

/**
 * Relative to the base folder, sorted. Files of git and of the engine do not count, unless a pattern names the latter
 * explicitly. The error is a sentence.
 */
async function matching(pattern: Pattern, places: Places): Promise<Result<readonly string[], string>> {
  const { text, root, glob: one, literal, folder: top } = pattern;
  // The only file of a literal pattern is checked by `take`.
  if (literal !== null) return ok(markOf(join(root, literal)) === null ? [] : [literal]);
  const base = join(root, top);
  if (top !== '' && tolerate(UNREADABLE, false, () => !isInside(treeOf(base, places), base)))
    return err(`the artifact ${text} is refused: ${top} is a link out of the tree`);
  const passedOver = /^(?:\.\/+)*\.meow\//.test(text) ? ['.git'] : ['.git', '.meow'];
  const names: string[] = [];
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = tolerateAsync(UNREADABLE, [], readdir(join(root, folder), { withFileTypes: true }));
    for (const entry of await entries) {
      const name = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!passedOver.includes(entry.name) && one.reaches(name)) folders.push(name);
      } else if (one.matches(name)) {
        names.push(name);
      }
    }
    if (names.length > MATCHES_MAX)
      return err(`the artifact ${text} is refused: it matches more than ${MATCHES_MAX} files`);
  }
  return ok(names.toSorted());
}

/** Changes whenever the file is written. Null if it does not exist. */
function markOf(path: string): string | null {
  return tolerate(UNREADABLE, null, () => {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false }) ?? lstatSync(path, { bigint: true });
    return `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
  });
}

function removeFile(path: string, tree: string): void {
  tolerate(UNREADABLE, undefined, () => {
    if (isInside(tree, dirname(path)) && !lstatSync(path).isDirectory()) rmSync(path, { force: true });
  });
}

/** Resolves all links on the way. */
export function isInside(tree: string, path: string): boolean {
  const [top, real] = [realpathSync.native(tree), realpathSync.native(path)];
  return real === top || isWithin(top, real);
}

function treeOf(path: string, places: Places): string {
  return isWithin(places.run_dir, path) ? places.run_dir : places.worktree;
}
