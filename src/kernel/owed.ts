// What the world still owes the run an answer for: the whole of recovery is to ask for it again.

import { assert } from '../base/assert.ts';
import type { Effect } from '../ir/effect.ts';
import type { Decision } from './decision.ts';
import { variablesInSight } from './scope.ts';
import type { RunState, StepState } from './state.ts';
import { CLEANUP_STEP, effectId, retryTimer, stepOf, timeoutTimer } from './state.ts';

export function owed(state: RunState): readonly Effect[] {
  const effects = [...state.asked.values()]
    .filter(({ effect }) => effect?.kind !== 'gate')
    .map((step) => effectOf(state, step));
  return state.cleanup === null ? effects : [...effects, cleanupEffect(state)];
}

/** What a decision asks of the world, once it is durable. */
export type Request =
  | { readonly kind: 'start'; readonly effect: Effect }
  | { readonly kind: 'stop'; readonly effect: string; readonly force: boolean };

export function requestsOf(state: RunState, decision: Decision): readonly Request[] {
  switch (decision.kind) {
    case 'step-started': {
      const step = stepOf(state, decision.step);
      // Several records are made durable together: a later one may have taken the step further already.
      if (step.effect === null || step.effect.kind === 'gate' || step.attempt !== decision.attempt) return [];
      return [{ kind: 'start', effect: effectOf(state, step) }];
    }
    case 'steps-stopping':
      return decision.steps.map((id) => ({
        kind: 'stop',
        effect: effectId(id, stepOf(state, id).attempt),
        force: decision.force,
      }));
    case 'cleanup-started':
      return state.cleanup === null ? [] : [{ kind: 'start', effect: cleanupEffect(state) }];
    case 'cleanup-stopping':
      return [{ kind: 'stop', effect: effectId(CLEANUP_STEP, state.cleanups), force: decision.force }];
    default:
      return [];
  }
}

/** Ids of the timers that a decision sets. */
export function timersOf(state: RunState, decision: Decision): readonly string[] {
  switch (decision.kind) {
    case 'step-started':
      return decision.timeoutAt === null ? [] : [timeoutTimer(decision.step, decision.attempt)];
    case 'step-failed-once':
      return [retryTimer(decision.step)];
    case 'run-ending':
      return decision.drainUntil === null ? [] : ['drain'];
    case 'cleanup-started':
      return ['cleanup'];
    case 'run-resumed':
      return [...state.timers.keys()];
    default:
      return [];
  }
}

/** What must be asked for again of a stop that the engine did not live to pass on. */
export function stopsOwed(state: RunState): readonly Request[] {
  const stops = [...state.asked.values()]
    .filter(({ stopping }) => stopping !== null)
    .map(({ id, attempt }): Request => ({ kind: 'stop', effect: effectId(id, attempt), force: false }));
  if (state.cleanup?.stopping)
    stops.push({ kind: 'stop', effect: effectId(CLEANUP_STEP, state.cleanups), force: false });
  return stops;
}

function effectOf(state: RunState, step: StepState): Effect {
  assert(step.effect !== null, `step ${step.id} asks for nothing`);
  return {
    id: effectId(step.id, step.attempt),
    step: step.id,
    attempt: step.attempt,
    spec: step.effect,
    session: step.frame.nextSession,
    variables: variablesInSight(state, step),
  };
}

function cleanupEffect(state: RunState): Effect {
  assert(state.cleanup !== null, 'no cleanup is under way');
  return {
    id: effectId(CLEANUP_STEP, state.cleanups),
    step: CLEANUP_STEP,
    attempt: state.cleanups,
    spec: state.cleanup.effect,
    session: { kind: 'fresh' },
    variables: state.request?.variables ?? {},
  };
}
