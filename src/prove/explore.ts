// Explores every run of a Program, breadth first, so that the first path to a state is a shortest one.
//
// explore/1  The kernel decides. This file only chooses what happens in the world.
// explore/2  States with the same key are one (state-key.ts), and so loops close.
// explore/3  A block that is entered again inside itself, or by several lanes at once, more than `visits` times is not
//            explored further. Nor is a loop after `visits` rounds, if it may have very many. Then the exploration is not
//            complete, and it says so.
// explore/4  A state is kept only until it is expanded. If too many wait for that, it is computed again from its path.

import type { Claim } from '../ir/claim.ts';
import { type Program, type RunRequest, UNLIMITED } from '../ir/program.ts';
import { Bug } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import type { FrameState, RunState } from '../kernel/state.ts';
import { Advance } from './advance.ts';
import { copyState } from './copy-state.ts';
import { type Ending, endingOf } from './endings.ts';
import { Footprints } from './footprint.ts';
import { type Cause, GOES_ON } from './causes.ts';
import { type Move, Moves, type Source } from './moves.ts';
import { Names } from './names.ts';
import { enoughMoves, type Tried } from './reduction.ts';
import { omissionsIn, repetitions } from './recursion.ts';
import { StateKeys } from './state-key.ts';
import { Values } from './values.ts';
import { type EndedStep, type Observed, Watch } from './watch.ts';
import { agentsIn, hangsIn, type Hang } from './inspect.ts';

export interface ExploreRequest {
  readonly program: Program;
  readonly variables: Readonly<Record<string, Json>>;
  readonly claims: readonly Claim[];
  readonly visitsMax: number;
  readonly statesMax: number;
  /** Contents of the files that commands execute, by command; absent: unknown. */
  readonly scripts?: ReadonlyMap<string, string>;
  /** False: explores every order, for tests of the reduction. */
  readonly reduces?: boolean;
}

export interface Node {
  readonly index: number;
  readonly facts: string;
  /** The first way to it; null for the start. */
  readonly parent: { readonly node: number; readonly edge: Edge } | null;
  /** Null before it is expanded. */
  edges: readonly Edge[] | null;
  readonly ending: Ending | null;
  /** Agents that are alive. */
  readonly agents: number;
  /** Steps that wait forever; empty unless nothing can happen. */
  hangs: readonly Hang[];
}

/** A move from one state to another. */
export interface Edge {
  readonly to: number;
  /** Null unless this is the first way to its state, or the path was retraced. */
  readonly move: Move | null;
  readonly cause: Cause;
  readonly ended: readonly EndedStep[];
  readonly routes: readonly string[];
  readonly started: readonly string[];
  readonly turns: readonly string[];
  readonly commands: number;
  readonly broken: readonly number[];
  /** When it happened, on the logical clock of its path. */
  readonly at: number;
}

export interface Explored {
  readonly nodes: readonly Node[];
  /** What happened before the first choice. */
  readonly start: Edge;
  readonly complete: boolean;
  /** Why it is not complete; null if it is. */
  readonly bound: 'states' | 'visits' | 'cancelled' | null;
  readonly names: Names;
  /**
   * The same moves with the ids and times that they have on this path: those of an edge are those of the first way to its
   * state. The path starts at the start.
   */
  readonly retrace: (path: readonly Edge[]) => readonly Edge[];
}

/** Each round of a loop with a bound has states of its own. With the default of 3 visits, 120 rounds are explored. */
const ROUNDS_PER_VISIT = 40;

/** More states than these are computed again instead of being kept. */
const KEPT_MAX = 2_000;

export function explore(request: ExploreRequest): Explored {
  const exploration = new Exploration(request);
  exploration.advance(Infinity);
  return exploration.result();
}

interface Attempted extends Tried {
  readonly source: Source;
  readonly move: Move;
  readonly key: string;
}

/** Can be advanced in parts, so that somebody can interrupt it. */
export class Exploration {
  readonly #request: ExploreRequest;
  readonly #names: Names;
  readonly #moves: Moves;
  readonly #footprints: Footprints;
  readonly #keys: StateKeys;
  readonly #advance: Advance;
  readonly #nodes: Node[] = [];
  readonly #byKey = new Map<string, Node>();
  readonly #states = new Map<number, RunState>();
  readonly #start: Edge;
  readonly #lists = { ended: new Map<string, readonly EndedStep[]>(), words: new Map<string, readonly string[]>() };
  #expanded = 0;
  #bound: Explored['bound'] = null;

