// One seed: a random Program runs once in a calm world, and once in a world that crashes the engine before or after
// every append, loses processes, repeats answers, and has people stop, pause and resume the run. The world checks
// safety (G1, G2, G5), and so does this file (G3, G4, replay); liveness means that the rough run ends like the calm
// one.

import { isDeepStrictEqual } from 'node:util';

import { Engine } from '../../src/engine/loop.ts';
import { fold } from '../../src/kernel/apply.ts';
import { success } from '../../src/ir/effect.ts';
import { type Program, UNLIMITED } from '../../src/ir/program.ts';
import { decide } from '../../src/kernel/decide.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import type { Input } from '../../src/kernel/input.ts';
import { initialState, isFinished, type RunState, type StepState } from '../../src/kernel/state.ts';
import { fingerprint } from '../kernel-rig/fingerprint.ts';
import { randomProgram } from './random-program.ts';
import { below, hash, type Random, randomFrom } from '../../src/base/random.ts';
import { Crash, type Roughness, World } from './world.ts';

export const CALM: Roughness = { crash: 0, reboot: 0, twice: 0 };
const LIVES_MAX = 500;
const HAPPENINGS_MAX = 20_000;
const REQUEST: Input = {
  kind: 'run-requested',
  request: { id: 'wf-sim', mark: 'm', variables: {}, meta: {}, cwd: '.', allowOutside: false, allowance: UNLIMITED },
  programHash: 'hash',
};

export interface Simulated {
  readonly problems: readonly string[];
  readonly program: Program;
  readonly lives: number;
  readonly records: number;
  readonly end: string;
}

export async function simulate(seed: number): Promise<Simulated> {
  const random = randomFrom(seed);
  const program = randomProgram(random);
  try {
    return await compareLives(seed, random, program);
  } catch (error) {
    const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { problems: [told], program, lives: 0, records: 0, end: 'thrown' };
  }
}

async function compareLives(seed: number, random: Random, program: Program): Promise<Simulated> {
  const problems: string[] = [];

  const calm = new World(program, randomFrom(seed + 1), CALM);
  const wanted = await live(calm, random, { meddle: 0, problems });

  const rough = new World(program, randomFrom(seed + 2), {
    crash: 0.08 * random(),
    reboot: 0.5 * random(),
    twice: 0.2,
  });
  const meddled = { meddle: random() < 0.4 ? 0.02 : 0, problems };
  const got = await live(rough, random, meddled);

  problems.push(...calm.problems.map((text) => `calm: ${text}`));
  if (!wasInterrupted(rough.records)) problems.push(...compare(wanted, got));
  problems.push(...checkEnd(got));

  // Resuming a failed run retries its failures; finished steps stay as they were.
  const again = got.end === 'failed' ? await live(rough, random, { meddle: 0, problems, retries: 2 }) : got;
  problems.push(...checkEnd(again), ...checkKept(got, again), ...rough.problems);
  problems.push(...checkReplay(program, rough.records));
  return { problems, program, lives: rough.life + 1, records: rough.records.length, end: got.end ?? 'none' };
}

const done = (): Promise<void> => Promise.resolve();

/** Engines, one after the other, until the run has finally ended. */
export async function live(
  world: World,
  random: Random,
  how: { readonly meddle: number; readonly problems: string[]; readonly retries?: number },
): Promise<RunState> {
  let retries = how.retries ?? 0;
  for (let lives = 0; lives < LIVES_MAX; lives++) {
    const journal = world.journal();
    const state = world.durable;
    const failed = state.phase === 'ended' && state.end === 'failed';
    if (failed && retries > 0) retries -= 1;
    else if (failed || (state.phase === 'ended' && state.end === 'done')) return fold(journal.program, journal.records);
    const session = { drivers: world.drivers(), open() {}, observe() {}, close: done, catchUp: done };
    const engine = new Engine({ id: 'r', journal, clock: world.clock(), session: () => session });
    const first: Input =
      journal.records.length === 0 ? REQUEST : { kind: 'run-resumed', retryFailed: failed, allowance: null };
    let over = false;
    const crashes: Error[] = [];
    engine.run(first).then(
      () => {
        over = true;
      },
      (error: unknown) => {
        over = true;
        crashes.push(error instanceof Error ? error : new Error(String(error)));
      },
    );
    for (let count = 0; ; count++) {
      await quiet();
      if (over) break;
      if (count > HAPPENINGS_MAX) throw new Error('the run goes on forever');
      if (random() < how.meddle) meddle(engine, random);
      decideGates(engine, world);
      for (const report of world.reports())
        engine.post({ kind: 'step-reported', ...report, notes: null, message: null });
      await quiet();
      if (over) break;
      if (!world.happen()) {
        how.problems.push(`the run hangs: ${JSON.stringify(fingerprint(engine.state))}`);
        return engine.state;
      }
    }
    for (const crash of crashes) if (!(crash instanceof Crash)) throw crash;
    world.die();
  }
  how.problems.push('the run does not end within its lives');
  return world.durable;
}

/** Lets every promise settle that can: no timer, so that a seed replays exactly. */
async function quiet(): Promise<void> {
  for (let hops = 0; hops < 12; hops++) await Promise.resolve();
}

