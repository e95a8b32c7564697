// Partial-order reduction: of several independent sources only one is explored first. The others follow later, and lead
// to the same states whatever the order.
//
// reduction/1  A source may go first if nothing that can happen before it could depend on it: no other unfinished step, and
//              nothing that such a step may enter, uses an agent, gate or event that its moves use.
// reduction/2  Its moves may not hide anything (watch/2), nor change who is to blame if the run fails later, and may skip
//              only steps that wait for it. If it may fail the run, nobody else may become the one to blame before.
// reduction/3  A move that ends the run depends on everything. So all such moves of all sources are explored in each state.
// reduction/4  One move must lead to a state that was not expanded yet; otherwise a loop could postpone others forever.
// reduction/5  A source does not go first if a step that waits for it and for others may fail as soon as it is ready.
// reduction/6  Nothing is reduced if the run may fail without a failure that nobody handles: then the step that ended last is
//              to blame.
// reduction/7  A move that starts a lane may not go first: the others would come after all lanes that are explored.

import { frameOf, type FrameState, type RunState, type StepState } from '../kernel/state.ts';
import { blamedFailures } from './endings.ts';
import { containsFailures, type Footprints, handlesFailures, union } from './footprint.ts';
import type { Source } from './moves.ts';
import type { Names } from './names.ts';
import type { Observed } from './watch.ts';

/** A move that was tried. */
export interface Tried {
  readonly state: RunState;
  readonly observed: Observed;
}

export interface Trial<T extends Tried> {
  /** All moves of a source. */
  all(source: Source): readonly T[];
  /** Only those moves that may end the run. */
  ending(source: Source): readonly T[];
  isExpanded(tried: T): boolean;
}

/** What tells whether two sources depend on each other. */
export interface Dependence {
  readonly footprints: Footprints;
  readonly names: Names;
}

/** Moves that are enough to explore from the state. `dependence`: null explores all. */
export function enoughMoves<T extends Tried>(
  state: RunState,
  sources: readonly Source[],
  dependence: Dependence | null,
  trial: Trial<T>,
): readonly T[] {
  const first =
    dependence === null || sources.length < 2 || mayFailWithoutBlame(state, dependence.footprints)
      ? undefined
      : sources.find((source) => mayGoFirst(state, source, dependence, trial));
  if (first === undefined) return sources.flatMap((source) => trial.all(source));
  return sources.flatMap((source) =>
    source === first ? trial.all(source) : trial.ending(source).filter((each) => each.state.end !== null),
  );
}

function mayGoFirst<T extends Tried>(
  state: RunState,
  source: Source,
  { footprints, names }: Dependence,
  trial: Trial<T>,
): boolean {
  const { step } = source;
  if (step === null) return false;
  const after = stepsAfter(state, step);
  const others = union(
    [...state.steps.values()]
      .filter((each) => each.settlement === 'open' && !after.has(each))
      .map(({ definition }) => footprints.of(definition)),
  );
  if (others.readsStatus) return false;
  const own = footprints.ownOf(step.definition);
  if (own.readsStatus || (own.resources & others.resources) !== 0n) return false;
  if (sharesIterations(state, step) || sharesHandler(state, step, after)) return false;
  if (mayFailTogether(step, after, footprints)) return false;
  const all = trial.all(source);
  const lasting = all.filter((each) => each.state.end === null);
  const blamed = blamedFailures(state, names).join();
  if (lasting.length < all.length && (others.contains || hasContained(state, after))) return false;
  if (lasting.every((each) => trial.isExpanded(each))) return false;
  return lasting.every(({ state: next, observed: { hides, definitions, skipped } }) => {
    if (hides || blamedFailures(next, names).join() !== blamed || next.lanes.size > state.lanes.size) return false;
    for (const id of skipped) {
      const before = state.steps.get(id);
      if (before !== undefined && !after.has(before)) return false;
    }
    const used = union(definitions.map((definition) => footprints.ownOf(definition)));
    return !used.readsStatus && (used.resources & others.resources) === 0n;
  });
}

