// What decisions about gates and events do to the state: a part of `apply`.

import type { Decision } from './decision.ts';
import type { EmittedEvent } from './input.ts';
import type { GateState, RunState } from './state.ts';
import { askerOf, EVENTS_KEPT, EVENTS_SIZE_MAX, stepOf } from './state.ts';

export type TalkDecision = Extract<
  Decision,
  { kind: 'gate-asked' | 'gate-expired' | 'gate-decided' | 'wait-released' | 'event-emitted' | 'event-received' }
>;

export function applyTalk(state: RunState, decision: TalkDecision, at: number): void {
  switch (decision.kind) {
    case 'gate-asked': {
      const step = stepOf(state, decision.step);
      const gate = gateNamed(state, decision.gate);
      if (decision.anew) {
        gate.askers.clear();
        gate.verdict = null;
        gate.decidedAt = null;
        gate.openedAt = null;
      }
      gate.askers.add(askerOf(step));
      gate.openedAt ??= at;
      gate.prompt = decision.prompt;
      step.gate = decision.gate;
      step.gateExpired = false;
      return;
    }
    case 'gate-expired':
      stepOf(state, decision.step).gateExpired = true;
      return;
    case 'gate-decided': {
      const gate = gateNamed(state, decision.gate);
      gate.verdict = decision.verdict;
      gate.decidedAt = at;
      return;
    }
    case 'wait-released':
      stepOf(state, decision.step).interrupted = true;
      return;
    case 'event-emitted':
      return keepEvent(state, decision.event, at);
    case 'event-received': {
      const step = stepOf(state, decision.step);
      step.eventsSeen = decision.event;
      if (decision.asking !== null) step.eventAskings.set(decision.asking, decision.event);
      const [oldest] = step.eventAskings.keys();
      if (step.eventAskings.size > ASKINGS_KEPT && oldest !== undefined) step.eventAskings.delete(oldest);
      return;
    }
  }
}

/** A command asks one question at a time; a few may do so side by side. */
const ASKINGS_KEPT = 16;

function gateNamed(state: RunState, name: string): GateState {
  const known = state.gates.get(name);
  if (known !== undefined) return known;
  const gate: GateState = { name, askers: new Set(), prompt: null, openedAt: null, verdict: null, decidedAt: null };
  state.gates.set(name, gate);
  return gate;
}

function keepEvent(state: RunState, event: EmittedEvent, at: number): void {
  const { events } = state;
  events.count += 1;
  events.size += sizeOf(event);
  events.latest.push({ ...event, seq: events.count, at });
  events.ids.add(event.id);
  if (events.latest.length < 2 * EVENTS_KEPT && events.size < EVENTS_SIZE_MAX) return;
  // By halves, so that forgetting costs each event the same.
  for (const forgotten of events.latest.splice(0, Math.ceil(events.latest.length / 2))) {
    events.ids.delete(forgotten.id);
    events.size -= sizeOf(forgotten);
  }
}

function sizeOf({ type, data }: EmittedEvent): number {
  return type.length + JSON.stringify(data).length;
}
