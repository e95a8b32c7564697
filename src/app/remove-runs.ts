// Removes whole runs of any language, or only their logs.
//
//   remove/1  A run is removed only if it is over (done, failed or stopped), while nobody else can take its lock.
//   remove/2  The newest run of each schedule stays. So does a run with uncommitted changes or unmerged commits, unless forced.
//   remove/3  A run is never half removed: its folder loses its name first.

import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { findRemains, type GcQuestion, judge, removeRemains } from '../drivers/git/gc.ts';
import { Repository } from '../drivers/git/repository.ts';
import { conductorOf } from '../ir/program.ts';
import { missingRunError } from '../stores/errors.ts';
import { type Lock, takeLock } from '../stores/lock.ts';
import { ABSENT, REFUSED, tolerate } from '../sys/errors.ts';
import { ownEnvironment, type Project } from './project.ts';
import { type ReadRun, readRun, storeOf, unlessRefused } from './runs.ts';
import { knownRun } from './workspace.ts';

export const REMOVED_STATUSES = ['done', 'failed', 'stopped'] as const;
export type RemovedStatus = (typeof REMOVED_STATUSES)[number];

export interface RunSelection {
  /** Only these; none means all. */
  readonly runs: readonly string[];
  readonly olderThanMs: number | null;
  /** So many of the newest stay. */
  readonly keep: number | null;
  /** Empty: all that are over. */
  readonly status: readonly RemovedStatus[];
  readonly logsOnly: boolean;
  /** Also if work is lost. */
  readonly force: boolean;
  readonly dryRun: boolean;
}

export interface RemovalVerdict {
  readonly run: string;
  readonly removed: boolean;
  /** Freed, or would be. */
  readonly bytes: number;
  /** Sentences: why it stays. */
  readonly reasons: readonly string[];
}

/** Verdicts about all runs that the selection names, also those that stay. */
export async function removeRuns(
  project: Project,
  selection: RunSelection,
  now: number,
): Promise<readonly RemovalVerdict[]> {
  const store = storeOf(project);
  const entries = await store.list();
  const ids = entries.map(({ id }) => id);
  const unknown = selection.runs.find((run) => !ids.includes(run));
  if (unknown !== undefined) throw missingRunError(unknown, ids);
  const newest = await newestOfSchedules(project, ids);
  const byAge = entries.toSorted((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0)).map(({ id }) => id);
  const kept = new Set(byAge.slice(0, selection.keep ?? 0));
  const verdicts: RemovalVerdict[] = [];
  for (const { id } of entries) {
    if (kept.has(id) || (selection.runs.length > 0 && !selection.runs.includes(id))) continue;
    const verdict = await judgeAndRemove(project, id, { ...selection, now, newest });
    if (verdict !== null) verdicts.push(verdict);
  }
  return verdicts;
}

interface Removal extends RunSelection {
  readonly now: number;
  readonly newest: ReadonlySet<string>;
}

/** Null if the run is not selected. */
async function judgeAndRemove(project: Project, id: string, removal: Removal): Promise<RemovalVerdict | null> {
  const folder = join(project.runs, id);
  const before = await unlessRefused(readRun(storeOf(project), id), null);
  if (before !== null && !isSelected(before, removal)) return null;
  const stays = (...reasons: readonly string[]): RemovalVerdict => ({ run: id, removed: false, bytes: 0, reasons });
  if (before === null) return stays('its records cannot be read');
  if (!isOver(before)) return removal.runs.includes(id) ? stays('it is not over') : null;
  if (removal.newest.has(id) && !removal.logsOnly) return stays('it is the newest of its schedule');
  const answer = await takeLock(`${folder}.yaml.lock`);
  if (answer.kind === 'held') return stays('an engine works on it');
  try {
    // Somebody may have resumed it meanwhile.
    const run = await unlessRefused(readRun(storeOf(project), id), null);
    if (run === null || !isOver(run)) return stays('it is not over');
    if (removal.logsOnly) return { run: id, removed: true, bytes: removeLogs(folder, removal.dryRun), reasons: [] };
    const work = await removeWork(project, run, removal);
    if (work.length > 0) return stays(...work);
    return { run: id, removed: true, bytes: removeFiles(project, run, removal.dryRun), reasons: [] };
  } finally {
    await released(answer.lock);
  }
}

