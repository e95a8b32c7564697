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
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { FailureKind } from '../../ir/failure.ts';
import { fileName } from '../step-folder.ts';
import { removeAt, copyNew, makeFolderWithin } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { isWithin } from './entrypoint.ts';
import { asGlob, glob, literalOf } from './globs.ts';
import type { Glob } from './globs.ts';
import { mayBeReport, readReport } from './harness-report.ts';
import type { Reading } from './harness-report.ts';
import { interpolate } from './interpolate.ts';
import type { Places } from './interpolate.ts';

export interface Pattern {
  /** The author's text. */
  readonly text: string;
  /** Absolute base folder. */
  readonly root: string;
  readonly glob: Glob;
  /** The only path that it can match; null if it has wildcards. */
  readonly literal: string | null;
}

/** Absolute paths with a fingerprint that changes with each write. */
export type Found = Readonly<Record<string, string>>;

/** Format of the step's outputs. */
export type CollectedArtifact = {
  /** Of the copy with the visit, relative to the run directory. */
  readonly path: string;
  /** Relative to the worktree, or absolute. */
  readonly source: string;
  /** The file did not exist before. */
  readonly created: boolean;
};

export interface Collected {
  readonly artifacts: readonly CollectedArtifact[];
  readonly reports: readonly CollectedReport[];
  readonly problems: readonly Problem[];
}

export interface CollectedReport extends Reading {
  readonly path: string;
}

export interface Problem {
  readonly kind: Extract<FailureKind, 'output-missing' | 'output-invalid'>;
  readonly message: string;
}

/** The error is a sentence. */
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
    patterns.push({ text, root: cwd, glob: glob(pattern), literal });
  }
  return ok(patterns);
}

/**
 * Files that exist before the validator starts, without those of an earlier pass (collect/2). The error is a sentence.
 */
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
    const names = await matching(pattern);
    if (names === null) return err(tooMany(pattern));
    for (const name of names) {
      const path = join(pattern.root, name);
      const mark = markOf(path);
      if (mark !== null) found[path] = mark;
    }
  }
  return ok(found);
}

/** Called after the validator has ended. */
export async function collect(
  patterns: readonly Pattern[],
  found: Found,
  { id, places, visit }: { readonly id: string; readonly places: Places; readonly visit: VisitFolder },
): Promise<Collected> {
  const artifacts: CollectedArtifact[] = [];
  const reports: CollectedReport[] = [];
  const problems: Problem[] = [];
  const seen = new Set<string>();
  for (const pattern of patterns) {
    const names = await matching(pattern);
    if (names === null) {
      problems.push({ kind: 'output-invalid', message: tooMany(pattern) });
      continue;
    }
    for (const name of names) {
      const path = join(pattern.root, name);
      if (seen.has(path)) continue;
      seen.add(path);
      if (artifacts.length === ARTIFACTS_MAX) {
        const message = `the artifact ${name} is left out: there are ${ARTIFACTS_MAX} of this validator already`;
        return { artifacts, reports, problems: [...problems, { kind: 'output-invalid', message }] };
      }
      const taken = take({ path, name, pattern, found: found[path] ?? null, id, places, visit });
      if (!taken.ok) problems.push(taken.error);
      else if (taken.value !== null) {
        artifacts.push(taken.value.artifact);
        if (taken.value.report !== null) reports.push(taken.value.report);
      }
    }
    if (names.length === 0 && pattern.literal !== null)
      problems.push({ kind: 'output-missing', message: `the artifact ${pattern.text} is absent` });
  }
  return { artifacts, reports, problems };
}

/** A worktree may contain many matching files beforehand. */
const MATCHES_MAX = 20_000;
const ARTIFACTS_MAX = 1_000;
const BYTES_MAX = 256 * 1024 * 1024;
/** A larger file cannot be checked, so it might be any report. */
const REPORT_BYTES_MAX = 64 * 1024 * 1024;

interface Taking {
  readonly path: string;
  readonly name: string;
  readonly pattern: Pattern;
  readonly found: string | null;
  readonly id: string;
  readonly places: Places;
  readonly visit: VisitFolder;
}

