// Decides when a step may start. The waiting step counts its open needs, and each needed step lists its waiters, so
// that settling a step touches only those (K6). A need on a step below one that has not grown is unresolved. It is
// stored at that step, and resolved when the needed step appears or the growth ends.

import { descend, getOrAdd, type IdTree, matches } from './collections.ts';
import { needsAgent, type RunState, type StepState, type UnresolvedNeed } from './state.ts';

/** Counts the open needs of a step. Adds it to the agenda if there are none. */
export function registerNeeds(state: RunState, waiter: StepState): void {
  for (const need of waiter.definition.needs) {
    registerPath(state, waiter.frame.node, { waiter, segments: need.split('.'), isPattern: need.includes('*') });
  }
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
  const { id, frame } = step;
  const node = descend(frame.node, `${id.slice(frame.prefix.length)}.`);
  for (const need of step.unresolvedNeeds.splice(0)) {
    if (need.resolved) continue;
    need.waiter.unmet -= 1;
    registerPath(state, node, need);
    updateReadiness(state, need.waiter);
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

type NeededPath = Omit<UnresolvedNeed, 'resolved'>;

/** A pattern without matches is met. A name that can no longer appear is unresolvable. */
function registerPath(state: RunState, node: IdTree<StepState>, need: NeededPath): void {
  const found = registerBelow(state, node, need);
  if (found > 0 || need.isPattern) return;
  if (need.waiter.status === 'pending') state.agenda.unresolvable.add(need.waiter);
}

/** Registers a wait for every match, and for every step below which one may appear. Returns their number. */
function registerBelow(state: RunState, node: IdTree<StepState>, need: NeededPath): number {
  const { waiter, isPattern } = need;
  const [first, ...rest] = need.segments;
  if (first === undefined) return 0;
  let found = 0;
  for (const next of matches(node, first)) {
    const step = next.value;
    if (rest.length > 0 && step !== null && !step.grown) {
      found += 1;
      addUnresolved(state, step, { waiter, segments: rest, isPattern, resolved: false });
    } else if (rest.length > 0) {
      found += registerBelow(state, next, { waiter, segments: rest, isPattern });
    } else {
      found += registerStep(state, waiter, next);
    }
  }
  return found;
}

function addUnresolved(state: RunState, above: StepState, need: UnresolvedNeed): void {
  need.waiter.unmet += 1;
  above.unresolvedNeeds.push(need);
  if (need.isPattern) return;
  getOrAdd(state.unresolvedById, [above.id, ...need.segments].join('.'), () => []).push(need);
}

/** A prefix that is not a step (`each.0`) means all steps below it. Returns the number of steps. */
function registerStep(state: RunState, waiter: StepState, { value: step, below }: IdTree<StepState>): number {
  if (step === waiter) return 0;
  if (step === null) {
    let found = 0;
    for (const next of below.values()) found += registerStep(state, waiter, next);
    return found;
  }
  if (step.settlement === 'broken') block(state, waiter);
  if (step.settlement === 'open') {
    waiter.unmet += 1;
    step.waiters.push(waiter);
  }
  return 1;
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
