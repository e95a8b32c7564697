// Reopens a run that has ended, or is ending, without being done. The given steps become pending or running again,
// their frames reopen, and every index is rebuilt. Besides ending a run, this is the only operation whose cost is the
// size of the run.

import { canGrow, type Limits } from '../ir/program.ts';
import { registerNeeds } from './needs.ts';
import type { FrameState, RunState, StepState } from './state.ts';
import { effectId, failsOwner, frameAround, holderOf, isAwaited, stepOf, timeoutTimer } from './state.ts';

export function reopen(state: RunState, ids: readonly string[]): void {
  state.phase = 'running';
  state.end = null;
  state.endForced = false;
  state.reason = null;
  state.pause = null;
  state.endedAt = null;
  state.result = null;
  state.looseFailure = false;
  abandonRecoveries(state, new Set(ids));
  // Recoveries of a step that is retried stay as they ended.
  const steps = ids.map((id) => stepOf(state, id)).filter(({ frame }) => !frame.abandoned);
  for (const { frame } of steps.filter(({ status }) => status === 'failed')) forgetFailure(state, frame);
  for (const step of steps) {
    if (step.failure?.kind === 'gate-rejected') forgetVerdict(state, step);
    reopenStep(step);
  }
  for (const step of state.inFlight.values()) {
    if (step.stopping !== 'run-ending') continue;
    // Its process may still run. A later failure does not count as the step's own.
    step.stopping = null;
    step.interrupted = true;
  }
  reopenFrames(state);
  reindex(state);
}

/** The failure will be retried, so the frames that failed with it are no longer failing. */
function forgetFailure(state: RunState, frame: FrameState): void {
  for (let now: FrameState | null = frame; now !== null; now = frameAround(state, now)) now.failing = false;
}

/** The step asks again. Other requests keep their verdict. */
function forgetVerdict({ gates }: RunState, { id, gate: name }: StepState): void {
  const gate = gates.get(name ?? '');
  if (gate === undefined) return;
  gate.requests.delete(id);
  gate.verdict = null;
}

/** A step that had child frames waits for them again; any other starts another attempt. */
function reopenStep(step: StepState): void {
  const { act } = step.definition;
  // The list may have changed; named iterations are matched by name.
  if (act.kind === 'each' && act.key !== null) step.items = step.names = null;
  // A loop that was not over may run for as many rounds again.
  if (step.failure?.kind === 'rounds-exhausted') step.roundsAllowed += step.roundsMax;
  const isAwaitedBelow = ({ join, closed, abandoned }: FrameState): boolean =>
    failsOwner({ join }) || (join === 'answer' && !closed && !abandoned);
  const waitsBelow = act.kind === 'each' ? step.items !== null : step.children.some(isAwaitedBelow);
  step.status = waitsBelow ? 'running' : 'pending';
  step.settlement = 'open';
  const isGrown = (act.kind !== 'loop' && waitsBelow) || !canGrow(step.definition);
  step.grown = step.items === null ? isGrown : step.blocks === step.items.length;
  step.failures = 0;
  step.failure = null;
  step.skipped = null;
  step.finishedAt = null;
  step.agent = null;
}

/** Oldest frame first. A retried step does not need its earlier recovery. */
function abandonRecoveries(state: RunState, again: ReadonlySet<string>): void {
  for (const frame of state.frames.values()) {
    const owner = frame.owner === null ? null : stepOf(state, frame.owner);
    const superseded =
      owner !== null &&
      again.has(owner.id) &&
      (frame.join === 'recover' || (frame.join === 'answer' && owner.status === 'failed'));
    if (!superseded && frameAround(state, frame)?.abandoned !== true) continue;
    frame.abandoned = true;
    frame.closed = true;
    for (const step of frame.steps) {
      if (step.settlement !== 'open') continue;
      step.status = 'skipped';
      step.settlement = 'broken';
    }
  }
}

/** Newest frame first, since a frame that contains something open is open itself. */
function reopenFrames(state: RunState): void {
  const holding = new Set<FrameState>();
  state.openFrames = 0;
  for (const frame of [...state.frames.values()].toReversed()) {
    if (frame.abandoned) continue;
    frame.open = frame.steps.filter((step) => step.settlement === 'open').length;
    if (frame.closed && frame.open === 0 && !holding.has(frame)) {
      if (frame.failing && frame.caller === null && frame.join === 'loose') state.looseFailure = true;
      continue;
    }
    frame.closed = false;
    state.openFrames += 1;
    const holder = holderOf(state, frame);
    if (holder !== null) holding.add(holder);
  }
}

function reindex(state: RunState): void {
  const { agenda } = state;
  for (const part of [agenda.ready, agenda.readyForAgent, agenda.blocked, agenda.unresolvable, agenda.joinable])
    part.clear();
  agenda.closable.clear();
  agenda.unadmitted.clear();
  agenda.askedTurns.clear();
  state.unresolvedById.clear();
  state.inFlight.clear();
  state.timers.clear();
  for (const agent of state.agents.values()) {
    agent.busy = null;
    agent.queue.clear();
  }
  for (const step of state.steps.values()) {
    step.unmet = 0;
    step.waiters.length = 0;
    step.unresolvedNeeds.length = 0;
    step.queuedFor = null;
    step.openChildren = step.children.filter((child) => isAwaited(child) && !child.closed).length;
    step.childFailed = step.children.some((child) => failsOwner(child) && child.closed && child.failing);
  }
  for (const frame of state.frames.values()) {
    const holder = frame.closed ? null : holderOf(state, frame);
    if (holder !== null) holder.open += 1;
  }
  for (const frame of state.frames.values()) if (!frame.closed && frame.open === 0) agenda.closable.add(frame);
  for (const step of state.steps.values()) {
    if (step.status === 'pending' && step.frame.failing && step.attempt === 0) agenda.blocked.add(step);
    else if (step.status === 'pending') registerNeeds(state, step);
    else if (step.effect !== null) {
      state.inFlight.set(effectId(step.id, step.attempt), step);
      const agent = step.definition.agent === null ? undefined : state.agents.get(step.agent ?? '');
      if (agent !== undefined) agent.busy = step;
      const id = timeoutTimer(step.id, step.attempt);
      if (step.timeoutAt !== null && step.status === 'running')
        state.timers.set(id, { id, at: step.timeoutAt, kind: 'timeout', step: step.id });
    } else if (step.status === 'running' || (step.status === 'done' && !step.grown)) agenda.joinable.add(step);
  }
}

/** Whether a resume allows the run to grow further, or less far. */
export function changesLimits(now: Limits, wanted: Partial<Limits>): boolean {
  return Object.entries(wanted).some(([name, limit]) => now[name as keyof Limits] !== limit);
}
