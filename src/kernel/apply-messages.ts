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
      const asker = askerOf(step);
      if (decision.anew) gate.verdict = null;
      if (decision.anew || gate.askers.size === 0) gate.openedAt = at;
      const asking = gate.askers.get(asker) ?? { verdict: gate.verdict, expired: false };
      asking.expired = false;
      gate.askers.set(asker, asking);
      gate.prompt = decision.prompt;
      step.gate = decision.gate;
      return;
    }
    case 'gate-expired': {
      const step = stepOf(state, decision.step);
      const asking = gateNamed(state, decision.gate).askers.get(askerOf(step));
      if (asking !== undefined) asking.expired = true;
      return;
    }
    case 'gate-decided': {
      const gate = gateNamed(state, decision.gate);
      gate.verdict = decision.verdict;
      for (const asking of gate.askers.values()) asking.verdict ??= decision.verdict;
      return hear(state, decision.message);
    }
    case 'wait-released':
      stepOf(state, decision.step).interrupted = true;
      return;
    case 'event-emitted':
      return keepEvent(state, decision.event, at);
    case 'event-received': {
      const step = stepOf(state, decision.step);
      step.eventsSeen = Math.max(step.eventsSeen, decision.event);
      if (decision.asking !== null) step.eventAskings.set(decision.asking, decision.event);
      const [oldest] = step.eventAskings.keys();
      if (step.eventAskings.size > ASKINGS_KEPT && oldest !== undefined) step.eventAskings.delete(oldest);
      return;
    }
  }
}

/** A command asks one question at a time; a few may do so side by side. */
const ASKINGS_KEPT = 16;

/** A message that brought a decision or a report is heard once, also when its sender did not hear the answer. */
export function hear(state: RunState, message: string | null): void {
  if (message === null) return;
  state.heard.add(message);
  const [oldest] = state.heard;
  if (state.heard.size > HEARD_KEPT && oldest !== undefined) state.heard.delete(oldest);
}

/** More than can be on their way at once. */
const HEARD_KEPT = 1_000;

function gateNamed(state: RunState, name: string): GateState {
  const known = state.gates.get(name);
  if (known !== undefined) return known;
  const gate: GateState = { name, askers: new Map(), prompt: null, openedAt: null, verdict: null };
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
