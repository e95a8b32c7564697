// Takes a move: feeds its inputs to the kernel, and whatever follows without a choice.
//
// advance/1  The clock is logical: what a rule of a test can delay is a millisecond later than the move before, a deadline
//            passes when it is due, and everything else takes no time, as in a test.
// advance/2  An effect with one possible outcome that nobody sees ends at once.
// advance/3  Once the end of the run is decided nothing new starts. So running steps are stopped, in one order: others
//            would end the run in the same way. But if only a step that failed through its children is to blame, another
//            one may still fail, and is to blame then.

import { Bug } from '../base/errors.ts';
import { success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { Program, RunRequest } from '../ir/program.ts';
import { decide } from '../kernel/decide.ts';
import type { Input } from '../kernel/input.ts';
import { CLEANUP_STEP, effectId, initialState, type RunState } from '../kernel/state.ts';
import type { Cause } from './causes.ts';
import { openFailures } from './endings.ts';
import { finished, type Move, type Moves } from './moves.ts';
import type { Observed, Watch } from './watch.ts';

/** No rule of a test delays them. */
const TAKES_NO_TIME: ReadonlySet<Cause['kind']> = new Set(['goes-on', 'judged', 'reads'] as const);

/** More inputs without a choice are a defect of this file. */
const INPUTS_MAX = 100_000;

export class Advance {
  readonly #moves: Moves;
  readonly #watch: Watch;

  constructor(moves: Moves, watch: Watch) {
    this.#moves = moves;
    this.#watch = watch;
  }

  start(program: Program, request: RunRequest): { readonly state: RunState; readonly observed: Observed } {
    const state = initialState(program);
    const observed = this.#watch.begin(this.#watch.initialFacts());
    this.#feed(state, { kind: 'run-requested', request, programHash: '' }, observed, 0);
    this.#settle(state, observed);
    return { state, observed };
  }

  /** Changes the state. */
  take(state: RunState, { inputs, cause, notBefore = 0 }: Move, facts: string): Observed {
    const observed = this.#watch.begin(facts);
    const at = Math.max(notBefore, (state.recordedAt ?? 0) + (TAKES_NO_TIME.has(cause.kind) ? 0 : 1));
    for (const input of inputs) this.#feed(state, input, observed, at);
    observed.at = state.recordedAt;
    // A move without inputs stops everything.
    this.#settle(state, observed, inputs.length > 0);
    return observed;
  }

  #settle(state: RunState, observed: Observed, mayWait = true): void {
    for (let count = 0; state.end === null; count++) {
      const input = this.#moves.prompt(state);
      if (input === null) return;
      if (count > INPUTS_MAX) throw new Bug('a step without a choice never ends');
      this.#feed(state, input, observed);
    }
    if (mayWait && mayBlameOthers(state)) return;
    for (let count = 0; state.phase !== 'ended'; count++) {
      const input = nextToEnd(state);
      if (input === null || count > INPUTS_MAX) throw new Bug('a run that is ending does not end');
      // What fails later is less to blame.
      this.#feed(state, input, observed, (state.recordedAt ?? 0) + 1);
    }
    this.#watch.seeEnd(state, observed);
  }

  #feed(state: RunState, input: Input, observed: Observed, at = state.recordedAt ?? 0): void {
    const due = input.kind === 'deadline-passed' ? (state.timers.get(input.timer)?.at ?? 0) : 0;
    const decisions = decide(state, input, Math.max(due, at, state.recordedAt ?? 0));
    for (const decision of decisions) this.#watch.see(state, decision, observed);
    this.#watch.seeState(state, observed);
  }
}

function mayBlameOthers(state: RunState): boolean {
  if (state.phase !== 'ending' || state.end !== 'failed' || openFailures(state).length > 0) return false;
  for (const { effect, stopping } of state.inFlight.values())
    if (effect?.kind !== 'gate' && stopping === null) return true;
  return false;
}

/** What brings a run that is ending nearer to its end. */
function nextToEnd(state: RunState): Input | null {
  const running = [...state.inFlight.values()].filter(({ effect }) => effect?.kind !== 'gate');
  if (state.timers.has('drain') && running.some(({ stopping }) => stopping === null))
    return { kind: 'deadline-passed', timer: 'drain' };
  for (const [id, { effect }] of state.inFlight) if (effect?.kind !== 'gate') return finished(id, STOPPED);
  for (const [id, { status }] of state.agentEffects) {
    if (status === 'closing') return finished(id, success());
    if (status === 'opening') return finished(id, STOPPED);
  }
  return state.cleanup === null ? null : finished(effectId(CLEANUP_STEP, state.cleanups), success());
}

const STOPPED = { kind: 'failure', failure: failure('stopped', 'stopped') } as const;
