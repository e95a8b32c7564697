// `meow logs`: prints the bytes that a step wrote to stdout and stderr.

import { setTimeout as sleep } from 'node:timers/promises';

import { follow } from '../../app/follow.ts';
import { findProject } from '../../app/project.ts';
import type { ReadRun } from '../../app/runs.ts';
import { readRun, requireStep, resolveRun, storeOf } from '../../app/runs.ts';
import { hasExited, outputFolder, OutputReader } from '../../app/step-output.ts';
import { nearest } from '../../base/nearest.ts';
import { UsageError } from '../../base/usage-error.ts';
import type { Store } from '../../app/runs.ts';
import type { RunState } from '../../app/observer.ts';
import { CLEANUP_STEP, effectId } from '../../app/runs.ts';
import { EXIT } from '../exit.ts';
import { warn, isOutputClosed, pass } from '../output.ts';

export interface LogsOptions {
  readonly attempt?: number;
  readonly follow?: true;
}

export async function logs(wanted: string, step: string, options: LogsOptions): Promise<number> {
  const store = storeOf(findProject());
  const run = await readRun(store, await resolveRun(store, wanted));
  const id = stepMeant(run, step);
  if (options.follow) return followLogs(store, run.id, id, options.attempt ?? null);
  const attempt = attemptMeant(run, id, options.attempt ?? null);
  const parts = partsOf(run.state, id, attempt);
  const files = store.files(run.id);
  let bytes = 0;
  for (const part of parts) {
    const folder = await outputFolder(files, run.state, part.id, part.attempt);
    if (parts.length > 1 && (await files.list(folder)).length > 0) warn(`== ${part.id}`);
    const output = new OutputReader(files, folder);
    await printFresh(output);
    bytes += output.length;
  }
  if (bytes === 0 && process.stdout.isTTY) warn(`step ${id} has printed nothing (attempt ${attempt})`);
  return EXIT.done;
}

/** A step with output. */
interface Printing {
  readonly id: string;
  readonly attempt: number;
}

/** For a step that a block performs: the started turns and commands of the block. */
function partsOf(state: RunState, id: string, attempt: number): readonly Printing[] {
  const step = state.steps.get(id);
  if (step?.definition.act.kind !== 'block') return [{ id, attempt }];
  const bodies = step.children.filter(({ join }) => join === 'answer');
  return (bodies[attempt - 1]?.steps ?? []).flatMap((part) => {
    const { act } = part.definition;
    if (part.attempt === 0) return [];
    if (act.kind === 'block') return partsOf(state, part.id, part.attempt);
    const isPrinting = act.kind === 'effect' && (act.effect.kind === 'command' || act.effect.kind === 'turn');
    return isPrinting ? [{ id: part.id, attempt: part.attempt }] : [];
  });
}

/** The cleanup script is not a step, but has output too. */
function stepMeant(run: ReadRun, wanted: string): string {
  if (!run.state.steps.has(wanted) && (wanted === 'cleanup' || wanted === CLEANUP_STEP)) return CLEANUP_STEP;
  requireStep(run, wanted, nearest(wanted, run.state.steps.keys()));
  return wanted;
}

function attemptMeant(run: ReadRun, id: string, wanted: number | null): number {
  const latest = latestAttempt(run.state, id);
  if (latest === 0) {
    const cure =
      id === CLEANUP_STEP
        ? `it runs when the run has ended, where the workflow has one: meow show ${run.id}`
        : `see why: meow why ${run.id} ${id}`;
    throw new UsageError(`${named(id)} of run ${run.id} has not started`, cure);
  }
  if (wanted === null || wanted <= latest) return wanted ?? latest;
  throw new UsageError(
    `${named(id)} has no attempt ${wanted}: ${latest === 1 ? 'there was only one' : `the latest is ${latest}`}`,
    `meow logs ${run.id} ${id === CLEANUP_STEP ? 'cleanup' : id}`,
  );
}

/** 0 if there was none. A resumed run may end, and clean up, again. */
function latestAttempt(state: RunState, id: string): number {
  return id === CLEANUP_STEP ? state.cleanups : (state.steps.get(id)?.attempt ?? 0);
}

function named(id: string): string {
  return id === CLEANUP_STEP ? 'the cleanup' : `step ${id}`;
}

async function followLogs(store: Store, runId: string, id: string, wanted: number | null): Promise<number> {
  // Before its start there is nothing to read.
  let attempt = 0;
  await follow(
    store,
    runId,
    ({ state }) => {
      attempt = wanted ?? latestAttempt(state, id);
      return latestAttempt(state, id) < Math.max(1, attempt) && state.phase !== 'ended';
    },
    isOutputClosed,
  );
  const run = await readRun(store, runId);
  if (attempt === 0 || attempt > latestAttempt(run.state, id)) attemptMeant(run, id, wanted);
  const isPerformed = run.state.steps.get(id)?.definition.act.kind === 'block';
  return isPerformed ? followParts(store, runId, id, attempt) : followOne(store, run, id, attempt);
}

/** One after the other, as they start. */
async function followParts(store: Store, runId: string, id: string, attempt: number): Promise<number> {
  const followed = new Set<string>();
  const newPart = (state: RunState): Printing | undefined =>
    partsOf(state, id, attempt).find((part) => !followed.has(effectId(part.id, part.attempt)));
  for (;;) {
    await follow(
      store,
      runId,
      ({ state }) => newPart(state) === undefined && !isOver(state, id, attempt),
      isOutputClosed,
    );
    const run = await readRun(store, runId);
    const next = newPart(run.state);
    if (next === undefined || isOutputClosed()) return EXIT.done;
    followed.add(effectId(next.id, next.attempt));
    await followOne(store, run, next.id, next.attempt);
  }
}

async function followOne(store: Store, run: ReadRun, id: string, attempt: number): Promise<number> {
  const files = store.files(run.id);
  const over = new AbortController();
  const waitForEnd = async (): Promise<void> => {
    const seen = ({ state }: { readonly state: RunState }): boolean => !isOver(state, id, attempt);
    await follow(store, run.id, seen, isOutputClosed, over.signal);
    over.abort();
  };
  const printAll = async (): Promise<void> => {
    let folder = await outputFolder(files, run.state, id, attempt);
    // The folder appears a moment after the start is recorded.
    while (!over.signal.aborted && (await files.list(folder)).length === 0) {
      await sleep(LOOK_MS);
      folder = await outputFolder(files, run.state, id, attempt);
    }
    const output = new OutputReader(files, folder);
    for await (const _ of files.changes(folder, over.signal)) {
      // The shell records the exit status last, and does so without an engine too.
      if (isOutputClosed() || (await hasExited(files, folder))) over.abort();
      await printFresh(output);
    }
    await printFresh(output);
  };
  await Promise.all([waitForEnd(), printAll()]);
  return EXIT.done;
}

const LOOK_MS = 50;

function isOver(state: RunState, id: string, attempt: number): boolean {
  if (state.phase === 'ended') return true;
  if (id === CLEANUP_STEP) return state.cleanup === null || state.cleanups !== attempt;
  const step = state.steps.get(id);
  return step === undefined || step.status !== 'running' || step.attempt !== attempt;
}

async function printFresh(output: OutputReader): Promise<void> {
  for await (const piece of output.fresh()) {
    if (isOutputClosed()) return;
    if (piece.kind === 'gap') warn(`[${piece.length} bytes of the output were not kept]`);
    else await pass(piece.stream, piece.bytes);
  }
}
