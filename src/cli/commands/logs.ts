// `meow logs`: the bytes that a step wrote, each to where it wrote them.

import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';

import { nearest } from '../../base/nearest.ts';
import { UsageError } from '../../base/usage-error.ts';
import { AgentFolder } from '../../drivers/agent/files.ts';
import { TRANSCRIPT } from '../../drivers/agent/terminal/agent.ts';
import { segmentsOf } from '../../drivers/agent/tmux/transcript-segments.ts';
import type { Segment } from '../../drivers/agent/tmux/transcript-segments.ts';
import { readExit, stepFolder } from '../../drivers/step-folder.ts';
import type { StepFolder } from '../../drivers/step-folder.ts';
import { CLEANUP_STEP, effectId } from '../../kernel/state.ts';
import type { FileStore } from '../../stores/files.ts';
import { isErrno } from '../../stores/usage-errors.ts';
import { EXIT } from '../exit.ts';
import { follow, watchChanges } from '../../app/follow.ts';
import { findProject } from '../../app/project.ts';
import type { ReadRun } from '../../app/runs.ts';
import { readRun, requireStep, resolveRun, storeOf } from '../../app/runs.ts';
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
  let bytes = 0;
  for (const part of within.length === 0 ? [id] : within) {
    const folder = folderOf(store, run, part, attempt);
    if (part !== id && existsSync(folder.path)) complain(`== ${part}`);
    const copy = new Copy(folder);
    await copy.go();
    bytes += copy.bytes;
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

/**
 * What an agent that stays prints is kept with the agent: of a step that it works on, what it has printed since it was
 * started. One that is started for each prompt prints for its step.
 */
function folderOf(store: FileStore, { id: runId, state }: ReadRun, id: string, attempt: number): StepFolder {
  const runFolder = store.runFolder(runId);
  const own = stepFolder(runFolder, id, attempt);
  if (existsSync(join(own.path, 'stdout'))) return own;
  const step = state.steps.get(id);
  const name = step?.agent ?? null;
  const kept = name === null ? null : new AgentFolder({ runFolder, markerOf: () => '' }, name);
  const effect = effectId(id, attempt);
  return kept?.start(kept.promptedStart(effect) ?? effect)?.folder ?? own;
}

/** The cleanup script is none of the steps, but has printed as they have. */
function stepMeant(run: ReadRun, wanted: string): string {
  if (!run.state.steps.has(wanted) && (wanted === 'cleanup' || wanted === CLEANUP_STEP)) return CLEANUP_STEP;
  requireStep(run, wanted, nearest(wanted, run.state.steps.keys()));
  return wanted;
}

function attemptMeant(run: ReadRun, id: string, wanted: number | null): number {
  const latest = latestAttempt(run, id);
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
function latestAttempt({ state }: ReadRun, id: string): number {
  return id === CLEANUP_STEP ? state.cleanups : (state.steps.get(id)?.attempt ?? 0);
}

function named(id: string): string {
  return id === CLEANUP_STEP ? 'the cleanup' : `step ${id}`;
}

async function followLogs(store: FileStore, runId: string, id: string, wanted: number | null): Promise<number> {
  // Until it has started there is nothing to read, and nowhere to read it from.
  let attempt = 0;
  await follow(
    store,
    runId,
    (run) => {
      attempt = wanted ?? latestAttempt(run, id);
      return latestAttempt(run, id) < Math.max(1, attempt) && run.state.phase !== 'ended';
    },
    isDeaf,
  );
  const folder = folderOf(store, await readRun(store, runId), id, attempt);
  if (attempt === 0 || !existsSync(folder.path)) {
    attemptMeant(await readRun(store, runId), id, wanted);
    return EXIT.done;
  }
  const copy = new Copy(folder);
  const changes = watchChanges(folder.path, join(store.runFolder(runId), 'journal.jsonl'));
  try {
    for (;;) {
      const over = await isOver(store, runId, id, attempt, folder);
      await copy.go();
      if (over || isDeaf()) return EXIT.done;
      await changes.next();
    }
  } finally {
    changes.close();
  }
}

/** Its shell has left the status; or, where that did not live to, the journal knows. */
async function isOver(store: FileStore, runId: string, id: string, attempt: number, at: StepFolder): Promise<boolean> {
  if (readExit(at) !== null) return true;
  const { state } = await readRun(store, runId);
  if (state.phase === 'ended') return true;
  if (id === CLEANUP_STEP) return state.cleanup === null || state.cleanups !== attempt;
  const step = state.steps.get(id);
  return step === undefined || step.status !== 'running' || step.attempt !== attempt;
}

/** What both files have beyond what was copied before. */
class Copy {
  readonly #folder: StepFolder;
  readonly #offsets = { stdout: 0, stderr: 0 };

  constructor(folder: StepFolder) {
    this.#folder = folder;
  }

  get bytes(): number {
    return this.#offsets.stdout + this.#offsets.stderr;
  }

  async go(): Promise<void> {
    await this.#copy('stdout');
    await this.#copy('stderr');
  }

  async #copy(name: 'stdout' | 'stderr'): Promise<void> {
    // A terminal shows both as one.
    const terminal = join(this.#folder.path, TRANSCRIPT);
    const path = name === 'stdout' && existsSync(terminal) ? terminal : join(this.#folder.path, name);
    for (const part of segmentsOf(path)) {
      const forgotten = part.at - this.#offsets[name];
      if (forgotten > 0) complain(`[${forgotten} bytes of what it printed are not kept]`);
      await this.#copyPart(part, name);
    }
  }

  async #copyPart({ path, at, size }: Segment, name: 'stdout' | 'stderr'): Promise<void> {
    if (at + size <= this.#offsets[name]) return;
    this.#offsets[name] = Math.max(this.#offsets[name], at);
    try {
      for await (const chunk of createReadStream(path, { start: this.#offsets[name] - at })) {
        if (isDeaf()) return;
        this.#offsets[name] += (chunk as Buffer).length;
        await pass(name, chunk as Buffer);
      }
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
    }
  }
}
