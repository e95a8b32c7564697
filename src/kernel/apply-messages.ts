// Applies decisions about gates and events. Part of `apply`.

import type { Decision } from './decision.ts';
import type { EmittedEvent } from './input.ts';
import type { GateState, RunState } from './state.ts';
import { requesterOf, EVENTS_MAX, EVENTS_SIZE_MAX, stepOf } from './state.ts';

export type MessageDecision = Extract<
  Decision,
  { kind: 'gate-asked' | 'gate-expired' | 'gate-decided' | 'wait-released' | 'event-emitted' | 'event-received' }
>;

export function applyMessage(state: RunState, decision: MessageDecision, at: number): void {
  switch (decision.kind) {
    case 'gate-asked': {
      const step = stepOf(state, decision.step);
      const gate = gateNamed(state, decision.gate);
      const requester = requesterOf(step);
      if (decision.anew) gate.verdict = null;
      if (decision.anew || gate.requests.size === 0) gate.openedAt = at;
      const request = gate.requests.get(requester) ?? { verdict: gate.verdict, expired: false };
      request.expired = false;
      gate.requests.set(requester, request);
      gate.prompt = decision.prompt;
      step.gate = decision.gate;
      return;
    }
    case 'gate-expired': {
      const step = stepOf(state, decision.step);
      const request = gateNamed(state, decision.gate).requests.get(requesterOf(step));
      if (request !== undefined) request.expired = true;
      return;
    }
    case 'gate-decided': {
      const gate = gateNamed(state, decision.gate);
      gate.verdict = decision.verdict;
      for (const request of gate.requests.values()) request.verdict ??= decision.verdict;
      return rememberMessage(state, decision.message);
    }
    case 'wait-released':
      stepOf(state, decision.step).interrupted = true;
      return;
    case 'event-emitted':
      return addEvent(state, decision.event, at);
    case 'event-received': {
      const step = stepOf(state, decision.step);
      step.eventsSeen = Math.max(step.eventsSeen, decision.event);
      if (decision.asking !== null) step.eventRequests.set(decision.asking, decision.event);
      const [oldest] = step.eventRequests.keys();
      if (step.eventRequests.size > EVENT_REQUESTS_MAX && oldest !== undefined) step.eventRequests.delete(oldest);
      return;
    }
  }
}

/** A command has one request at a time; a few commands of a step may run in parallel. */
const EVENT_REQUESTS_MAX = 16;

/** Makes a repeated verdict or report take effect once, even if its sender missed the reply. */
export function rememberMessage(state: RunState, message: string | null): void {
  if (message === null) return;
  state.seenMessages.add(message);
  const [oldest] = state.seenMessages;
  if (state.seenMessages.size > SEEN_MESSAGES_MAX && oldest !== undefined) state.seenMessages.delete(oldest);
}

/** More than can be in flight at once. */
const SEEN_MESSAGES_MAX = 1_000;

function gateNamed(state: RunState, name: string): GateState {
  const known = state.gates.get(name);
  if (known !== undefined) return known;
  const gate: GateState = { name, requests: new Map(), prompt: null, openedAt: null, verdict: null };
  state.gates.set(name, gate);
  return gate;
}

function addEvent(state: RunState, event: EmittedEvent, at: number): void {
  const { events } = state;
  events.count += 1;
  events.size += sizeOf(event);
  events.latest.push({ ...event, seq: events.count, at });
  events.ids.add(event.id);
  if (events.latest.length < 2 * EVENTS_MAX && events.size < EVENTS_SIZE_MAX) return;
  // Removes half of them at a time, so that the cost per event is constant.
  for (const forgotten of events.latest.splice(0, Math.ceil(events.latest.length / 2))) {
    events.ids.delete(forgotten.id);
    events.size -= sizeOf(forgotten);
  }
}

function sizeOf({ type, data }: EmittedEvent): number {
  return type.length + JSON.stringify(data).length;
}
