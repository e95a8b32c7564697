// Checks where control can go, as far as known: unreachable states, states that never reach a result, calls that cannot
// return, and endless forks. A state without known exits may go anywhere and causes no error.

import type { Place } from '../../base/source.ts';
import { TAG_RULES } from '../../ir/machine.ts';
import { isFork, type TransitionTag } from '../../ir/tags.ts';
import { type Exit, exitsOf, type StateExits } from './exits.ts';
import type { LinkedWorkflow } from './link.ts';
import { type StateSyntax } from './syntax.ts';

interface Node {
  readonly state: StateSyntax;
  readonly ways: StateExits;
  readonly workflow: LinkedWorkflow;
}

type Nodes = ReadonlyMap<string, Node>;

function nodesOf(workflows: readonly LinkedWorkflow[]): Nodes {
  const nodes = workflows.flatMap((workflow) =>
    [...workflow.states.values()].map((state) => ({ state, ways: exitsOf(workflow, state), workflow })),
  );
  return new Map(nodes.map((node) => [node.state.id, node]));
}

/** Reachable states; all of a workflow if one of them may go anywhere. */
export function reachedStates(workflows: readonly LinkedWorkflow[]): ReadonlySet<StateSyntax> {
  const nodes = nodesOf(workflows);
  const start = workflows[0]?.start ?? null;
  const reached = new Set(start === null ? [] : [start.id]);
  const open = new Set<LinkedWorkflow>();
  for (const id of reached) {
    const node = nodes.get(id);
    if (node === undefined) continue;
    for (const { to, back, next, late } of node.ways.edges) {
      for (const each of [to, back, next, late]) if (each !== null) reached.add(each);
    }
    if (!node.ways.isOpen || open.has(node.workflow)) continue;
    open.add(node.workflow);
    for (const state of node.workflow.states.values()) reached.add(state.id);
  }
  return new Set([...reached].flatMap((id) => nodes.get(id)?.state ?? []));
}

export function checkReach(workflows: readonly LinkedWorkflow[], reached: ReadonlySet<StateSyntax>): void {
  const nodes = nodesOf(workflows);
  const [first] = workflows;
  for (const state of first?.states.values() ?? []) {
    if (reached.has(state) || first?.start === null) continue;
    const hint = 'Name it in a tag of another state, or remove it.';
    state.report.warning('unreachable-state', state.place, `no transition leads to ${state.name}`, hint);
  }
  const ending = endingStates(nodes, () => true);
  const returning = endingStates(nodes, ({ tag }, { workflow }) => workflow.keepsCallers || !isReset(tag));
  for (const node of nodes.values()) {
    const { state, ways } = node;
    if (reached.has(state) && !ending.has(state.id)) {
      const hint = 'Tell its agent when to end: <result>…</result>.';
      state.report.warning('no-result', state.place, `no result can follow ${state.name}: it goes on forever`, hint);
    }
    for (const edge of ways.edges) {
      if (edge.back !== null && edge.to !== null && !returning.has(edge.to) && nodes.has(edge.to)) {
        const message = `<${edge.tag}> waits for a result that ${edge.written} never returns`;
        const hint = 'Use <goto>, or have it end with <result>…</result>.';
        state.report.warning('never-returns', edge.place, message, hint);
      }
    }
  }
  checkForks(nodes, reached);
  checkJoins(nodes, reached);
}

function isReset(tag: TransitionTag): boolean {
  return tag === 'reset' || tag === 'reset-workflow';
}

/** States that can reach a result. `leads`: whether a result beyond an exit counts for the state before it. */
function endingStates(nodes: Nodes, leads: (edge: Exit, node: Node) => boolean): ReadonlySet<string> {
  const ending = new Set<string>();
  // A workflow of another language ends by itself.
  const ends = (id: string | null): boolean => id !== null && (ending.has(id) || !nodes.has(id));
  const canEnd = (node: Node, edge: Exit): boolean => {
    const { tag, to, back, next, late } = edge;
    if (tag === 'result') return true;
    if (!leads(edge, node)) return false;
    if (back !== null) return ends(to) && ends(back);
    return isFork(tag) || tag === 'ask' ? ends(next) || ends(late) : ends(to);
  };
  for (let before = -1; before !== ending.size; ) {
    before = ending.size;
    for (const [id, node] of nodes) {
      const { edges, isOpen } = node.ways;
      if (isOpen || forksBesideGoto(edges) || edges.some((edge) => canEnd(node, edge))) ending.add(id);
    }
  }
  return ending;
}

/** A fork without `next` continues with the goto beside it, which is an exit of its own. */
function forksBesideGoto(edges: readonly Exit[]): boolean {
  return edges.length > 0 && edges.every(({ tag, next }) => isFork(tag) && next === null);
}

