// The linker: combines a workflow and the workflows that it enters, in any language, into one Program.
//
//   link/1  Each part is compiled on its own. Its callers refer to its entry by a symbol that no block can have.
//   link/2  Names of blocks, machines and steerings are renamed only where the IR declares a name:
//           variables, environments, prompts and defaults are data and pass through untouched.
//   link/3  A part is not the run: where it would stop the run, it returns to its caller, or fails there.
//   link/4  The main Program decides limits, cleanup and what a failure means. The facts of all Conductor parts are merged.

import { own } from '../base/json.ts';
import type { EffectSpec } from './effect.ts';
import type { Machine } from './machine.ts';
import {
  type Act,
  attachConductor,
  type Block,
  type ConductorFacts,
  conductorOf,
  type Program,
  type Step,
} from './program.ts';
import type { Text } from './text.ts';
import type { Target, Transition } from './transition.ts';

/** A compiled workflow that others enter. */
export interface Part {
  /** The name by which other parts enter it: made by `partSymbol`. */
  readonly symbol: string;
  /** Prefix of its names in the linked Program: its file, as the user knows it. */
  readonly name: string;
  readonly program: Program;
  readonly failedStop: FailedStop;
}

/** If a part stops as failed: it returns the verdict to its caller, or the step that stops fails. */
export type FailedStop = 'returns' | 'fails';

export function partSymbol(number: number): string {
  return `\0part ${String(number)}`;
}

export function linkProgram(main: Program, parts: readonly Part[]): Program {
  if (parts.length === 0) return main;
  const linked = namesIn(main, parts).map(([program, names]) => renameProgram(program, names));
  // Not by assignment: a block may be called __proto__.
  const merged = <T>(of: (program: Renamed) => Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
    Object.fromEntries(linked.flatMap((program) => Object.entries(of(program))));
  const facts = mergedFacts([main, ...parts.map(({ program }) => program)], main);
  return {
    ...main,
    blocks: merged(({ blocks }) => blocks),
    machines: merged(({ machines }) => machines),
    steerings: merged(({ steerings }) => steerings),
    attachments: { ...main.attachments, ...(facts === null ? {} : attachConductor(facts)) },
  };
}

/** The names of the blocks of the main Program and of each part in the linked Program, in this order. */
export function linkedBlockNames(main: Program, parts: readonly Part[]): readonly ((name: string) => string)[] {
  return namesIn(main, parts).map(([, { block }]) => block);
}

type Rename = (name: string) => string;

const sameName: Rename = (name) => name;

/** How the names and stops of one Program are to be written in the linked one. */
interface Names {
  readonly block: Rename;
  readonly machine: Rename;
  readonly steering: Rename;
  /** Null in the main Program, whose stops stop the run. */
  readonly failedStop: FailedStop | null;
}

function namesIn(main: Program, parts: readonly Part[]): readonly (readonly [Program, Names])[] {
  const taken = { blocks: keysOf(main.blocks), machines: keysOf(main.machines), steerings: keysOf(main.steerings) };
  const entries = new Map<string, string>();
  const lookup = (own: ReadonlyMap<string, string>) => (name: string) => own.get(name) ?? entries.get(name) ?? name;
  const same = lookup(new Map());
  const ofParts = parts.map(({ symbol, name: file, program, failedStop }) => {
    const rename = (record: Readonly<Record<string, unknown>>, used: Set<string>, wanted: Rename) =>
      new Map(Object.keys(record).map((name) => [name, freeName(wanted(name), used)]));
    const qualified = (name: string): string => `${file}#${name}`;
    // Ids that begin with a visit carry the name of their workflow already.
    const blocks = rename(program.blocks, taken.blocks, (name) =>
      own(program.blocks, name)?.naming === 'visit-first' ? name : qualified(name),
    );
    const machine = lookup(rename(program.machines, taken.machines, qualified));
    const steering = lookup(rename(program.steerings, taken.steerings, qualified));
    entries.set(symbol, blocks.get(program.entry) ?? program.entry);
    return [program, { block: lookup(blocks), machine, steering, failedStop }] as const;
  });
  return [[main, { block: same, machine: same, steering: same, failedStop: null }], ...ofParts];
}

function keysOf(record: Readonly<Record<string, unknown>>): Set<string> {
  return new Set(Object.keys(record));
}

/** The name, or the name with a number if it is taken. */
export function freeName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let n = 2; taken.has(name); n += 1) name = `${wanted}_${String(n)}`;
  taken.add(name);
  return name;
}

