// `meow logs`: the bytes that a step wrote, each to where it wrote them.

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
import { CLEANUP_STEP } from '../../app/runs.ts';
import { EXIT } from '../exit.ts';
import { complain, isDeaf, pass } from '../output.ts';

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
  const within = validatorsOf(run, id);
  const files = store.files(run.id);
  let bytes = 0;
  for (const part of within.length === 0 ? [id] : within) {
    const folder = await outputFolder(files, run.state, part, attempt);
    if (part !== id && (await files.list(folder)).length > 0) complain(`== ${part}`);
    const output = new OutputReader(files, folder);
    await printFresh(output);
    bytes += output.length;
  }
  if (bytes === 0 && process.stdout.isTTY) complain(`step ${id} has printed nothing (attempt ${attempt})`);
  return EXIT.done;
}

/** Of a validation each validator has printed for itself. */
function validatorsOf({ state }: ReadRun, id: string): readonly string[] {
  const act = state.steps.get(id)?.definition.act;
  if (act?.kind !== 'effect' || act.effect.kind !== 'validate') return [];
  return act.effect.validators.map((validator) => `${id}.${validator.id}`);
}

/** The cleanup script is none of the steps, but has printed as they have. */
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

/** 0 where there was none. A run that is taken up again may end, and clean up, again. */
function latestAttempt(state: RunState, id: string): number {
  return id === CLEANUP_STEP ? state.cleanups : (state.steps.get(id)?.attempt ?? 0);
}

function named(id: string): string {
  return id === CLEANUP_STEP ? 'the cleanup' : `step ${id}`;
}

async function followLogs(store: Store, runId: string, id: string, wanted: number | null): Promise<number> {
  // Until it has started there is nothing to read, and nowhere to read it from.
  let attempt = 0;
  await follow(
    store,
    runId,
    ({ state }) => {
      attempt = wanted ?? latestAttempt(state, id);
      return latestAttempt(state, id) < Math.max(1, attempt) && state.phase !== 'ended';
    },
    isDeaf,
  );
  const run = await readRun(store, runId);
  if (attempt === 0 || attempt > latestAttempt(run.state, id)) attemptMeant(run, id, wanted);
  const files = store.files(runId);
  const over = new AbortController();
  const waitForEnd = async (): Promise<void> => {
    const seen = ({ state }: { readonly state: RunState }): boolean => !isOver(state, id, attempt);
    await follow(store, runId, seen, isDeaf, over.signal);
    over.abort();
  };
  const printAll = async (): Promise<void> => {
    let folder = await outputFolder(files, run.state, id, attempt);
    // It is made a moment after the start is recorded.
    while (!over.signal.aborted && (await files.list(folder)).length === 0) {
      await sleep(LOOK_MS);
      folder = await outputFolder(files, run.state, id, attempt);
    }
    const output = new OutputReader(files, folder);
    for await (const _ of files.changes(folder, over.signal)) {
      // The shell records the exit status last, and does so without an engine too.
      if (isDeaf() || (await hasExited(files, folder))) over.abort();
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
    if (isDeaf()) return;
    if (piece.kind === 'gap') complain(`[${piece.length} bytes of what it printed are not kept]`);
    else await pass(piece.stream, piece.bytes);
  }
}
