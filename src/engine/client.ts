// Starts and resumes runs. The life of an engine is this sequence; no step of it is hidden in another:
//
//   1  take the journal      create it, or open and check it
//   2  compose the session   the drivers and observers of the run
//   3  commit                the first record is durable; nothing has started
//   4  open the session      from here on the run is reachable
//   5  carry out             effects start; each later batch is committed first and carried out then
//   6  close the session     what others look for is complete, including the last state
//   7  close the journal     another engine may open it

import { assert, UsageError } from '../base/errors.ts';
import { checkProgram } from '../ir/check.ts';
import type { Program, RunRequest } from '../ir/program.ts';
import { decide } from '../kernel/decide.ts';
import type { Fork } from '../kernel/fork.ts';
import type { Input } from '../kernel/input.ts';
import { initialState, type RunState } from '../kernel/state.ts';
import { Engine, type LiveRun, type RunSession } from './loop.ts';
import type { Clock, Journal, Store, StoredRun } from './ports.ts';

export type { LiveRun, RunSession } from './loop.ts';

export interface EngineServices {
  readonly store: Pick<Store, 'create' | 'open'>;
  readonly clock: Clock;
  /** Composes what one run needs; it must leave nothing behind until it is opened. */
  session(run: LiveRun, request: RunRequest, stored: StoredRun): RunSession;
}

export interface StartedRun {
  readonly run: LiveRun;
  /** Resolves when the run has ended and its journal is closed. Rejects if an error interrupted it. */
  readonly ended: Promise<RunState>;
}

/** Leaves nothing behind if the first record cannot be written. */
export async function startRun(
  services: EngineServices,
  program: Program,
  request: RunRequest,
  fork: Fork | null = null,
): Promise<StartedRun> {
  const journal = await create(services.store, program, request);
  return startEngine(services, journal, request.id, requestInput(journal, request, fork), () => request);
}

/** Makes the run durable without starting anything; a resume starts its effects. Leaves nothing behind on failure. */
export async function createRun(
  store: Pick<Store, 'create'>,
  program: Program,
  request: RunRequest,
  at: number,
  fork: Fork | null = null,
): Promise<void> {
  const journal = await create(store, program, request);
  try {
    const input = { ...requestInput(journal, request, fork), ...journal.taken };
    await journal.append([{ seq: 1, at, input, decisions: decide(initialState(program), input, at) }]);
  } finally {
    await journal.close();
  }
}

export function resumeRun(
  services: EngineServices,
  runId: string,
  how: Omit<Extract<Input, { kind: 'run-resumed' }>, 'kind'>,
): Promise<StartedRun> {
  return reopen(services, runId, { kind: 'run-resumed', ...how });
}

/** Stops a run whose engine is gone: the stop is the first input, so nothing starts that was only asked for. */
export function stopRun(services: EngineServices, runId: string, by: string, force: boolean): Promise<StartedRun> {
  return reopen(services, runId, { kind: 'stop-requested', by, force, replaces: true });
}

async function reopen(services: EngineServices, runId: string, first: Input): Promise<StartedRun> {
  const journal = await services.store.open(runId);
  const input = first.kind === 'run-resumed' ? { ...first, ...journal.taken } : first;
  return startEngine(services, journal, runId, input, () => requestOf(runId, journal));
}

async function create(store: Pick<Store, 'create'>, program: Program, request: RunRequest): Promise<Journal> {
  const problems = checkProgram(program);
  assert(problems.length === 0, `invalid program: ${problems.join('; ')}`);
  requireStepLimit(program);
  return store.create(request.id, program);
}

function requestInput({ programHash, taken }: Journal, request: RunRequest, fork: Fork | null): Input {
  return { kind: 'run-requested', request, programHash, ...(fork === null ? {} : { fork }), ...taken };
}

/** Closes the journal if it fails. */
async function startEngine(
  services: EngineServices,
  journal: Journal,
  id: string,
  first: Input,
  readRequest: () => RunRequest,
): Promise<StartedRun> {
  try {
    const request = readRequest();
    const session = (run: LiveRun): RunSession => services.session(run, request, journal);
    const engine = new Engine({ id, journal, clock: services.clock, session });
    if (engine.state.phase === 'ended' && engine.state.end === 'done') {
      await engine.session.catchUp();
      throw new UsageError(`run ${id} is done; there is nothing to resume`, `meow status ${id} shows it`);
    }
    return { run: engine, ended: runToEnd(engine, journal, first) };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

async function runToEnd(engine: Engine, journal: Journal, first: Input): Promise<RunState> {
  try {
    return await engine.run(first);
  } finally {
    try {
      await engine.session.close();
    } finally {
      await journal.close();
    }
  }
}

function requireStepLimit(program: Program): void {
  const steps = program.blocks[program.entry]?.steps.length ?? 0;
  const { stepsMax } = program.limits;
  if (steps <= stepsMax) return;
  throw new UsageError(
    `max steps exceeded: ${stepsMax} (the workflow has ${steps})`,
    'raise it: --max-steps N, or max_total_steps under [limits] in .meow/config.toml',
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
