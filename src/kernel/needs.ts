// When a step may start. Each open need is counted once at the waiting step and known at what it waits for, so that an
// end touches only those who waited for it (K6). A need that names something below a step which has not grown yet is a
// hope, kept at that step and looked at again when it has grown.

import type { IdTree } from './id-tree.ts';
import { descend, matches } from './id-tree.ts';
import type { Hope, RunState, StepState } from './state.ts';
import { wantsAgent } from './state.ts';

/** Counts what the step still waits for, and puts it on the agenda when that is nothing. */
export function awaitNeeds(state: RunState, waiter: StepState): void {
  for (const need of waiter.definition.needs) awaitNeed(state, waiter, need);
  reconsider(state, waiter);
}

/** Tells those who wait for a step that it is settled. */
export function settle(state: RunState, step: StepState, settlement: 'met' | 'broken'): void {
  step.settlement = settlement;
  if (settlement === 'broken') abandonHopes(state, step);
  // One that nobody waits for may be done and still bring forth.
  if (settlement === 'broken' || !bringsForth(step)) grow(state, step);
  for (const waiter of step.waiters.splice(0)) {
    waiter.unmet -= 1;
    if (settlement === 'broken') doom(state, waiter);
    reconsider(state, waiter);
  }
}

/** Tells those who hoped for something below a step that all of it exists now. */
export function grow(state: RunState, step: StepState): void {
  if (step.grown) return;
  step.grown = true;
  for (const { waiter, rest, pattern, fulfilled } of step.hopes.splice(0)) {
    if (fulfilled) continue;
    waiter.unmet -= 1;
    awaitPath(state, waiter, nodeOf(step), rest, pattern);
    reconsider(state, waiter);
  }
}

/** Nothing more comes below a step that failed: whoever hoped for it is skipped with it. */
function abandonHopes(state: RunState, step: StepState): void {
  for (const { waiter, fulfilled } of step.hopes.splice(0)) {
    if (fulfilled) continue;
    waiter.unmet -= 1;
    doom(state, waiter);
  }
}

/** Turns the hopes for a step that has come into being into plain waiting for it. */
export function fulfil(state: RunState, step: StepState): void {
  for (const hope of state.hoped.get(step.id) ?? []) {
    if (hope.fulfilled) continue;
    hope.fulfilled = true;
    step.waiters.push(hope.waiter);
  }
  state.hoped.delete(step.id);
}

function awaitNeed(state: RunState, waiter: StepState, need: string): void {
  awaitPath(state, waiter, waiter.frame.node, need.split('.'), need.includes('*'));
}

function nodeOf({ id, frame }: StepState): IdTree<StepState> {
  return descend(frame.node, `${id.slice(frame.prefix.length)}.`);
}

/** A pattern that fits nothing is met; a name that can no longer come into being is hopeless. */
function awaitPath(
  state: RunState,
  waiter: StepState,
  node: IdTree<StepState>,
  segments: readonly string[],
  pattern: boolean,
): void {
  const found = awaitBelow(state, waiter, node, segments, pattern);
  if (found > 0 || pattern) return;
  if (waiter.status === 'pending') state.agenda.hopeless.add(waiter);
}

/** Counts every step below the node that the segments name, and every hope for one. Returns how many there are. */
function awaitBelow(
  state: RunState,
  waiter: StepState,
  node: IdTree<StepState>,
  segments: readonly string[],
  pattern: boolean,
): number {
  const [first, ...rest] = segments;
  if (first === undefined) return 0;
  let found = 0;
  for (const next of matches(node, first)) {
    const step = next.value;
    if (rest.length > 0 && step !== null && !step.grown) {
      found += 1;
      hopeFor(state, waiter, step, rest, pattern);
    } else if (rest.length > 0) {
      found += awaitBelow(state, waiter, next, rest, pattern);
    } else if (step === null) {
      // A prefix without a step of its own (`each.0`): all that stands below it.
      found += awaitAllBelow(state, waiter, next);
    } else if (step !== waiter) {
      found += 1;
      awaitStep(state, waiter, step);
    }
  }
  return found;
}

function hopeFor(
  state: RunState,
  waiter: StepState,
  above: StepState,
  rest: readonly string[],
  pattern: boolean,
): void {
  const hope: Hope = { waiter, rest, pattern, fulfilled: false };
  waiter.unmet += 1;
  above.hopes.push(hope);
  if (pattern) return;
  const id = [above.id, ...rest].join('.');
  const others = state.hoped.get(id);
  if (others === undefined) state.hoped.set(id, [hope]);
  else others.push(hope);
}

function awaitAllBelow(state: RunState, waiter: StepState, node: IdTree<StepState>): number {
  let found = 0;
  for (const next of node.below.values()) {
    if (next.value === null) found += awaitAllBelow(state, waiter, next);
    else if (next.value !== waiter) {
      found += 1;
      awaitStep(state, waiter, next.value);
    }
  }
  return found;
}

function awaitStep(state: RunState, waiter: StepState, step: StepState): void {
  if (step.settlement === 'broken') doom(state, waiter);
  if (step.settlement !== 'open') return;
  waiter.unmet += 1;
  step.waiters.push(waiter);
}

function doom(state: RunState, waiter: StepState): void {
  if (waiter.status === 'pending') state.agenda.doomed.add(waiter);
}

function reconsider(state: RunState, step: StepState): void {
  const { doomed, hopeless } = state.agenda;
  if (step.status !== 'pending' || step.unmet > 0 || doomed.has(step) || hopeless.has(step)) return;
  step.eventsBefore = state.events.count;
  becomeReady(state, step);
}

export function becomeReady(state: RunState, step: StepState): void {
  (wantsAgent(step) ? state.agenda.readyForAgent : state.agenda.ready).add(step);
}

function bringsForth({ definition: { act }, items, blocks }: StepState): boolean {
  return act.kind === 'each' && !act.join && items !== null && blocks < items.length;
}
