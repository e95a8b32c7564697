// Steps and routes that no run reaches, by the names that the workflow gives them.

import type { Block, Program, Step } from '../ir/program.ts';
import { blocksOf, blocksOfTarget, type Target, type Transition } from '../ir/transition.ts';
import { routeWord, visitKind } from '../view/visits.ts';
import type { Explored } from './explore.ts';
import { saidIn } from './footprint.ts';

/** Names of unreached steps, and `step: route` for routes that no outcome takes. */
export function unreached(program: Program, { nodes, start }: Explored): readonly string[] {
  const edges = [start, ...nodes.flatMap(({ edges: all }) => all ?? [])];
  const started = new Set(edges.flatMap((edge) => edge.started));
  const ofVisits = edges.flatMap(({ ended }) => ended.map(({ step, outcome }) => `${step}: ${outcome}`));
  const taken = new Set([...ofVisits, ...edges.flatMap((edge) => edge.routes)]);
  const written = new Written(program);
  const routes = written.routes.filter(({ step, word }) => started.has(step) && !taken.has(`${step}: ${word}`));
  return [
    ...[...written.steps].filter((name) => !started.has(name)),
    ...new Set(routes.map(({ step, shown }) => `${step}: ${shown}`)),
  ];
}

/** Names of steps and gates as written. `gates`: null if some gate gets its name only when it is asked. */
export function writtenNames(program: Program): {
  readonly steps: ReadonlySet<string>;
  readonly gates: readonly string[] | null;
} {
  const gates: (string | null)[] = [];
  for (const { act } of Object.values(program.blocks).flatMap((block) => block.steps)) {
    if (act.kind !== 'effect') continue;
    if (act.effect.kind === 'gate') gates.push(typeof act.effect.gate === 'string' ? act.effect.gate : null);
    for (const [, name = ''] of saidIn(act.effect).matchAll(/\bmeow\s+await-approval\s+["']?([^\s"';&|]+)/g))
      gates.push(/[{$`]/.test(name) ? null : name);
  }
  const named = gates.filter((gate) => gate !== null);
  return { steps: new Written(program).steps, gates: named.length < gates.length ? null : [...new Set(named)] };
}

interface WrittenRoute {
  readonly step: string;
  /** The outcome that takes it. */
  readonly word: string;
  /** As the author wrote it. */
  readonly shown: string;
}

/** A block inside itself is not entered again. */
const DEPTH_MAX = 12;

/** Steps and routes as written, by name. */
class Written {
  readonly steps = new Set<string>();
  readonly routes: WrittenRoute[] = [];
  readonly #program: Program;
  readonly #seen = new Set<string>();

  constructor(program: Program) {
    this.#program = program;
    this.#enter(program.entry, '', []);
    for (const { states } of Object.values(program.machines))
      if (this.#hasMachineEntry()) for (const block of Object.values(states)) this.#enter(block, '', []);
  }

  #hasMachineEntry(): boolean {
    return this.#program.blocks[this.#program.entry]?.naming === 'visit-first';
  }

  #enter(name: string, prefix: string, inside: readonly string[]): void {
    const block = this.#program.blocks[name];
    const key = `${name} ${prefix}`;
    if (block === undefined || this.#seen.has(key) || inside.includes(name) || inside.length > DEPTH_MAX) return;
    this.#seen.add(key);
    for (const step of block.steps) this.#step(block, step, prefix, [...inside, name]);
    if (block.visits !== null) this.#all(block.visits.instead, prefix, []);
  }

  #step({ naming }: Block, step: Step, prefix: string, inside: readonly string[]): void {
    const name = `${prefix}${step.id}`;
    if (step.executor !== 'ask' && !(step.executor === 'stop' && step.id === 'STOP')) this.steps.add(name);
    const { act, onError, routes } = step;
    if (act.kind === 'each') this.#all(act.target, `${name}.*.`, inside);
    if (act.kind === 'loop') {
      this.#all(act.target, `${name}.*.`, inside);
      if (act.check.kind === 'block') this.#all(act.check.target, `${name}.*.`, inside);
      if (act.exhausted.kind === 'expand') this.#all(act.exhausted.target, `${name}.exhausted.`, inside);
    }
    if (onError.kind === 'recover') this.#all(onError.target, `${name}.recover.*.`, inside);
    for (const [key, route] of Object.entries(routes)) this.#route(step, name, key, route);
    for (const route of Object.values(routes)) {
      if (route.kind === 'expand') this.#all(route.target, `${name}.`, inside);
      else if (naming !== 'path') for (const block of blocksOf(route)) this.#enter(block, prefix, []);
    }
  }

  /** Routes of a state machine are what its text shows, which is not an outcome. */
  #route(step: Step, name: string, key: string, route: Transition): void {
    if (visitKind(step) !== null) {
      if (route.kind === 'goto' || route.kind === 'call')
        this.routes.push({ step: name, word: routeWord(step, key), shown: routeWord(step, key) });
      return;
    }
    if (route.kind !== 'expand' || step.executor !== 'branch') return;
    // A timeout without a route of its own takes that of false.
    if (key === 'timeout' && JSON.stringify(route) === JSON.stringify(step.routes['false'])) return;
    const isGate = step.act.kind === 'effect' && step.act.effect.kind === 'command';
    if (isGate) this.routes.push({ step: name, word: key, shown: `on_${key}` });
  }

  #all(target: Target, prefix: string, inside: readonly string[]): void {
    for (const block of blocksOfTarget(target)) this.#enter(block, prefix, inside);
  }
}
