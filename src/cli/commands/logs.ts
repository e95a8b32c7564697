// `meow logs`: prints what a step wrote to stdout and stderr.

import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Adapters } from '../../app/adapters.ts';
import { chosenStore, type StoreChoice } from '../../app/choose-store.ts';
import { follow } from '../../app/follow.ts';
import type { RunState } from '../../app/observer.ts';
import { findProject } from '../../app/project.ts';
import type { ReadRun, Store } from '../../app/runs.ts';
import { CLEANUP_STEP, effectId, hasRun, readRun, requireStep, resolveRun } from '../../app/runs.ts';
import { eventsAsText, hasExited, hasOutput, outputPrefix, OutputReader } from '../../app/step-output.ts';
import { UsageError } from '../../base/errors.ts';
import { visibleControls } from '../../base/sanitize.ts';
import { stepWithOutput } from '../../view/cause.ts';
import { EXIT, isOutputClosed, pass, warn } from '../output.ts';
import { chosenStep } from './show.ts';

export async function logs(
  wanted: string,
  step: string | undefined,
  options: { readonly attempt?: number; readonly follow?: true; readonly raw?: true } & StoreChoice,
): Promise<number> {
  const project = findProject();
  const store = await chosenStore(options);
  const named = await readRun(store, await resolveRun(store, wanted));
  const id = stepMeant(named, step ?? chosenStep(named, 'output'));
  const run = await runThatHas(store, named, id);
  const printer = printerFor(options.raw === true ? null : new Adapters(project));
  if (options.follow) return followLogs(store, run.id, id, options.attempt ?? null, printer);
  const attempt = attemptMeant(run, id, options.attempt ?? null);
  const parts = partsOf(run.state, id, attempt);
  const files = store.files(run.id);
  let bytes = 0;
  for (const part of parts) {
    const prefix = await outputPrefix(files, run.state, part.id, part.attempt);
    if (parts.length > 1 && (await hasOutput(files, prefix))) warn(`== ${part.id}`);
    const output = new OutputReader(files, prefix);
    const print = printer(run, { ...part, prefix });
    await print(output);
    await print(output, true);
    bytes += output.length;
  }
  const shown = run.state.steps.get(id);
  const other = shown === undefined ? null : stepWithOutput(shown);
  if (bytes === 0 && other !== null && other !== shown)
    warn(`step ${id} has no output of its own; that of ${other.id}: meow logs ${run.id} ${other.id}`);
  else if (bytes === 0 && process.stdout.isTTY) warn(`step ${id} has printed nothing (attempt ${attempt})`);
  return EXIT.done;
}

