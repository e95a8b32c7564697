// What a step and everything that can follow it may read or touch, by name. Computed once from the Program.
//
// footprint/1  A step's footprint contains its own texts and those of every block that it can enter, directly or not.
// footprint/2  A name that is known only at run time stands for all names of its kind.
// footprint/3  Two activities with disjoint resources commute: see reduction.ts.
// footprint/4  Outputs and variables that no unfinished step can read make no difference: see state-key.ts.

import type { Json } from '../base/json.ts';
import type { EffectSpec } from '../ir/effect.ts';
import { blocksOfTarget, blocksOf, type Target } from '../ir/transition.ts';
import { type Block, canGrow, type Program, type Step, targetsOfAct } from '../ir/program.ts';
import { type Text, writtenText } from '../ir/text.ts';

/** Sets of names as bits. */
export interface Footprint {
  /** Outputs and variables. */
  readonly reads: bigint;
  /** Agents, gates and events. */
  readonly resources: bigint;
  /** It asks for the status of other steps. */
  readonly readsStatus: boolean;
  /** A step below it may fail without failing the run at once. */
  readonly contains: boolean;
  /** It, or a step below it, may fail as soon as it is ready: it needs a step that may never exist, or an agent. */
  readonly failsAtOnce: boolean;
  /** It, or a step below it, handles the failure of a step below it, or tries again after it. */
  readonly handles: boolean;
}

const NO_FOOTPRINT: Footprint = {
  reads: 0n,
  resources: 0n,
  readsStatus: false,
  contains: false,
  failsAtOnce: false,
  handles: false,
};

export class Footprints {
  readonly #program: Program;
  readonly #variables: Readonly<Record<string, Json>>;
  readonly #bits = new Map<string, bigint>();
  readonly #kinds = new Map<string, bigint>();
  readonly #ofStep = new Map<Step, Footprint>();
  readonly #ofBlock = new Map<string, Footprint>();
  readonly #own = new Map<Step, Footprint>();
  /** Names of variables that some block passes: the value of the run does not count there. */
  readonly #passed: ReadonlySet<string>;

  constructor(program: Program, variables: Readonly<Record<string, Json>>) {
    this.#program = program;
    this.#variables = variables;
    const steps = Object.values(program.blocks).flatMap((block) => block.steps);
    this.#passed = new Set(steps.flatMap((step) => [...targetsOf(step)].flatMap((to) => Object.keys(to.variables))));
    // All names must be known before the first footprint with a name that stands for all of its kind.
    for (const step of steps) this.#ownOf(step);
    this.#own.clear();
  }