function released(lock: Lock): Promise<void> {
  return lock.release();
}

function isOver({ state }: ReadRun): boolean {
  return state.phase === 'ended' && state.end !== 'paused' && state.end !== null;
}

function isSelected({ state }: ReadRun, { status, olderThanMs, now }: Removal): boolean {
  const { end } = state;
  if (status.length > 0 && !status.some((each) => each === end)) return false;
  const at = state.endedAt ?? state.startedAt ?? now;
  return olderThanMs === null || now - at > olderThanMs;
}

async function newestOfSchedules(project: Project, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const latest = new Map<string, { readonly id: string; readonly slot: string }>();
  for (const id of ids) {
    // Runs of schedules are named after their times.
    const name = /^(.+)-\d{8}T\d{6}Z$/.exec(id)?.[1];
    if (name === undefined) continue;
    const run = await unlessRefused(readRun(storeOf(project), id), null);
    if (run?.state.request?.meta['schedule'] !== name) continue;
    const known = latest.get(name);
    if (known === undefined || known.slot < id) latest.set(name, { id, slot: id });
  }
  return new Set([...latest.values()].map(({ id }) => id));
}

/** Removes the worktree, branch and refs of a run on a repository. Sentences: why they stay. */
async function removeWork(project: Project, { id, program, state }: ReadRun, how: Removal): Promise<readonly string[]> {
  if (conductorOf(program) === null) return [];
  const opened = await Repository.open(dirname(project.meow), ownEnvironment());
  // Without a repository nothing can be in it.
  if (!opened.ok) return [];
  const question: GcQuestion = { standing: () => 'ended', isForced: () => how.force };
  const known = knownRun(id, dirname(project.meow), state);
  const remains = await findRemains(opened.value, known);
  if (!remains.ok) return [remains.error.message];
  const verdict = judge(remains.value, question);
  if (!verdict.isRemoved || how.dryRun) return verdict.isRemoved ? [] : verdict.reasons;
  const removed = await removeRemains(opened.value, known, question);
  if (!removed.ok) return [removed.error.message];
  return removed.value.isRemoved ? [] : removed.value.reasons;
}

function removeFiles(project: Project, { id, program }: ReadRun, dryRun: boolean): number {
  const folder = join(project.runs, id);
  const artifacts = conductorOf(program)?.artifactsDir ?? null;
  const runDir = artifacts === null ? null : join(dirname(project.meow), artifacts, id);
  const paths = [folder, `${folder}.yaml`, ...(runDir === null ? [] : [runDir])];
  const bytes = paths.reduce((sum, path) => sum + sizeOf(path), 0);
  if (dryRun) return bytes;
  for (const path of paths.slice(1)) rmSync(path, { recursive: true, force: true });
  const removed = join(project.runs, `.${id}.yaml.${randomBytes(6).toString('hex')}.tmp`);
  renameSync(folder, removed);
  rmSync(removed, { recursive: true, force: true });
  return bytes;
}

function removeLogs(folder: string, dryRun: boolean): number {
  let bytes = 0;
  for (const path of below(folder)) {
    if (!LOGS.test(path)) continue;
    bytes += sizeOf(path);
    if (!dryRun) rmSync(path, { force: true });
  }
  return bytes;
}

const LOGS = /[./](?:stdout|stderr|transcript[^/]*)$|\/engine\.log$/;

function below(folder: string): readonly string[] {
  return tolerate([...ABSENT, ...REFUSED], [], () => readdirSync(folder, { withFileTypes: true })).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? below(path) : entry.isFile() ? [path] : [];
  });
}

function sizeOf(path: string): number {
  if (!existsSync(path)) return 0;
  return tolerate([...ABSENT, ...REFUSED], 0, () => {
    const stats = lstatSync(path);
    return stats.isDirectory()
      ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, basename(name))), 0)
      : stats.size;
  });
}