/** The run in which a kept step ran. Throws a UsageError if that was deleted. */
async function runThatHas(store: Store, run: ReadRun, step: string): Promise<ReadRun> {
  const from = run.state.steps.get(step)?.keptFrom ?? null;
  if (from === null) return run;
  if (!(await hasRun(store, from))) {
    throw new UsageError(
      `step ${step} was kept from run ${from}, which was deleted with its output`,
      `its results: meow show ${run.id} ${step}`,
    );
  }
  const older = await runThatHas(store, await readRun(store, from), step);
  if (older.id === from) warn(`step ${step} was kept from run ${from}; this is its output there`);
  return older;
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

/** The cleanup script is not a step, but has output too. Its name `cleanup` may be that of a step, `@cleanup` not. */
function stepMeant(run: ReadRun, wanted: string): string {
  const isStep = run.state.steps.has(wanted);
  if (!isStep && (wanted === 'cleanup' || wanted === CLEANUP_STEP)) return CLEANUP_STEP;
  if (isStep && wanted === 'cleanup' && run.state.cleanups > 0)
    warn(`this is the step cleanup; the cleanup script: meow logs ${run.id} ${CLEANUP_STEP}`);
  requireStep(run, wanted);
  return wanted;
}

function attemptMeant(run: ReadRun, id: string, wanted: number | null): number {
  const latest = latestAttempt(run.state, id);
  if (latest === 0) {
    const cure =
      id === CLEANUP_STEP
        ? `it runs when the run has ended, where the workflow has one: meow show ${run.id}`
        : `see why: meow why ${run.id} ${id}`;
    throw new UsageError(`${nameOf(id)} of run ${run.id} has not started`, cure);
  }
  if (wanted === null || wanted <= latest) return wanted ?? latest;
  throw new UsageError(
    `${nameOf(id)} has no attempt ${wanted}: ${latest === 1 ? 'there was only one' : `the latest is ${latest}`}`,
    `meow logs ${run.id} ${id}`,
  );
}

/** 0 if there was none. A resumed run may end, and clean up, again. */
function latestAttempt(state: RunState, id: string): number {
  return id === CLEANUP_STEP ? state.cleanups : (state.steps.get(id)?.attempt ?? 0);
}

function nameOf(id: string): string {
  return id === CLEANUP_STEP ? 'the cleanup' : `step ${id}`;
}

async function followLogs(
  store: Store,
  runId: string,
  id: string,
  wanted: number | null,
  printer: Printer,
): Promise<number> {
  // Before its start there is nothing to read.
  let attempt = 0;
  await until(store, runId, (state) => {
    attempt = wanted ?? latestAttempt(state, id);
    return latestAttempt(state, id) >= Math.max(1, attempt) || state.phase === 'ended';
  });
  const run = await readRun(store, runId);
  if (attempt === 0 || attempt > latestAttempt(run.state, id)) attemptMeant(run, id, wanted);
  const isPerformed = run.state.steps.get(id)?.definition.act.kind === 'block';
  await (isPerformed
    ? followParts(store, runId, { id, attempt }, printer)
    : followOne(store, run, { id, attempt }, printer));
  return EXIT.done;
}

/** One after the other, as they start. */
async function followParts(store: Store, runId: string, { id, attempt }: Printing, printer: Printer): Promise<void> {
  const followed = new Set<string>();
  const newPart = (state: RunState): Printing | undefined =>
    partsOf(state, id, attempt).find((part) => !followed.has(effectId(part.id, part.attempt)));
  for (;;) {
    await until(store, runId, (state) => newPart(state) !== undefined || isOver(state, { id, attempt }));
    const run = await readRun(store, runId);
    const next = newPart(run.state);
    if (next === undefined || isOutputClosed()) return;
    followed.add(effectId(next.id, next.attempt));
    await followOne(store, run, next, printer);
  }
}

async function followOne(store: Store, run: ReadRun, part: Printing, printer: Printer): Promise<void> {
  const files = store.files(run.id);
  const over = new AbortController();
  const waitForEnd = async (): Promise<void> => {
    await until(store, run.id, (state) => isOver(state, part), over.signal);
    over.abort();
  };
  const printAll = async (): Promise<void> => {
    const find = (): Promise<string> => outputPrefix(files, run.state, part.id, part.attempt);
    let prefix = await find();
    // The files appear a moment after the start is recorded.
    while (!over.signal.aborted && !(await hasOutput(files, prefix))) {
      await sleep(LOOK_MS);
      prefix = await find();
    }
    const output = new OutputReader(files, prefix);
    const print = printer(run, { ...part, prefix });
    for await (const _ of files.changes(dirname(`${prefix}stdout`), over.signal)) {
      // The shell records the exit status last, and does so without an engine too.
      if (isOutputClosed() || (await hasExited(files, prefix))) over.abort();
      await print(output);
    }
    await print(output);
    await print(output, true);
  };
  await Promise.all([waitForEnd(), printAll()]);
}

/** Follows the run until its state fits, nobody reads the output any more, or `signal` aborts. */
function until(store: Store, id: string, fits: (state: RunState) => boolean, signal?: AbortSignal): Promise<void> {
  return follow(store, id, ({ state }) => !fits(state), isOutputClosed, signal);
}

const LOOK_MS = 50;

function isOver(state: RunState, { id, attempt }: Printing): boolean {
  if (state.phase === 'ended') return true;
  if (id === CLEANUP_STEP) return state.cleanup === null || state.cleanups !== attempt;
  const step = state.steps.get(id);
  return step?.status !== 'running' || step.attempt !== attempt;
}

/** Prints what is new in an output, or what was held back until its end. */
type Printer = (
  run: ReadRun,
  part: Printing & { readonly prefix: string },
) => (output: OutputReader, isEnd?: boolean) => Promise<void>;

/** `adapters`: null prints the bytes as they are. */
function printerFor(adapters: Adapters | null): Printer {
  return (run, part) => {
    const events = adapters === null ? null : eventsAsText(run, part, adapters);
    const shown = { stdout: new ShownText(), stderr: new ShownText() };
    const print = async (stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> => {
      const isObeyed = adapters !== null && process[stream].isTTY;
      await pass(stream, isObeyed ? shown[stream].add(bytes) : bytes);
    };
    return async (output, isEnd = false) => {
      for await (const piece of isEnd ? output.rest() : output.fresh()) {
        if (isOutputClosed()) return;
        if (piece.kind === 'gap') warn(`[${piece.length} bytes of the output were not kept]`);
        else if (events !== null && piece.stream === 'stdout')
          await print('stdout', Buffer.from(events.add(piece.bytes)));
        else await print(piece.stream, piece.bytes);
      }
      if (isEnd) await print('stdout', Buffer.from(events?.end() ?? ''));
    };
  };
}

/** Text for a terminal, from bytes that may be cut anywhere. */
class ShownText {
  readonly #decoder = new TextDecoder();

  add(bytes: Uint8Array): Uint8Array {
    return Buffer.from(visibleControls(this.#decoder.decode(bytes, { stream: true })));
  }
}
