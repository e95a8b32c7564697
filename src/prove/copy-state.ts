// Copies a run's state, so that two outcomes of one effect can be tried. Everything that the kernel may still change in
// place is copied. Shared are values that it only replaces (outputs, failures, effects, definitions), and what cannot change
// any more unless a run is resumed, which never happens here: finished steps without an open frame below them, closed
// frames of such steps, and lanes in which all frames are closed. The frame of a shared step may be that of an earlier state;
// only its constant parts are read.

import { present } from '../base/errors.ts';
import { type IdTree, OrderedSet } from '../kernel/collections.ts';
import {
  type AgentState,
  type FrameState,
  type GateState,
  isFinished,
  type LaneState,
  type RunState,
  type StepState,
  type UnresolvedNeed,
} from '../kernel/state.ts';

export function copyState(state: RunState): RunState {
  return new Copy(state).whole();
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

class Copy {
  readonly #from: RunState;
  /** By the order of creation. */
  readonly #steps: StepState[] = [];
  readonly #frames = new Map<FrameState, FrameState>();
  /** Lanes in which a frame may still change, or be followed by another one. */
  readonly #openLanes = new Set<string>();
  readonly #nodes = new Map<IdTree<StepState>, IdTree<StepState>>();
  readonly #needs = new Map<UnresolvedNeed, UnresolvedNeed>();
  readonly #agents = new Map<AgentState, AgentState>();

  constructor(from: RunState) {
    this.#from = from;
  }

  whole(): RunState {
    const from = this.#from;
    for (const frame of from.frames.values()) {
      if (isConstant(frame)) continue;
      this.#frames.set(frame, { ...frame });
      this.#openLanes.add(frame.lane);
    }
    for (const step of from.steps.values())
      this.#steps[step.order] = isOver(step) ? step : copyStep(step, this.#frame(step.frame));
    for (const agent of from.agents.values()) this.#agents.set(agent, { ...fieldsOf(agent) });
    const tree = this.#node(from.tree);
    for (const step of from.steps.values()) this.#linkStep(step);
    for (const frame of from.frames.values()) this.#linkFrame(frame);
    for (const agent of from.agents.values()) this.#linkAgent(agent);
    const { agenda, events } = from;
    return {
      ...from,
      tree,
      warnings: [...from.warnings],
      refusals: new Set(from.refusals),
      steps: this.#map(from.steps, this.#step),
      frames: this.#map(from.frames, this.#frame),
      lanes: new Map([...from.lanes].map(([id, lane]) => [id, this.#openLanes.has(id) ? this.#lane(lane) : lane])),
      gates: this.#map(from.gates, copyGate),
      cleanup: from.cleanup === null ? null : { ...from.cleanup },
      unresolvedById: this.#map(from.unresolvedById, (needs) => needs.map(this.#need)),
      inFlight: this.#map(from.inFlight, this.#step),
      agents: this.#map(from.agents, this.#agent),
      parked: this.#set(from.parked, this.#step),
      agentEffects: this.#map(from.agentEffects, this.#agent),
      events: { ...fieldsOf(events), latest: [...events.latest], ids: new Set(events.ids) },
      seenMessages: new Set(from.seenMessages),
      timers: new Map(from.timers),
      spending: copySpending(from.spending),
      agenda: {
        ready: this.#set(agenda.ready, this.#step),
        readyForAgent: this.#ordered(agenda.readyForAgent),
        unadmitted: this.#set(agenda.unadmitted, this.#step),
        askedTurns: new Set(agenda.askedTurns),
        blocked: this.#set(agenda.blocked, this.#step),
        unresolvable: this.#set(agenda.unresolvable, this.#step),
        joinable: this.#set(agenda.joinable, this.#step),
        closable: this.#set(agenda.closable, this.#frame),
      },
    };
  }

  readonly #step = ({ order, id }: StepState): StepState => present(this.#steps[order], `step ${id} is not in its run`);

  readonly #frame = (frame: FrameState): FrameState => this.#frames.get(frame) ?? frame;

  readonly #agent = (agent: AgentState): AgentState =>
    present(this.#agents.get(agent), `agent ${agent.name} is not in its run`);

  readonly #need = (need: UnresolvedNeed): UnresolvedNeed => {
    const known = this.#needs.get(need);
    if (known !== undefined) return known;
    const copy = { ...need, waiter: this.#step(need.waiter) };
    this.#needs.set(need, copy);
    return copy;
  };

  #lane(lane: LaneState): LaneState {
    return {
      ...lane,
      visitsOf: new Map(lane.visitsOf),
      countById: new Map(lane.countById),
      frame: lane.frame === null ? null : this.#frame(lane.frame),
      latest: this.#map(lane.latest, this.#step),
    };
  }

  /** Only a foreach names its iterations, and no request for an event has an id here. */
  #linkStep(step: StepState): void {
    if (isOver(step)) return;
    const copy: Mutable<StepState> = this.#step(step);
    if (step.definition.act.kind === 'each') copy.startedNames = new Set(step.startedNames);
    copy.waiters = step.waiters.map(this.#step);
    copy.unresolvedNeeds = step.unresolvedNeeds.map(this.#need);
    copy.children = step.children.map(this.#frame);
  }

  #linkFrame(frame: FrameState): void {
    const copy: Mutable<FrameState> = this.#frame(frame);
    if (copy === frame) return;
    copy.steps = frame.steps.map(this.#step);
    copy.node = this.#node(frame.node);
  }

  #linkAgent({ name, busy, latest, queue }: AgentState): void {
    const copy: Mutable<AgentState> = this.#agent(present(this.#from.agents.get(name), `there is no agent ${name}`));
    copy.busy = busy === null ? null : this.#step(busy);
    copy.latest = latest === null ? null : this.#step(latest);
    copy.queue = this.#ordered(queue);
  }

  #node(node: IdTree<StepState>): IdTree<StepState> {
    // Nothing is ever entered below a step that is over.
    if (node.below.size === 0 && node.value !== null && isOver(node.value)) return node;
    const known = this.#nodes.get(node);
    if (known !== undefined) return known;
    const copy: IdTree<StepState> = { below: new Map(), value: node.value === null ? null : this.#step(node.value) };
    this.#nodes.set(node, copy);
    for (const [segment, below] of node.below) copy.below.set(segment, this.#node(below));
    return copy;
  }

  #map<K, V>(from: ReadonlyMap<K, V>, copy: (value: V) => V): Map<K, V> {
    const copied = new Map<K, V>();
    for (const [key, value] of from) copied.set(key, copy(value));
    return copied;
  }

  #set<T>(from: ReadonlySet<T>, copy: (value: T) => T): Set<T> {
    const copied = new Set<T>();
    for (const value of from) copied.add(copy(value));
    return copied;
  }

  #ordered(from: Iterable<StepState>): OrderedSet<StepState> {
    const copied = new OrderedSet<StepState>();
    for (const step of from) copied.add(this.#step(step));
    return copied;
  }
}

/** Nothing changes the step any more. */
function isOver(step: StepState): boolean {
  if (!isFinished(step) || step.settlement === 'open' || step.unresolvedNeeds.length > 0) return false;
  for (const { closed } of step.children) if (!closed) return false;
  return true;
}

function isConstant({ closed, open, steps }: FrameState): boolean {
  return closed && open === 0 && steps.every(isOver);
}

/** Written out: a spread of so many fields is five times slower. */
function copySpending({
  usdByAgent,
  charges,
  reservations,
  known,
  ...sums
}: RunState['spending']): RunState['spending'] {
  return {
    ...sums,
    usdByAgent: new Map(usdByAgent),
    charges: [...charges],
    reservations: new Map(reservations),
    known: new Map([...known].map(([turn, costs]) => [turn, [...costs]])),
  };
}

function copyStep(step: StepState, frame: FrameState): StepState {
  return {
    id: step.id,
    order: step.order,
    frame,
    definition: step.definition,
    keptFrom: step.keptFrom,
    status: step.status,
    attempt: step.attempt,
    failures: step.failures,
    reprompt: step.reprompt,
    reprompts: step.reprompts,
    refusedReports: step.refusedReports,
    failure: step.failure,
    outputs: step.outputs,
    kept: step.kept,
    route: step.route,
    usage: step.usage,
    cost: step.cost,
    printed: step.printed,
    agent: step.agent,
    agentGeneration: step.agentGeneration,
    queuedFor: step.queuedFor,
    startedAt: step.startedAt,
    finishedAt: step.finishedAt,
    machine: step.machine,
    effectEndedAt: step.effectEndedAt,
    initialSession: step.initialSession,
    effect: step.effect,
    delivery: step.delivery,
    dialog: step.dialog,
    dialogs: step.dialogs,
    timeoutAt: step.timeoutAt,
    stopping: step.stopping,
    stoppingForced: step.stoppingForced,
    interrupted: step.interrupted,
    skipped: step.skipped,
    items: step.items,
    width: step.width,
    names: step.names,
    startedNames: step.startedNames,
    iterationCursor: step.iterationCursor,
    roundsMax: step.roundsMax,
    roundsAllowed: step.roundsAllowed,
    delayedRound: step.delayedRound,
    notes: step.notes,
    eventsBefore: step.eventsBefore,
    eventsSeen: step.eventsSeen,
    eventRequests: step.eventRequests,
    gate: step.gate,
    settlement: step.settlement,
    unmet: step.unmet,
    waiters: step.waiters,
    grown: step.grown,
    unresolvedNeeds: step.unresolvedNeeds,
    children: step.children,
    blocks: step.blocks,
    openChildren: step.openChildren,
    childFailed: step.childFailed,
    recoveries: step.recoveries,
  };
}

/** The classes of states have no methods, and a spread is much faster than their constructors. */
function fieldsOf<T>(instance: T): Pick<T, keyof T> {
  return instance;
}

function copyGate(gate: GateState): GateState {
  const requests = new Map([...gate.requests].map(([requester, request]) => [requester, { ...request }]));
  return { ...gate, requests };
}
