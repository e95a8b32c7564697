// Decides when a step may start. The waiting step counts its open needs, and each needed step lists its waiters, so
// that settling a step touches only those (K6). A need on a step below one that has not grown is unresolved. It is
// stored at that step, and resolved when the needed step appears or the growth ends.

import type { IdTree } from './id-tree.ts';
import { descend, matches } from './id-tree.ts';
import type { UnresolvedNeed, RunState, StepState } from './state.ts';
import { needsAgent } from './state.ts';

/** Counts the open needs of a step. Adds it to the agenda if there are none. */
export function registerNeeds(state: RunState, waiter: StepState): void {
  for (const need of waiter.definition.needs) registerNeed(state, waiter, need);
  updateReadiness(state, waiter);
}

/** Settles the step and updates the steps that wait for it. */
export function settleStep(state: RunState, step: StepState, settlement: 'met' | 'broken'): void {
  step.settlement = settlement;
  if (settlement === 'broken') blockUnresolved(state, step);
  // A foreach without join may be done and still start iterations.
  if (settlement === 'broken' || !hasMoreIterations(step)) markGrown(state, step);
  for (const waiter of step.waiters.splice(0)) {
    waiter.unmet -= 1;
    if (settlement === 'broken') block(state, waiter);
    updateReadiness(state, waiter);
  }
}

/** All child frames exist: resolves the needs on steps below. */
export function markGrown(state: RunState, step: StepState): void {
  if (step.grown) return;
  step.grown = true;
  for (const { waiter, segments, isPattern, resolved } of step.unresolvedNeeds.splice(0)) {
    if (resolved) continue;
    waiter.unmet -= 1;
    registerPath(state, waiter, nodeOf(step), segments, isPattern);
    updateReadiness(state, waiter);
  }
}

/** A failed step grows no further: blocks the steps that need something below it. */
function blockUnresolved(state: RunState, step: StepState): void {
  for (const { waiter, resolved } of step.unresolvedNeeds.splice(0)) {
    if (resolved) continue;
    waiter.unmet -= 1;
    block(state, waiter);
  }
}

/** Turns unresolved needs on a new step into plain waits. */
export function resolveNeeds(state: RunState, step: StepState): void {
  for (const need of state.unresolvedById.get(step.id) ?? []) {
    if (need.resolved) continue;
    need.resolved = true;
    step.waiters.push(need.waiter);
  }
  state.unresolvedById.delete(step.id);
}

function registerNeed(state: RunState, waiter: StepState, need: string): void {
  registerPath(state, waiter, waiter.frame.node, need.split('.'), need.includes('*'));
}

function nodeOf({ id, frame }: StepState): IdTree<StepState> {
  return descend(frame.node, `${id.slice(frame.prefix.length)}.`);
}

/** A pattern without matches is met. A name that can no longer appear is unresolvable. */
function registerPath(
  state: RunState,
  waiter: StepState,
  node: IdTree<StepState>,
  segments: readonly string[],
  isPattern: boolean,
): void {
  const found = registerBelow(state, waiter, node, segments, isPattern);
  if (found > 0 || isPattern) return;
  if (waiter.status === 'pending') state.agenda.unresolvable.add(waiter);
}

/**
 * Registers a wait for every matching step, and for every step below which a match may appear. Returns their number.
 */
function registerBelow(
  state: RunState,
  waiter: StepState,
  node: IdTree<StepState>,
  segments: readonly string[],
  isPattern: boolean,
): number {
  const [first, ...rest] = segments;
  if (first === undefined) return 0;
  let found = 0;
  for (const next of matches(node, first)) {
    const step = next.value;
    if (rest.length > 0 && step !== null && !step.grown) {
      found += 1;
      addUnresolved(state, waiter, step, rest, isPattern);
    } else if (rest.length > 0) {
      found += registerBelow(state, waiter, next, rest, isPattern);
    } else if (step === null) {
      // A prefix that is not a step (`each.0`) means all steps below it.
      found += registerAllBelow(state, waiter, next);
    } else if (step !== waiter) {
      found += 1;
      registerStep(state, waiter, step);
    }
  }
  return found;
}

function addUnresolved(
  state: RunState,
  waiter: StepState,
  above: StepState,
  segments: readonly string[],
  isPattern: boolean,
): void {
  const need: UnresolvedNeed = { waiter, segments, isPattern, resolved: false };
  waiter.unmet += 1;
  above.unresolvedNeeds.push(need);
  if (isPattern) return;
  const id = [above.id, ...segments].join('.');
  const others = state.unresolvedById.get(id);
  if (others === undefined) state.unresolvedById.set(id, [need]);
  else others.push(need);
}

function registerAllBelow(state: RunState, waiter: StepState, node: IdTree<StepState>): number {
  let found = 0;
  for (const next of node.below.values()) {
    if (next.value === null) found += registerAllBelow(state, waiter, next);
    else if (next.value !== waiter) {
      found += 1;
      registerStep(state, waiter, next.value);
    }
  }
  return found;
}

function registerStep(state: RunState, waiter: StepState, step: StepState): void {
  if (step.settlement === 'broken') block(state, waiter);
  if (step.settlement !== 'open') return;
  waiter.unmet += 1;
  step.waiters.push(waiter);
}

function block(state: RunState, waiter: StepState): void {
  if (waiter.status === 'pending') state.agenda.blocked.add(waiter);
}

function updateReadiness(state: RunState, step: StepState): void {
  const { blocked, unresolvable } = state.agenda;
  if (step.status !== 'pending' || step.unmet > 0 || blocked.has(step) || unresolvable.has(step)) return;
  step.eventsBefore = state.events.count;
  becomeReady(state, step);
}

export function becomeReady(state: RunState, step: StepState): void {
  (needsAgent(step) ? state.agenda.readyForAgent : state.agenda.ready).add(step);
}

function hasMoreIterations({ definition: { act }, items, blocks }: StepState): boolean {
  return act.kind === 'each' && !act.join && items !== null && blocks < items.length;
}
