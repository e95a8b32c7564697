// The linker: combines a workflow and the workflows that it enters, in any language, into one Program.
//
//   link/1  Each part is compiled on its own. Its callers refer to its entry by a symbol that no block can have.
//   link/2  Names of blocks, machines and steerings are renamed only where the IR declares a name:
//           variables, environments, prompts and defaults are data and pass through untouched.
//   link/3  A part is not the run: where it would stop the run, it returns to its caller, or fails there.
//   link/4  The main Program decides limits, cleanup and what a failure means. The facts of all Conductor parts are merged.

import { present } from '../base/assert.ts';
import { own } from '../base/json.ts';
import type { ConductorFacts } from './conductor.ts';
import { attachConductor, conductorOf } from './conductor.ts';
import type { EffectSpec } from './effect.ts';
import type { Transition, Target } from './transition.ts';
import type { Machine, TransitionPolicy } from './machine.ts';
import type { Act, Block, OnError, Program, Step } from './program.ts';
import type { Text } from './text.ts';

/** A compiled workflow that others enter. */
export interface Part {
  /** By which the others name its entry: made by `partSymbol`. */
  readonly symbol: string;
  /** Stands before its names in the linked Program: its file, as the user knows it. */
  readonly name: string;
  readonly program: Program;
  readonly failedStop: FailedStop;
}

/** A stop that was not wanted: the caller is told as if by any other result, or the step that stops fails. */
export type FailedStop = 'returns' | 'fails';

export function partSymbol(number: number): string {
  return `\0part ${String(number)}`;
}

export function linkProgram(main: Program, parts: readonly Part[]): Program {
  if (parts.length === 0) return main;
  const names = new NameTable(main, parts);
  const root = names.of(main);
  const linked = parts.map((part) => renameProgram(part.program, names.of(part.program), part.failedStop));
  const all = [renameProgram(main, root, null), ...linked];
  // Not by assignment: a block may be called __proto__.
  const merged = <T>(of: (program: Renamed) => Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
    Object.fromEntries(all.flatMap((program) => Object.entries(of(program))));
  const facts = mergedFacts([main, ...parts.map(({ program }) => program)], main);
  return {
    ...main,
    blocks: merged(({ blocks }) => blocks),
    machines: merged(({ machines }) => machines),
    steerings: merged(({ steerings }) => steerings),
    attachments: { ...main.attachments, ...(facts === null ? {} : attachConductor(facts)) },
  };
}

/** How the names of one Program are to be written in the linked one. */
interface Names {
  readonly block: (name: string) => string;
  readonly machine: (name: string) => string;
  readonly steering: (name: string) => string;
}

class NameTable {
  readonly #names = new Map<Program, Names>();

  constructor(main: Program, parts: readonly Part[]) {
    const taken = { blocks: keysOf(main.blocks), machines: keysOf(main.machines), steerings: keysOf(main.steerings) };
    const entries = new Map<string, string>();
    const lookup = (own: ReadonlyMap<string, string>) => (name: string) => own.get(name) ?? entries.get(name) ?? name;
    const same = lookup(new Map());
    this.#names.set(main, { block: same, machine: same, steering: same });
    for (const { symbol, name: file, program } of parts) {
      const rename = (names: Iterable<string>, used: Set<string>, wanted: (name: string) => string) =>
        new Map([...names].map((name) => [name, freeName(wanted(name), used)]));
      const qualified = (name: string): string => `${file}#${name}`;
      // Ids that begin with a visit carry the name of their workflow already.
      const blocks = rename(Object.keys(program.blocks), taken.blocks, (name) =>
        own(program.blocks, name)?.naming === 'visit-first' ? name : qualified(name),
      );
      const machines = rename(Object.keys(program.machines), taken.machines, qualified);
      const steerings = rename(Object.keys(program.steerings), taken.steerings, qualified);
      entries.set(symbol, blocks.get(program.entry) ?? program.entry);
      this.#names.set(program, { block: lookup(blocks), machine: lookup(machines), steering: lookup(steerings) });
    }
  }

  of(program: Program): Names {
    return present(this.#names.get(program), 'a Program that is not linked here');
  }
}

function keysOf(record: Readonly<Record<string, unknown>>): Set<string> {
  return new Set(Object.keys(record));
}

function freeName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let n = 2; taken.has(name); n += 1) name = `${wanted}_${String(n)}`;
  taken.add(name);
  return name;
}

type Renamed = Pick<Program, 'blocks' | 'machines' | 'steerings'>;