type Renamed = Pick<Program, 'blocks' | 'machines' | 'steerings'>;

function renameProgram({ blocks, machines, steerings }: Program, names: Names): Renamed {
  return {
    blocks: renamedEntries(blocks, names.block, (block) => renameBlock(names, block)),
    machines: renamedEntries(machines, names.machine, (machine) => renameMachine(names, machine)),
    steerings: renamedEntries(steerings, names.steering, (steering) => ({
      ...steering,
      machine: names.machine(steering.machine),
    })),
  };
}

function renamedEntries<T>(
  record: Readonly<Record<string, T>>,
  nameOf: Rename,
  valueOf: (value: T) => T,
): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [nameOf(name), valueOf(value)]));
}

function renameBlock(names: Names, block: Block): Block {
  const { visits } = block;
  return {
    ...block,
    name: names.block(block.name),
    steps: block.steps.map((step) => renameStep(names, step)),
    visits: visits === null ? null : { ...visits, instead: renameTarget(names, visits.instead) },
  };
}

function renameStep(names: Names, step: Step): Step {
  const { act, onError } = step;
  return {
    ...step,
    act: renameAct(names, act),
    routes: renamedEntries(step.routes, sameName, (follow) => renameTransition(names, follow)),
    onError: withTarget(names, onError),
  };
}

function renameAct(names: Names, act: Act): Act {
  if (act.kind === 'effect') return { ...act, effect: renameEffect(names, act.effect) };
  if (act.kind !== 'loop') return withTarget(names, act);
  const { check, exhausted } = act;
  return { ...withTarget(names, act), check: withTarget(names, check), exhausted: withTarget(names, exhausted) };
}

/** The steering is the only name in an effect; all else is data. */
function renameEffect({ steering }: Names, effect: EffectSpec<Text>): EffectSpec<Text> {
  if (!('steering' in effect) || effect.steering === null) return effect;
  return { ...effect, steering: steering(effect.steering) };
}

function renameTransition(names: Names, follow: Transition): Transition {
  if (follow.kind === 'stop') return names.failedStop === null ? follow : withinRun(follow, names.failedStop);
  const renamed = withTarget(names, follow);
  return renamed.kind === 'call' ? { ...renamed, returnTo: renameTarget(names, renamed.returnTo) } : renamed;
}

function withTarget<T extends object>(names: Names, part: T | (T & { readonly target: Target })): T {
  return 'target' in part ? { ...part, target: renameTarget(names, part.target) } : part;
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
function renameTarget({ block: rename }: Names, target: Target): Target {
  if (typeof target.block === 'string') return { ...target, block: rename(target.block) };
  const renamed = Object.entries(target.names).map(([text, block]) => [text, rename(block)] as const);
  const own = renamed.map(([, block]) => [block, block] as const);
  return { ...target, names: Object.fromEntries([...own, ...renamed]) };
}

function renameMachine({ block }: Names, machine: Machine): Machine {
  const { states, workflows, adapters, asks } = machine;
  return {
    ...machine,
    states: renamedEntries(states, sameName, block),
    workflows: renamedEntries(workflows, sameName, block),
    adapters: renamedEntries(adapters, block, sameName),
    asks: { open: block(asks.open), timed: block(asks.timed), routed: block(asks.routed) },
  };
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