  of(step: Step): Footprint {
    const known = this.#ofStep.get(step);
    if (known !== undefined) return known;
    const blocks = this.#closure([...targetsOf(step)].flatMap(blocksOfTarget), [step]);
    const parts = [this.#ownOf(step), ...[...blocks].flatMap((block) => block.steps.map((each) => this.#ownOf(each)))];
    const found = union([...parts, ...[...blocks].map((block) => this.#readsOf(block.parameters))]);
    this.#ofStep.set(step, found);
    return found;
  }

  /** Footprint of a block that will be entered, such as the one after a call. */
  ofTarget(target: Target): Footprint {
    const key = JSON.stringify(target.block);
    const known = this.#ofBlock.get(key);
    if (known !== undefined) return known;
    const steps = blocksOfTarget(target).flatMap((name) => this.#program.blocks[name]?.steps ?? []);
    const found = union([...steps.map((step) => this.of(step)), this.#readsOf(target)]);
    this.#ofBlock.set(key, found);
    return found;
  }

  /** The names that the step itself uses when it starts or ends. */
  ownOf(step: Step): Footprint {
    return this.#ownOf(step);
  }

  readsOutput(reads: bigint, step: string, output: string): boolean {
    return (reads & (this.#bits.get(`out ${step}.${output}`) ?? 0n)) !== 0n;
  }

  readsVariable(reads: bigint, name: string): boolean {
    return (reads & (this.#bits.get(`var ${name}`) ?? 0n)) !== 0n;
  }

  touchesGate(resources: bigint, gate: string): boolean {
    return (resources & ((this.#bits.get(`gate ${gate}`) ?? 0n) | (this.#bits.get('gate *') ?? 0n))) !== 0n;
  }

  /** Blocks that control may reach from these. */
  #closure(names: readonly string[], from: readonly Step[]): ReadonlySet<Block> {
    const found = new Set<Block>();
    const queue = [...names, ...from.flatMap((step) => this.#steered(step))];
    for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
      const block = this.#program.blocks[name];
      if (block === undefined || found.has(block)) continue;
      found.add(block);
      if (block.visits !== null) queue.push(...blocksOfTarget(block.visits.instead));
      for (const step of block.steps)
        queue.push(...[...targetsOf(step)].flatMap(blocksOfTarget), ...this.#steered(step));
    }
    return found;
  }

  /** An answer may lead to every state of its machine. */
  #steered({ act }: Step): readonly string[] {
    const key = act.kind === 'effect' && 'steering' in act.effect ? act.effect.steering : null;
    const machine = key === null ? undefined : this.#program.machines[this.#program.steerings[key]?.machine ?? ''];
    if (machine === undefined) return [];
    return [...Object.values(machine.states), ...Object.values(machine.workflows), ...Object.values(machine.asks)];
  }

  #ownOf(step: Step): Footprint {
    const known = this.#own.get(step);
    if (known !== undefined) return known;
    const effect = step.act.kind === 'effect' ? step.act.effect : null;
    const agents = [step.agent, effect !== null && 'agent' in effect ? effect.agent : null];
    const gates = effect?.kind === 'gate' ? [effect.gate] : [];
    const said = effect === null ? '' : saidIn(effect);
    const asked = [...said.matchAll(/\bmeow\s+await-approval\s+(?:"([^"]*)"|'([^']*)'|([^\s"';&|]+))/g)];
    const resources = [
      ...agents.flatMap((text) => (text === null ? [] : [this.#resource('agent', this.#known(text))])),
      ...gates.map((text) => this.#resource('gate', this.#known(text))),
      ...asked.map(([, a, b, c]) => this.#resource('gate', plainName(a ?? b ?? c ?? ''))),
      ...(/\bmeow\s+(?:await-)?event\b/.test(said) ? [this.#resource('event', 'any')] : []),
    ];
    const found = {
      reads: this.#readsOf(step).reads,
      resources: resources.reduce((all, bit) => all | bit, 0n),
      readsStatus: /\bmeow\s+step-status\b/.test(said),
      contains: containsFailures(step),
      failsAtOnce: effect?.kind === 'prompt' || step.needs.some((need) => need.includes('.') && !need.includes('*')),
      handles: handlesFailures(step) || (canGrow(step) && step.retry.attemptsMax > 1),
    };
    this.#own.set(step, found);
    return found;
  }

  /** Null if it is known only at run time. */
  #known(text: Text): string | null {
    if (typeof text === 'string') return text;
    const values = text.parts.map((part) => {
      if (typeof part === 'string') return part;
      const [name = ''] = part.path;
      const value = this.#variables[name];
      return part.path.length === 1 && !this.#passed.has(name) && typeof value === 'string' ? value : null;
    });
    return values.includes(null) ? null : values.join('');
  }

  #resource(kind: string, name: string | null): bigint {
    const bit = this.#bit(`${kind} ${name ?? '*'}`);
    const all = (this.#kinds.get(kind) ?? 0n) | bit;
    this.#kinds.set(kind, all);
    return name === null ? all : bit;
  }

  #bit(name: string): bigint {
    const known = this.#bits.get(name);
    if (known !== undefined) return known;
    const bit = 1n << BigInt(this.#bits.size);
    this.#bits.set(name, bit);
    return bit;
  }

  #readsOf(part: unknown): Footprint {
    let reads = 0n;
    for (const path of pathsIn(part)) {
      for (const name of namesRead(path)) reads |= this.#bit(name);
    }
    return { ...NO_FOOTPRINT, reads };
  }
}

export function union(all: readonly Footprint[]): Footprint {
  let [reads, resources, readsStatus, contains, failsAtOnce, handles] = [0n, 0n, false, false, false, false];
  for (const each of all) {
    reads |= each.reads;
    resources |= each.resources;
    readsStatus ||= each.readsStatus;
    contains ||= each.contains;
    failsAtOnce ||= each.failsAtOnce;
    handles ||= each.handles;
  }
  return { reads, resources, readsStatus, contains, failsAtOnce, handles };
}

/** Whether the failure of a step below this one does not fail the run at once. */
export function containsFailures(step: Step): boolean {
  return step.act.kind === 'each' || handlesFailures(step);
}

/** Whether the step handles the failure of a step below it. */
export function handlesFailures(step: Step): boolean {
  return (step.onError.kind !== 'fail' || Object.hasOwn(step.routes, 'child-failed')) && canGrow(step);
}

/** All targets that the step may enter, except those that an answer names. */
export function* targetsOf(step: Step): Generator<Target> {
  yield* targetsOfAct(step.act);
  if (step.onError.kind === 'recover') yield step.onError.target;
  for (const route of Object.values(step.routes)) {
    if ('target' in route && blocksOf(route).length > 0) yield route.target;
    if (route.kind === 'call') yield route.returnTo;
  }
}

/** The command or prompt of an effect, as written. */
export function saidIn(effect: EffectSpec<Text>): string {
  if (effect.kind === 'command') return writtenText(effect.script);
  return effect.kind === 'prompt' || effect.kind === 'turn' ? writtenText(effect.prompt) : '';
}

/** Paths of all references in a part of a Program, whatever its shape. */
export function* pathsIn(part: unknown): Generator<readonly string[]> {
  if (typeof part !== 'object' || part === null) return;
  if (Array.isArray(part)) {
    for (const item of part) yield* pathsIn(item);
    return;
  }
  const { path, quote, kind, step } = part as Readonly<Record<string, unknown>>;
  if (Array.isArray(path) && Array.isArray(quote)) yield path as readonly string[];
  // The check of a loop.
  if (Array.isArray(path) && kind === 'output' && typeof step === 'string')
    yield [...step.split('.'), 'outputs', ...(path as readonly string[])];
  for (const value of Object.values(part)) yield* pathsIn(value);
}

/** An output, by the last segment of its step; for an output of a loop also that of the step in the round. */
export function outputPath(
  path: readonly string[],
): { readonly step: string; readonly rest: readonly string[] } | null {
  const split = path.indexOf('outputs', 1);
  return split < 0 ? null : { step: path[split - 1] ?? '', rest: path.slice(split + 1) };
}

function namesRead(path: readonly string[]): readonly string[] {
  const output = outputPath(path);
  const names = [`var ${path[0] ?? ''}`];
  if (output === null) return names;
  const [name = '', inner] = output.rest;
  return [...names, `out ${output.step}.${name}`, ...(inner === undefined ? [] : [`out ${name}.${inner}`])];
}

function plainName(written: string): string | null {
  return /[{}$`]/.test(written) ? null : written;
}