/**
 * The step itself, and all that cannot start or end before it has ended. A step that needs one that may never exist is not
 * among them: it fails as soon as that is certain.
 */
function stepsAfter(state: RunState, step: StepState): ReadonlySet<StepState> {
  const after = new Set<StepState>();
  const early = stepsThatMayFailEarly(state);
  const queue = [step];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (after.has(next) || (next !== step && early.has(next))) continue;
    after.add(next);
    queue.push(...next.waiters, ...next.unresolvedNeeds.map(({ waiter }) => waiter));
    const bottom = firstCaller(state, next.frame);
    const above = bottom.join === 'loose' ? undefined : state.steps.get(bottom.owner ?? '');
    if (above !== undefined) queue.push(above);
  }
  return after;
}

/**
 * Whether a step needs one below another that handles failures. If that one fails, the run fails without a failure that
 * nobody handles, and the step that ended last is to blame: every order matters.
 */
function mayFailWithoutBlame(state: RunState, footprints: Footprints): boolean {
  for (const { definition, frame } of state.steps.values()) {
    for (const need of definition.needs) {
      const [first = '', ...rest] = need.split('.');
      const above = rest.length === 0 ? undefined : frame.steps.find((each) => each.definition.id === first);
      if (above !== undefined && footprints.of(above.definition).handles) return true;
    }
  }
  return false;
}

function stepsThatMayFailEarly(state: RunState): ReadonlySet<StepState> {
  const found = new Set<StepState>();
  for (const { unresolvedNeeds } of state.steps.values())
    for (const { waiter, resolved, isPattern } of unresolvedNeeds) if (!resolved && !isPattern) found.add(waiter);
  return found;
}

/**
 * Whether a step that waits for this one and for others may fail as soon as all have ended. Then the end of another one may
 * end the run, but only after this one, and what could have happened between them is lost.
 */
function mayFailTogether(step: StepState, after: ReadonlySet<StepState>, footprints: Footprints): boolean {
  const others = [...after].filter((each) => each !== step);
  if (others.every(({ unmet }) => unmet < 2)) return false;
  return others.some(({ definition }) => footprints.of(definition).failsAtOnce);
}

/** Whether another step may fail without failing the run at once: then it is to blame if the run fails later. */
function hasContained(state: RunState, after: ReadonlySet<StepState>): boolean {
  for (const step of state.steps.values()) {
    if (step.settlement !== 'open' || after.has(step)) continue;
    if (state.program.onFailure === 'isolate') return true;
    for (const owner of ownersOf(state, step)) if (containsFailures(owner.definition)) return true;
  }
  return false;
}

/** Its end may start an iteration that the end of another step could start as well. */
function sharesIterations(state: RunState, step: StepState): boolean {
  for (const owner of ownersOf(state, step)) if (owner.definition.act.kind === 'each' && !owner.grown) return true;
  return false;
}

/** Another step below the same handler may fail, and is to blame until the handler has ended: which this step delays. */
function sharesHandler(state: RunState, step: StepState, after: ReadonlySet<StepState>): boolean {
  const handlers = new Set([...ownersOf(state, step)].filter(({ definition }) => handlesFailures(definition)));
  if (handlers.size === 0) return false;
  for (const other of state.steps.values()) {
    if (other.settlement !== 'open' || after.has(other)) continue;
    for (const owner of ownersOf(state, other)) if (handlers.has(owner)) return true;
  }
  return false;
}

/** The steps that a step is below, innermost first. */
function* ownersOf(state: RunState, step: StepState): Generator<StepState> {
  for (let now = step; ; ) {
    const owner = state.steps.get(firstCaller(state, now.frame).owner ?? '');
    if (owner === undefined) return;
    yield owner;
    now = owner;
  }
}

/** The frame that waits for all calls above it. */
function firstCaller(state: RunState, frame: FrameState): FrameState {
  let first = frame;
  while (first.caller !== null) first = frameOf(state, first.caller);
  return first;
}