  constructor(request: ExploreRequest) {
    const { program, variables, claims } = request;
    this.#request = request;
    this.#names = new Names(program);
    this.#moves = new Moves(program, new Values(program), request.scripts ?? new Map());
    this.#footprints = new Footprints(program, variables);
    this.#keys = new StateKeys(program, this.#footprints, this.#moves, this.#names);
    this.#advance = new Advance(this.#moves, new Watch(this.#names, claims));
    const { state, observed } = this.#advance.start(program, this.#runRequest());
    this.#start = edgeOf(0, null, GOES_ON, { state, observed });
    this.#add(state, observed, this.#keyOf(state, observed), null);
  }

  /** Expands up to so many states; true if none is left. */
  advance(count: number): boolean {
    for (let left = count; left > 0 && this.#expanded < this.#nodes.length; left--) {
      const node = this.#nodes[this.#expanded];
      if (node !== undefined && node.ending === null) this.#expand(node);
      this.#expanded += 1;
    }
    return this.#expanded >= this.#nodes.length;
  }

  /** What is known so far. */
  result(): Explored {
    const bound = this.#bound ?? (this.#expanded < this.#nodes.length ? 'cancelled' : null);
    const retrace = (path: readonly Edge[]): readonly Edge[] => this.#retrace(path);
    return { nodes: this.#nodes, start: this.#start, complete: bound === null, bound, names: this.#names, retrace };
  }

  #retrace([start, ...path]: readonly Edge[]): readonly Edge[] {
    if (start === undefined) return [];
    let { state, observed } = this.#advance.start(this.#request.program, this.#runRequest());
    return [
      start,
      ...path.map((edge) => {
        const { facts } = observed;
        const sources = this.#moves.sources(state).filter(({ moves }) => moves.length > 0);
        const taken = this.#sameMoves(sources, edge).map((move): Tried & { readonly move: Move } => {
          const copy = copyState(state);
          return { move, state: copy, observed: this.#advance.take(copy, move, facts) };
        });
        const same = taken.find(
          (each) => this.#byKey.get(this.#knownKeyOf(each.state, each.observed))?.index === edge.to,
        );
        if (same === undefined) throw new Bug('a path that was explored cannot be taken');
        ({ state, observed } = same);
        return edgeOf(edge.to, same.move, same.move.cause, same);
      }),
    ];
  }

  /** Moves that may be that of an edge, the most similar first. */
  #sameMoves(sources: readonly Source[], { move, cause }: Edge): readonly Move[] {
    const all = sources.flatMap(({ moves }) => moves);
    const wanted = lasting(cause);
    const same = all.filter(
      (each) => (move === null || each.inputs.length === move.inputs.length) && lasting(each.cause) === wanted,
    );
    return [...same, ...all.filter((each) => !same.includes(each))];
  }

  #runRequest(): RunRequest {
    const { variables } = this.#request;
    return { id: 'test', mark: '', variables, meta: {}, cwd: '.', allowOutside: false, allowance: UNLIMITED };
  }

  #expand(node: Node): void {
    const state = this.#states.get(node.index) ?? this.#replay(node);
    this.#states.delete(node.index);
    if (this.#isTooDeep(state)) {
      this.#bound ??= 'visits';
      return;
    }
    const sources = this.#moves.sources(state).filter(({ moves }) => moves.length > 0);
    if (sources.length === 0) {
      node.edges = NONE;
      node.hangs = hangsIn(state, this.#names);
      return;
    }
    const tried = new Map<Move, Attempted>();
    // Nobody needs the state after the last move of its only source.
    const last = sources.length === 1 ? sources[0]?.moves.at(-1) : undefined;
    const attempt = (source: Source, move: Move): Attempted => {
      const known = tried.get(move) ?? this.#attempt(move === last ? state : copyState(state), node, source, move);
      tried.set(move, known);
      return known;
    };
    const dependence = this.#request.reduces === false ? null : { footprints: this.#footprints, names: this.#names };
    const enough = enoughMoves<Attempted>(state, sources, dependence, {
      all: (source) => source.moves.map((move) => attempt(source, move)),
      ending: (source) => source.moves.filter(({ mayEnd }) => mayEnd).map((move) => attempt(source, move)),
      isExpanded: ({ key }) => (this.#byKey.get(key)?.edges ?? null) !== null,
    });
    node.edges = enough.flatMap((each) => this.#follow(node, each) ?? []);
  }

  /** There are many edges, and few different lists on them. */
  #shared(edge: Edge): Edge {
    const { ended, routes, started, turns } = edge;
    return {
      ...edge,
      ended: shared(this.#lists.ended, ended, ({ step, outcome }) => `${step} ${outcome}`),
      routes: shared(this.#lists.words, routes),
      started: shared(this.#lists.words, started),
      turns: shared(this.#lists.words, turns),
    };
  }

  /** Changes the state. */
  #attempt(state: RunState, { facts }: Node, source: Source, move: Move): Attempted {
    const observed = this.#advance.take(state, move, facts);
    return { source, move, state, observed, key: this.#knownKeyOf(state, observed) };
  }

  /** Null if the limit of states is reached. */
  #follow(from: Node, { move, state, observed, key }: Attempted): Edge | null {
    const known = this.#byKey.get(key);
    if (known !== undefined) return this.#shared(edgeOf(known.index, null, move.cause, { state, observed }));
    if (this.#nodes.length >= this.#request.statesMax) {
      this.#bound ??= 'states';
      return null;
    }
    const edge = this.#shared(edgeOf(this.#nodes.length, move, move.cause, { state, observed }));
    this.#add(state, observed, key, { node: from.index, edge });
    return edge;
  }

  #add(state: RunState, { facts }: Observed, key: string, parent: Node['parent']): void {
    const index = this.#nodes.length;
    const ending = state.phase === 'ended' ? endingOf(state, this.#names) : null;
    const node: Node = { index, facts, parent, edges: null, ending, agents: agentsIn(state), hangs: NONE };
    this.#nodes.push(node);
    this.#byKey.set(key, node);
    if (ending === null && this.#states.size < KEPT_MAX) this.#states.set(index, state);
  }

  #keyOf(state: RunState, { facts, broken }: Observed): string {
    if (state.phase !== 'ended') return `${facts} ${this.#keys.of(state)}`;
    return `${facts} ${[...broken].join()} ${JSON.stringify(endingOf(state, this.#names))} ${String(agentsIn(state))}`;
  }

  /** The key of a state that was found before without some of the frames of this one (recursion/1), or its own. */
  #knownKeyOf(state: RunState, observed: Observed): string {
    const own = this.#keyOf(state, observed);
    const omissions =
      state.phase === 'ended' || this.#byKey.has(own) ? null : omissionsIn(state, this.#request.visitsMax);
    if (omissions === null) return own;
    const [outer, inner] = omissions.map((without) => `${observed.facts} ${this.#keys.of(state, without)}`);
    return outer !== undefined && outer === inner && this.#byKey.has(outer) ? outer : own;
  }

  /** Computes the state of a node from its path. */
  #replay(node: Node): RunState {
    const moves: Move[] = [];
    for (let at: Node | undefined = node; at?.parent; at = this.#nodes[at.parent.node])
      if (at.parent.edge.move !== null) moves.push(at.parent.edge.move);
    const { state, observed } = this.#advance.start(this.#request.program, this.#runRequest());
    let { facts } = observed;
    for (const move of moves.toReversed()) ({ facts } = this.#advance.take(state, move, facts));
    return state;
  }

  #isTooDeep(state: RunState): boolean {
    const { visitsMax } = this.#request;
    const working = new Set<string>();
    for (const frame of state.frames.values()) {
      if (frame.closed) continue;
      working.add(frame.lane);
      if ((frame.round ?? 0) > visitsMax && isLong(state, frame, visitsMax)) return true;
      if (repetitions(state, frame) > visitsMax) return true;
    }
    // A lane may have gone on from the state in which it was forked.
    const lanes = new Map<unknown, number>();
    for (const { forkedFrom, lane, steps } of state.frames.values()) {
      if (forkedFrom === null || !working.has(lane)) continue;
      const count = (lanes.get(steps[0]?.definition) ?? 0) + 1;
      lanes.set(steps[0]?.definition, count);
      if (count > visitsMax) return true;
    }
    return false;
  }
}

/** Whether the loop of a round may have more rounds than are explored. */
function isLong(state: RunState, { owner }: FrameState, visitsMax: number): boolean {
  return (state.steps.get(owner ?? '')?.roundsAllowed ?? 0) > visitsMax * ROUNDS_PER_VISIT;
}

/** Without what differs from path to path. */
function lasting(cause: Cause): string {
  return JSON.stringify({ ...cause, step: null, since: null });
}

function edgeOf(to: number, move: Move | null, cause: Cause, { state, observed }: Tried): Edge {
  const { ended, routes, started, turns, commands, broken, at } = observed;
  return {
    to,
    move,
    cause,
    ended,
    routes,
    started,
    turns,
    commands,
    broken: broken.size === 0 ? NONE : [...broken],
    at: at ?? state.recordedAt ?? 0,
  };
}

/** The first list with the same content. */
function shared<T>(
  known: Map<string, readonly T[]>,
  list: readonly T[],
  textOf = String as (item: T) => string,
): readonly T[] {
  if (list.length === 0) return NONE;
  const key = list.map(textOf).join('\n');
  const first = known.get(key) ?? list;
  known.set(key, first);
  return first;
}

const NONE: readonly never[] = [];
