// What the faces may do with runs: start one, take one up again, and talk to it while it goes on.

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

export interface World {
  readonly store: Pick<Store, 'create' | 'open'>;
  readonly clock: Clock;
  /** Drivers bound to one run. */
  drivers(request: RunRequest): Drivers;
  /** What keeps every effect from being performed, where that is what an outcome tells of: then the run is held. */
  lacks?(outcome: Outcome): Error | null;
  readonly observe: Observer;
}

/** A run in the hands of this process. */
export interface LiveRun {
  readonly id: string;
  readonly state: RunState;
  /** Whether the state tells of nothing but what is durable; what people are shown waits until it is. */
  readonly durable: boolean;
  /** Resolves when the run has ended and its journal is released; rejects when it is held. */
  readonly ended: Promise<RunState>;
  stop(by: string, force: boolean): void;
  pause(reason: string): void;
  /** Resolves when what the input has led to is durable; rejects when the journal cannot be written, or the run is over. */
  tell(input: Input): Promise<void>;
}

/** A run whose first record cannot be kept leaves nothing behind. */
export async function startRun(world: World, program: Program, request: RunRequest): Promise<LiveRun> {
  const journal = await create(world.store, program, request);
  return begin(world, journal, request.id, () => ({ request, first: requested(journal, request) }));
}

/** Makes the run durable, and starts nothing: whoever resumes it starts what it owes. Else it leaves nothing behind. */
export async function createRun(
  store: Pick<Store, 'create'>,
  program: Program,
  request: RunRequest,
  at: number,
): Promise<void> {
  const journal = await create(store, program, request);
  try {
    const input = requested(journal, request);
    await journal.append([{ seq: 1, at, input, decisions: decide(initialState(program), input, at) }]);
  } finally {
    await journal.close();
  }
}

export async function resumeRun(
  world: World,
  runId: string,
  retryFailed: boolean,
  allowance: Partial<Allowance> | null = null,
): Promise<LiveRun> {
  const journal = await world.store.open(runId);
  return begin(world, journal, runId, () => ({
    request: requestOf(runId, journal),
    first: { kind: 'run-resumed', retryFailed, allowance },
  }));
}

async function create(store: Pick<Store, 'create'>, program: Program, request: RunRequest): Promise<Journal> {
  const problems = checkProgram(program);
  assert(problems.length === 0, `the program is unsound: ${problems.join('; ')}`);
  refuseTooLarge(program);
  return store.create(request.id, program);
}

function requested(journal: Journal, request: RunRequest): Input {
  return { kind: 'run-requested', request, programHash: journal.programHash };
}

/** `how`: what the run was asked for, and what the engine is told first. The journal is released where it cannot begin. */
async function begin(
  world: World,
  journal: Journal,
  id: string,
  how: () => { readonly request: RunRequest; readonly first: Input },
): Promise<LiveRun> {
  try {
    const { request, first } = how();
    const engine = new Engine(
      journal,
      world.drivers(request),
      world.clock,
      world.observe,
      (outcome) => world.lacks?.(outcome) ?? null,
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
      tell: (input) => engine.tell(input),
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

function refuseTooLarge(program: Program): void {
  const steps = program.blocks[program.entry]?.steps.length ?? 0;
  const { stepsMax } = program.limits;
  if (steps <= stepsMax) return;
  throw new UsageError(
    `max steps exceeded: ${stepsMax} (the workflow has ${steps})`,
    'raise max_total_steps under [limits] in .meow/config.toml',
  );
}

/** The Program that lies beside a journal is the one that its first record names, or nothing is said or done by it. */
export function refuseOtherProgram(runId: string, run: StoredRun): void {
  const input = run.records[0]?.input;
  if (input?.kind !== 'run-requested' || input.programHash === run.programHash) return;
  throw new UsageError(
    `the program kept with run ${runId} is not the one that it was started with`,
    'put the program.json of this run back, or start the workflow again with meow run',
  );
}

function requestOf(runId: string, journal: Journal): RunRequest {
  refuseOtherProgram(runId, journal);
  const input = journal.records[0]?.input;
  if (input?.kind !== 'run-requested') {
    throw new UsageError(
      `run ${runId} never began: its journal holds no request`,
      'start the workflow again with meow run',
    );
  }
  return input.request;
}