function meddle(engine: Engine, random: Random): void {
  const roll = below(random, 3);
  if (roll === 0) engine.post({ kind: 'stop-requested', by: 'somebody', force: random() < 0.5 });
  if (roll === 1) engine.post({ kind: 'pause-requested', reason: 'somebody' });
  if (roll === 2)
    engine.post({
      kind: 'effect-finished',
      effect: 's0#99',
      outcome: success(),
    });
}

/** People decide each gate once, some of them before it is requested. Their decision depends only on the gate. */
function decideGates(engine: Engine, world: World): void {
  for (const step of world.durable.inFlight.values()) {
    if (
      step.effect?.kind !== 'gate' ||
      typeof step.effect.gate !== 'string' ||
      (world.durable.gates.get(step.effect.gate)?.verdict ?? null) !== null
    )
      continue;
    const gate = step.effect.gate;
    engine.post({
      kind: 'gate-decided',
      gate,
      verdict: { approved: hash(gate) % 2 === 0, by: 'ann', notes: null, answer: null },
      message: null,
    });
  }
}

function compare(wanted: RunState, got: RunState): string[] {
  if (reachesIntoFailure(wanted) || reachesIntoFailure(got)) return [];
  if (wanted.end !== got.end) return [`the calm run ends ${wanted.end}, the rough one ${got.end}`];
  if (wanted.end !== 'done') return [];
  const facts = (state: RunState, id: string): unknown => {
    const step = state.steps.get(id);
    return step === undefined ? null : { status: step.status, outputs: step.outputs, settlement: step.settlement };
  };
  const ids = new Set([...wanted.steps.keys(), ...got.steps.keys()]);
  return [...ids]
    .filter((id) => !dependsOnOrder(wanted, id) && !dependsOnOrder(got, id))
    .filter((id) => !isDeepStrictEqual(facts(wanted, id), facts(got, id)))
    .map(
      (id) => `${id} ended as ${JSON.stringify(facts(wanted, id))} in calm, as ${JSON.stringify(facts(got, id))} here`,
    );
}

/** A withdrawn stop: it is unknown whether the step itself failed or was stopped, and it is retried. */
function wasInterrupted(records: readonly JournalRecord[]): boolean {
  return records.some(({ decisions }) =>
    decisions.some((decision) => decision.kind === 'run-resumed' && decision.withdrawn),
  );
}

/**
 * Whether a step is skipped that needs something in a failed frame depends on the order of answers, and so does its
 * run.
 */
function reachesIntoFailure(state: RunState): boolean {
  return [...state.steps.values()].some(
    ({ skipped, frame }) =>
      skipped === 'need' &&
      !frame.steps.some(({ status, settlement }) => status === 'failed' && settlement === 'broken'),
  );
}

/** In a failed frame, which steps had started depends on the order of answers. */
function dependsOnOrder(state: RunState, id: string): boolean {
  const step = state.steps.get(id);
  if (step !== undefined && hasFailedRound(step)) return true;
  let frame = step?.frame;
  while (frame !== undefined) {
    if (frame.failing) return true;
    const above: string | null =
      frame.caller ?? (frame.owner === null ? null : (state.steps.get(frame.owner)?.frame.id ?? null));
    frame = above === null ? undefined : state.frames.get(above);
  }
  return false;
}

/** The outputs of a loop contain those of its steps. */
function hasFailedRound({ definition: { act }, children }: StepState): boolean {
  return act.kind === 'loop' && children.some(({ failing, steps }) => failing || steps.some(hasFailedRound));
}

/** G4: an ended run has only ended steps. G3: no gate is passed without a decision. */
function checkEnd(state: RunState): string[] {
  const problems: string[] = [];
  for (const step of state.steps.values()) {
    if (!isFinished(step)) problems.push(`G4: the run is ${state.end}, and ${step.id} is ${step.status}`);
    const { act } = step.definition;
    if (act.kind === 'effect' && act.effect.kind === 'gate' && step.status === 'done' && !state.gates.has(step.id)) {
      problems.push(`G3: ${step.id} was passed, and nobody decided it`);
    }
  }
  if (state.inFlight.size > 0)
    problems.push(`G5: the run is over, and ${[...state.inFlight.keys()].join(', ')} may still run`);
  return problems;
}

/** G1: finished steps stay finished, with the same outputs and the same attempt. */
function checkKept(before: RunState, after: RunState): string[] {
  return [...before.steps.values()].flatMap(({ id, status, attempt, outputs }) => {
    const now = after.steps.get(id);
    const kept =
      status !== 'done' ||
      (now?.status === 'done' && now.attempt === attempt && isDeepStrictEqual(now.outputs, outputs));
    return kept ? [] : [`G1: ${id} was done, and is ${now?.status} at attempt ${now?.attempt}`];
  });
}

/** The current kernel makes the same decisions, and a fold gives the same state. */
function checkReplay(program: Program, records: readonly JournalRecord[]): string[] {
  const state = initialState(program);
  for (const { seq, at, input, decisions } of records) {
    const again = decide(state, input, at);
    if (!isDeepStrictEqual(again, decisions)) return [`record ${seq} is decided otherwise in a replay`];
  }
  return isDeepStrictEqual(fingerprint(state), fingerprint(fold(program, records)))
    ? []
    : ['deciding and folding differ'];
}