/** An unbounded fork in a cycle starts workers endlessly. */
function checkForks(nodes: Nodes, reached: ReadonlySet<StateSyntax>): void {
  const ahead = workersAhead(nodes);
  for (const [id, { state, ways }] of nodes) {
    if (!reached.has(state)) continue;
    for (const edge of ways.edges) {
      if (!isFork(edge.tag)) continue;
      if (edge.to !== null && leadsTo(nodes, [edge.to], id, ahead)) {
        const cure = 'End the loop before this state (max_visits counts separately for each agent)';
        complain(state, edge.place, 'its worker comes back here, and forks again', cure);
      } else if (state.visits === null && leadsTo(nodes, onwards(ways, edge), id, endlesslyAhead)) {
        complain(state, edge.place, 'control comes back here, and forks again', 'Bound it with max_visits and then');
      }
    }
  }
}

function complain({ report, name }: StateSyntax, place: Place, why: string, cure: string): void {
  const message = `nothing bounds how often ${name} forks: ${why}`;
  const hint = `${cure}, or rely on --max-transitions if the loop is intended to run forever.`;
  report.warning('unbounded-fork', place, message, hint);
}

/** Where the forking agent continues. */
function onwards({ edges }: StateExits, { next }: Exit): readonly string[] {
  if (next !== null) return [next];
  return edges.flatMap(({ tag, to }) => (tag === 'goto' && to !== null ? [to] : []));
}

/**
 * Nobody receives the result of a worker. But a script or a person may wait for what the worker writes, if the forking agent
 * later reaches a script, a question or the fork again.
 */
function checkJoins(nodes: Nodes, reached: ReadonlySet<StateSyntax>): void {
  for (const [id, { state, ways }] of nodes) {
    if (!reached.has(state)) continue;
    for (const edge of ways.edges) {
      if (edge.tag !== 'fork' || !endsWithResult(nodes, edge.to)) continue;
      const [first, ...others] = onwards(ways, edge);
      if (first === undefined) continue;
      const later = statesAhead(nodes, [first, ...others], agentAhead);
      if (later.has(id) || [...later].some((each) => each !== null && mayWait(nodes.get(each)))) continue;
      const message = `nothing waits for the worker ${edge.written}, and nobody receives its result`;
      const hint =
        'Have it write to a file, and wait for that in a script state; or use <call> or <function> to get the result.';
      state.report.warning('fork-without-join', edge.place, message, hint);
    }
  }
}

function endsWithResult(nodes: Nodes, worker: string | null): boolean {
  const states = statesAhead(nodes, [worker], agentAhead);
  return [...states].some(
    (id) => id !== null && nodes.get(id)?.ways.edges.some(({ tag }) => tag === 'result') === true,
  );
}

/** Also a workflow of another language, and a state with unknown exits. */
function mayWait(node: Node | undefined): boolean {
  if (node === undefined) return true;
  const { state, ways } = node;
  return state.body.kind === 'script' || ways.isOpen || ways.edges.some(({ tag }) => tag === 'ask');
}

type Ahead = (node: Node) => readonly (string | null)[];

function leadsTo(nodes: Nodes, from: readonly (string | null)[], to: string, ahead: Ahead): boolean {
  return statesAhead(nodes, from, ahead).has(to);
}

function statesAhead(nodes: Nodes, from: readonly (string | null)[], ahead: Ahead): ReadonlySet<string | null> {
  const seen = new Set(from);
  for (const id of seen) {
    const node = id === null ? undefined : nodes.get(id);
    for (const each of node === undefined ? [] : ahead(node)) seen.add(each);
  }
  return seen;
}

/** Next states of an agent below its visit limits. */
function agentAhead({ ways }: Node): readonly (string | null)[] {
  return ways.edges
    .filter(({ isInstead }) => !isInstead)
    .flatMap(({ tag, to, back, next, late }) => (isFork(tag) ? [next] : [to, back, next, late]));
}

/** Next states of an agent that never ends: sooner or later it reaches every visit limit. */
function endlesslyAhead(node: Node): readonly (string | null)[] {
  return node.state.visits === null ? agentAhead(node) : [insteadOf(node)];
}

/**
 * Where a new agent may go, and the workers it starts. Its visits count from zero, so it can enter every state; it
 * reaches a replacement state only from a state in a cycle. Nested workflows end by themselves, because their depth is
 * limited.
 */
function workersAhead(nodes: Nodes): Ahead {
  const exhaustible = new Set<Node>();
  for (const [id, node] of nodes) {
    if (node.state.visits !== null && leadsTo(nodes, agentAhead(node), id, agentAhead)) exhaustible.add(node);
  }
  return (node) => [
    ...node.ways.edges
      .filter(({ isInstead }) => !isInstead)
      .flatMap(({ tag, to, back, next, late }) => [entersDeeper(tag) ? null : to, back, next, late]),
    ...(exhaustible.has(node) ? [insteadOf(node)] : []),
  ];
}

function entersDeeper(tag: TransitionTag): boolean {
  return TAG_RULES[tag].target === 'workflow' && !isReset(tag);
}

function insteadOf({ state, workflow }: Node): string | null {
  return state.visits === null ? null : (workflow.states.get(state.visits.instead)?.id ?? null);
}