/** Null if it is not an artifact of the validator. */
function take(
  taking: Taking,
): Result<{ readonly artifact: CollectedArtifact; readonly report: CollectedReport | null } | null, Problem> {
  const { path, name, pattern, found, id, places, visit } = taking;
  const required = pattern.literal !== null;
  const problem = (kind: Problem['kind'], why: string): Result<never, Problem> =>
    err({ kind, message: `the artifact ${name} ${why}` });
  try {
    if (!isInside(treeOf(path, places), path))
      return problem('output-invalid', 'is refused: it is a link out of the tree');
    const stat = statSync(path);
    if (!stat.isFile() && !required) return ok(null);
    if (!stat.isFile())
      return problem('output-invalid', stat.isDirectory() ? `is a folder: write ${name}/**` : 'is not a regular file');
    if (found !== null && found === markOf(path))
      return required ? problem('output-missing', 'was there before, and the validator has not written it') : ok(null);
    if (stat.size > BYTES_MAX) return problem('output-invalid', `has ${stat.size} bytes: too many to be kept`);
    const copy = visit.copy('validation_report', join(fileName(id), name), path, { required });
    keepByPath(path, name, places.run_dir);
    const source = isWithin(places.worktree, path) ? relative(places.worktree, path) : path;
    const artifact = { path: copy.path, source, created: found === null };
    if (!mayBeReport(name)) return ok({ artifact, report: null });
    if (stat.size > REPORT_BYTES_MAX) return problem('output-invalid', `has ${stat.size} bytes: too many for a report`);
    const reading = readReport(name, readFileSync(path));
    const is = reading.report !== null || reading.problem !== null;
    return ok({ artifact, report: is ? { ...reading, path: copy.path } : null });
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return required ? problem('output-missing', 'leads nowhere') : ok(null);
    if (isErrno(error, ...REFUSED, ...EXHAUSTED)) return problem('output-invalid', `cannot be kept (${error.message})`);
    throw error;
  }
}

function keepByPath(path: string, name: string, runDir: string): void {
  const place = join(runDir, name);
  // A folder of that name may contain somebody's files.
  const stands = lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
  if (place === path || isReserved(name) || stands) return;
  makeFolderWithin(runDir, dirname(place));
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
 * explicitly. Null if there are too many.
 */
async function matching({ text, root, glob: one, literal }: Pattern): Promise<readonly string[] | null> {
  if (literal !== null) return markOf(join(root, literal)) === null ? [] : [literal];
  const passedOver = /^(?:\.\/+)*\.meow\//.test(text) ? ['.git'] : ['.git', '.meow'];
  const names: string[] = [];
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await entriesOf(join(root, folder))) {
      const name = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!passedOver.includes(entry.name) && one.reaches(name)) folders.push(name);
      } else if (one.matches(name)) {
        names.push(name);
      }
    }
    if (names.length > MATCHES_MAX) return null;
  }
  return names.toSorted();
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return [];
    throw error;
  }
}

/** Changes whenever the file is written. Null if it does not exist. */
function markOf(path: string): string | null {
  try {
    const { ino, size, mtimeNs, ctimeNs } =
      statSync(path, { bigint: true, throwIfNoEntry: false }) ?? lstatSync(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return null;
    throw error;
  }
}

function removeFile(path: string, tree: string): void {
  try {
    if (isInside(tree, dirname(path)) && !lstatSync(path).isDirectory()) rmSync(path, { force: true });
  } catch (error) {
    if (!isErrno(error, ...ABSENT, ...REFUSED)) throw error;
  }
}

/** Resolves all links on the way. */
function isInside(tree: string, path: string): boolean {
  const [top, real] = [realpathSync.native(tree), realpathSync.native(path)];
  return real === top || isWithin(top, real);
}

function treeOf(path: string, places: Places): string {
  return isWithin(places.run_dir, path) ? places.run_dir : places.worktree;
}

function tooMany({ text }: Pattern): string {
  return `the artifact ${text} is refused: it matches more than ${MATCHES_MAX} files`;
}
