// A run without the command line and without commands: the engine, a journal on disk, and a driver that answers
// immediately. The rest is the cost of the project itself.

import { StateRefresh } from '../src/app/state-refresh.ts';
import { Engine, type LiveRun, type RunSession } from '../src/engine/loop.ts';
import type { Answer, Driver } from '../src/engine/ports.ts';
import { success } from '../src/ir/effect.ts';
import { type Program, UNLIMITED } from '../src/ir/program.ts';
import type { JournalRecord } from '../src/kernel/decision.ts';
import type { RunState } from '../src/kernel/state.ts';
import { fileStore } from '../src/stores/files.ts';
import { systemClock } from '../src/sys/clock.ts';
import { stateFile } from '../src/sys/files.ts';

export interface EngineRunOptions {
  /** Folder for runs. */
  readonly folder: string;
  readonly runId: string;
  readonly program: Program;
  /** Number of answers in one tick of the event loop. Default: all. */
  readonly answersATurn?: number;
  /** False: written, but not synced. Then the disk's latency is not measured. */
  readonly durable?: boolean;
  /** Keep the state file next to the journal, as `meow run` does. */
  readonly stateFile?: boolean;
  /** Never answered: the run is left when all others are done. */
  readonly unanswered?: string;
  /** Working directory of commands. */
  readonly cwd?: string;
}

export interface EngineRun {
  readonly state: RunState;
  /** From the request to the end. */
  readonly ms: number;
  /** From the first requested effect to the end. */
  readonly completingMs: number;
  /** Number of datasyncs of the journal. */
  readonly datasyncs: number;
}

export async function runEngine(options: EngineRunOptions): Promise<EngineRun> {
  const { folder, runId, program, durable = true } = options;
  let datasyncs = 0;
  const store = fileStore({
    folder,
    wrapFile: (file) => ({
      ...file,
      async datasync() {
        datasyncs += 1;
        if (durable) await file.datasync();
      },
    }),
  });
  const journal = await store.create(runId, program);
  const refresh = options.stateFile
    ? new StateRefresh({
        file: stateFile(`${store.files(runId).localPath('')}.yaml`),
        bytesMax: program.limits.stateFileBytesMax,
        tooLarge,
        warn: (line) => console.error(line),
      })
    : null;
  const driver = answeringDriver(options.answersATurn ?? Infinity, options.unanswered ?? null);

  const others = (program.blocks[program.entry]?.steps.length ?? 0) - 1;
  let answered = 0;
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const observe = (records: readonly JournalRecord[], state: RunState): void => {
    refresh?.observe(records, state);
    for (const { input } of records) if (input.kind === 'effect-finished') answered += 1;
    if (options.unanswered !== undefined && answered === others) leave();
  };

  const began = performance.now();
  const done = (): Promise<void> => Promise.resolve();
  const session = (run: LiveRun): RunSession => ({
    drivers: { command: () => driver },
    open: () => refresh?.open(run),
    observe,
    close: done,
    catchUp: done,
  });
  const engine = new Engine({ id: runId, journal, clock: systemClock, session });
  const request = {
    id: runId,
    mark: 'm',
    variables: {},
    meta: {},
    cwd: options.cwd ?? folder,
    allowOutside: false,
    allowance: UNLIMITED,
  };
  await Promise.race([engine.run({ kind: 'run-requested', request, programHash: journal.programHash }), left]);
  const ended = performance.now();
  await refresh?.close();
  await journal.close();
  return { state: engine.state, ms: ended - began, completingMs: ended - driver.firstAt(), datasyncs };
}

interface AnsweringDriver extends Driver {
  /** Time of the first request. */
  firstAt(): number;
}

function answeringDriver(answersATurn: number, unanswered: string | null): AnsweringDriver {
  let waiting: Answer[] = [];
  let answered = 0;
  let firstAt: number | null = null;
  const answerSome = (): void => {
    const until = Math.min(answered + answersATurn, waiting.length);
    while (answered < until) waiting[answered++]?.(success());
    if (answered < waiting.length) {
      setImmediate(answerSome);
      return;
    }
    waiting = [];
    answered = 0;
  };
  return {
    firstAt: () => firstAt ?? Number.NaN,
    start({ step }, answer) {
      firstAt ??= performance.now();
      if (step === unanswered) return;
      waiting.push(answer);
      if (waiting.length === 1) setImmediate(answerSome);
    },
    find() {
      throw new Error('a new run has nothing to be found');
    },
    stop() {
      throw new Error('nothing stops this run');
    },
  };
}

function tooLarge(limit: string): void {
  throw new Error(`the state file is larger than ${limit}`);
}