/** `failedStop`: null in the main Program, whose stops stop the run. */
function renameProgram(program: Program, names: Names, failedStop: FailedStop | null): Renamed {
  const walk: Walk = { names, failedStop };
  return {
    blocks: renamedEntries(program.blocks, names.block, (block) => renameBlock(walk, block)),
    machines: renamedEntries(program.machines, names.machine, (machine) => renameMachine(names, machine)),
    steerings: renamedEntries(program.steerings, names.steering, (steering) => renameSteering(names, steering)),
  };
}

function renamedEntries<T>(
  record: Readonly<Record<string, T>>,
  nameOf: (name: string) => string,
  valueOf: (value: T) => T,
): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [nameOf(name), valueOf(value)]));
}

interface Walk {
  readonly names: Names;
  readonly failedStop: FailedStop | null;
}

function renameBlock(walk: Walk, block: Block): Block {
  const { visits } = block;
  return {
    ...block,
    name: walk.names.block(block.name),
    steps: block.steps.map((step) => renameStep(walk, step)),
    visits: visits === null ? null : { ...visits, instead: renameTarget(walk, visits.instead) },
  };
}

function renameStep(walk: Walk, step: Step): Step {
  const routes = Object.entries(step.routes).map(([key, follow]) => [key, renameTransition(walk, follow)] as const);
  return {
    ...step,
    act: renameAct(walk, step.act),
    routes: Object.fromEntries(routes),
    onError: renameOnError(walk, step.onError),
  };
}

function renameAct(walk: Walk, act: Act): Act {
  switch (act.kind) {
    case 'effect':
      return { kind: 'effect', effect: renameEffect(walk, act.effect) };
    case 'pass':
      return act;
    case 'block':
    case 'each':
      return { ...act, target: renameTarget(walk, act.target) };
  }
}

/** The steering is the only name in an effect; all else is data. */
function renameEffect({ names }: Walk, effect: EffectSpec<Text>): EffectSpec<Text> {
  if (!('steering' in effect) || effect.steering === null) return effect;
  return { ...effect, steering: names.steering(effect.steering) };
}

function renameOnError(walk: Walk, onError: OnError): OnError {
  switch (onError.kind) {
    case 'fail':
    case 'continue':
      return onError;
    case 'recover':
      return { kind: 'recover', target: renameTarget(walk, onError.target) };
  }
}

function renameTransition(walk: Walk, follow: Transition): Transition {
  switch (follow.kind) {
    case 'end':
    case 'return':
    case 'fail':
      return follow;
    case 'expand':
    case 'goto':
    case 'fork':
      return { ...follow, target: renameTarget(walk, follow.target) };
    case 'call':
      return { ...follow, target: renameTarget(walk, follow.target), returnTo: renameTarget(walk, follow.returnTo) };
    case 'stop':
      return walk.failedStop === null ? follow : withinRun(follow, walk.failedStop);
  }
}

/** The end of a part, which is not that of the run (link/3). */
function withinRun({ verdict, reason }: Extract<Transition, { kind: 'stop' }>, failedStop: FailedStop): Transition {
  if (verdict === 'failed' && failedStop === 'fails') {
    return { kind: 'fail', message: reason ?? 'the workflow ended as a failure' };
  }
  const value = { verdict: verdict === 'done' ? 'success' : 'failure', reason };
  return { kind: 'return', value: { kind: 'literal', value } };
}

/** A text that is looked up may also be the name of a block, as it is now called. */
function renameTarget({ names }: Walk, target: Target): Target {
  if (typeof target.block === 'string') return { ...target, block: names.block(target.block) };
  const renamed = Object.entries(target.names).map(([text, block]) => [text, names.block(block)] as const);
  const own = renamed.map(([, block]) => [block, block] as const);
  return { ...target, names: Object.fromEntries([...own, ...renamed]) };
}

function renameMachine({ block }: Names, machine: Machine): Machine {
  const { states, workflows, adapters, asks } = machine;
  const same = <T>(value: T): T => value;
  return {
    ...machine,
    states: renamedEntries(states, same, block),
    workflows: renamedEntries(workflows, same, block),
    adapters: renamedEntries(adapters, block, same),
    asks: { open: block(asks.open), timed: block(asks.timed), routed: block(asks.routed) },
  };
}

function renameSteering({ machine }: Names, steering: TransitionPolicy): TransitionPolicy {
  return { ...steering, machine: machine(steering.machine) };
}

/** What a run needs to know of the Conductor workflows in it; null if there is none. */
function mergedFacts(programs: readonly Program[], main: Program): ConductorFacts | null {
  const [first, ...others] = programs.flatMap((program) => conductorOf(program) ?? []);
  if (first === undefined) return null;
  const all = [first, ...others];
  return {
    ...first,
    workflowId: conductorOf(main)?.workflowId ?? main.source.name,
    mutates: all.some(({ mutates }) => mutates),
    gates: Object.fromEntries(all.toReversed().flatMap(({ gates }) => Object.entries(gates))),
  };
}
