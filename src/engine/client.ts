// Starts and resumes runs, and controls them while they are running.

import { assert } from '../base/assert.ts';
import { UsageError } from '../base/usage-error.ts';
import { checkProgram } from '../ir/check.ts';
import type { Outcome } from '../ir/effect.ts';
import type { Allowance, Program, RunRequest } from '../ir/program.ts';
import type { Input } from '../kernel/input.ts';
import { decide } from '../kernel/decide.ts';
import type { RunState } from '../kernel/state.ts';
import { initialState } from '../kernel/state.ts';
import { Engine } from './loop.ts';
import type { Observer } from './loop.ts';
import type { Clock, Drivers, Journal, Store, StoredRun } from './ports.ts';

export interface EngineServices {
  readonly store: Pick<Store, 'create' | 'open'>;
  readonly clock: Clock;
  drivers(request: RunRequest): Drivers;
  /** The error behind an outcome, if it would fail every effect; it interrupts the run. */
  fatalError?(outcome: Outcome): Error | null;
  readonly observe: Observer;
}

/** A run whose engine is this process. */
export interface LiveRun {
  readonly id: string;
  readonly state: RunState;
  /** Whether the state is durable; users see it only then. */
  readonly durable: boolean;
  /** Resolves when the run has ended and its journal is closed. Rejects if an error interrupted it. */
  readonly ended: Promise<RunState>;
  stop(by: string, force: boolean): void;
  pause(reason: string): void;
  /**
   * Resolves once the resulting decisions are durable. Rejects if the journal cannot be written or the run has ended.
   */
  submit(input: Input): Promise<void>;
}

/** Leaves nothing behind if the first record cannot be written. */
export async function startRun(services: EngineServices, program: Program, request: RunRequest): Promise<LiveRun> {
  const journal = await create(services.store, program, request);
  return startEngine(services, journal, request.id, () => ({ request, first: requestInput(journal, request) }));
}

/** Makes the run durable without starting anything; a resume starts its effects. Leaves nothing behind on failure. */
export async function createRun(
  store: Pick<Store, 'create'>,
  program: Program,
  request: RunRequest,
  at: number,
): Promise<void> {
  const journal = await create(store, program, request);
  try {
    const input = requestInput(journal, request);
    await journal.append([{ seq: 1, at, input, decisions: decide(initialState(program), input, at) }]);
  } finally {
    await journal.close();
  }
}

export async function resumeRun(
  services: EngineServices,
  runId: string,
  retryFailed: boolean,
  allowance: Partial<Allowance> | null = null,
): Promise<LiveRun> {
  const journal = await services.store.open(runId);
  return startEngine(services, journal, runId, () => ({
    request: requestOf(runId, journal),
    first: { kind: 'run-resumed', retryFailed, allowance },
  }));
}

async function create(store: Pick<Store, 'create'>, program: Program, request: RunRequest): Promise<Journal> {
  const problems = checkProgram(program);
  assert(problems.length === 0, `invalid program: ${problems.join('; ')}`);
  requireStepLimit(program);
  return store.create(request.id, program);
}

function requestInput(journal: Journal, request: RunRequest): Input {
  return { kind: 'run-requested', request, programHash: journal.programHash };
}

/** `makeInput`: returns the request and the first input. The journal is closed if that fails. */
async function startEngine(
  services: EngineServices,
  journal: Journal,
  id: string,
  makeInput: () => { readonly request: RunRequest; readonly first: Input },
): Promise<LiveRun> {
  try {
    const { request, first } = makeInput();
    const engine = new Engine(
      journal,
      services.drivers(request),
      services.clock,
      services.observe,
      (outcome) => services.fatalError?.(outcome) ?? null,
    );
    if (engine.state.phase === 'ended' && engine.state.end === 'done') {
      throw new UsageError(`run ${id} is done; there is nothing to resume`, `meow status ${id} shows it`);
    }
    return {
      id,
      state: engine.state,
      get durable() {
        return engine.durable;
      },
      ended: runToEnd(engine, journal, first),
      stop: (by, force) => engine.submit({ kind: 'stop-requested', by, force }),
      pause: (reason) => engine.submit({ kind: 'pause-requested', reason }),
      submit: (input) => engine.submitDurably(input),
    };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

async function runToEnd(engine: Engine, journal: Journal, first: Input): Promise<RunState> {
  try {
    return await engine.run(first);
  } finally {
    await journal.close();
  }
}

function requireStepLimit(program: Program): void {
  const steps = program.blocks[program.entry]?.steps.length ?? 0;
  const { stepsMax } = program.limits;
  if (steps <= stepsMax) return;
  throw new UsageError(
    `max steps exceeded: ${stepsMax} (the workflow has ${steps})`,
    'raise max_total_steps under [limits] in .meow/config.toml',
  );
}

/** Throws unless program.json has the hash recorded in the journal. */
export function requireSameProgram(runId: string, run: StoredRun): void {
  const input = run.records[0]?.input;
  if (input?.kind !== 'run-requested' || input.programHash === run.programHash) return;
  throw new UsageError(
    `program.json of run ${runId} is not the program that the run was started with`,
    'restore the original program.json, or start the workflow again with meow run',
  );
}

function requestOf(runId: string, journal: Journal): RunRequest {
  requireSameProgram(runId, journal);
  const input = journal.records[0]?.input;
  if (input?.kind !== 'run-requested') {
    throw new UsageError(
      `run ${runId} never began: its journal has no request`,
      'start the workflow again with meow run',
    );
  }
  return input.request;
}
