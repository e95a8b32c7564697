// A state as plain data, with its indexes, to compare two ways of reaching it: deciding and replaying, or a crashed and
// an undisturbed run. Caches such as agent queues are left out.

import type { RunState } from '../../src/kernel/state.ts';

export function fingerprint(state: RunState): unknown {
  const queued = new Set([...state.agents.values()].flatMap(({ queue }) => [...queue]));
  const ready = [...state.agenda.ready, ...state.agenda.readyForAgent, ...state.agenda.unadmitted, ...queued].filter(
    ({ status }) => status === 'pending',
  );
  return {
    phase: state.phase,
    end: state.end,
    reason: state.reason,
    result: state.result,
    openFrames: state.openFrames,
    looseFailure: state.looseFailure,
    warnings: state.warnings,
    steps: Object.fromEntries(
      [...state.steps.values()].map((step) => [
        step.id,
        {
          status: step.status,
          attempt: step.attempt,
          finishedAt: step.finishedAt,
          cost: step.cost,
          failures: step.failures,
          failure: step.failure,
          outputs: step.outputs,
          agent: step.agent,
          effect: step.effect,
          stopping: step.stopping,
          items: step.items,
          roundsAllowed: step.roundsAllowed,
          delayedRound: step.delayedRound,
          names: step.names,
          gate: step.gate,
          eventsBefore: step.eventsBefore,
          eventsSeen: step.eventsSeen,
          notes: step.notes,
          settlement: step.settlement,
          unmet: step.unmet,
          grown: step.grown,
          openChildren: step.openChildren,
          childFailed: step.childFailed,
          waiters: step.waiters.map(({ id }) => id).toSorted(),
        },
      ]),
    ),
    frames: Object.fromEntries(
      [...state.frames.values()].map(({ id, open, closed, failing, value, nextSession }) => [
        id,
        { open, closed, failing, value, nextSession },
      ]),
    ),
    lanes: Object.fromEntries([...state.lanes].map(([name, { visits, forks }]) => [name, { visits, forks }])),
    inFlight: [...state.inFlight.keys()].toSorted(),
    timers: [...state.timers.keys()].toSorted(),
    gates: [...state.gates.values()].map((gate) => ({ ...gate, requests: [...gate.requests] })),
    seenMessages: [...state.seenMessages],
    agents: Object.fromEntries(
      [...state.agents.values()].map(({ name, status, generation, info }) => [name, { status, generation, info }]),
    ),
    agentEffects: [...state.agentEffects.keys()].toSorted(),
    events: state.events,
    cost: state.cost,
    absences: state.absences,
    transitions: state.transitions,
    turns: state.turns,
    allowance: state.allowance,
    budgets: state.budgets,
    extra: state.extra,
    spending: { ...state.spending, reservations: [...state.spending.reservations], known: [...state.spending.known] },
    pause: state.pause,
    limits: state.limits,
    busy: Object.fromEntries(
      [...state.agents].filter(([, { busy }]) => busy !== null).map(([name, { busy }]) => [name, busy?.id]),
    ),
    ready: [...new Set(ready)].map(({ id }) => id).toSorted(),
    parked: [...state.parked].map(({ id }) => id).toSorted(),
    blocked: [...state.agenda.blocked].map(({ id }) => id).toSorted(),
  };
}
