// Conditions that every Program must meet before a run. A violation is a compiler bug, so the messages are for
// developers, not for authors.

import { blocksOf, blocksOfTarget, type Transition } from './transition.ts';
import { own } from '../base/json.ts';
import { implicitTransition, TAG_RULES } from './machine.ts';
import { type Block, type Program, type Step, targetsOfAct } from './program.ts';

/** Empty if the Program is valid. */
export function checkProgram(program: Program): readonly string[] {
  const { blocks, entry } = program;
  const problems = blocks[entry] === undefined ? [`the entry block ${entry} does not exist`] : [];
  for (const [name, block] of Object.entries(blocks)) {
    if (block.name !== name) problems.push(`block ${name} has the name ${block.name}`);
    problems.push(...checkBlock(blocks, block));
  }
  return [...problems, ...checkTransitionPolicies(program)];
}

type Named = Readonly<Record<string, unknown>>;

function missing(where: string, kind: string, known: Named, names: readonly (string | null)[]): readonly string[] {
  const unknown = names.filter((name) => name !== null && own(known, name) === undefined);
  return unknown.map((name) => `${where}: there is no ${kind} ${name}`);
}

function checkBlock(blocks: Named, block: Block): readonly string[] {
  const instead = block.visits === null ? [] : blocksOfTarget(block.visits.instead);
  const problems = [...missing(block.name, 'block', blocks, instead)];
  const seen = new Set<string>();
  for (const step of block.steps) {
    const where = `${block.name}: step ${step.id}`;
    if (!/^[A-Za-z0-9_-]+$/.test(step.id)) problems.push(`${where}: the id has characters that ids may not have`);
    if (seen.has(step.id)) problems.push(`${where}: the id is used twice`);
    seen.add(step.id);
    problems.push(...missing(where, 'block', blocks, targetsOf(step)));
    // A frame with a transition must contain only that step; otherwise it would end twice.
    if (block.steps.length > 1 && Object.values(step.routes).some(movesControl)) {
      problems.push(`${where}: it has a transition, but is not the only step of its block`);
    }
    if (step.retry.attemptsMax < 1) problems.push(`${where}: its retry allows no attempt`);
  }
  return problems;
}

function movesControl({ kind }: Transition): boolean {
  return kind === 'goto' || kind === 'call' || kind === 'return';
}

function targetsOf({ routes, act, onError }: Step): readonly string[] {
  const targets = [...Object.values(routes).flatMap(blocksOf), ...targetsOfAct(act).flatMap(blocksOfTarget)];
  if (onError.kind === 'recover') targets.push(...blocksOfTarget(onError.target));
  return targets;
}

export function checkTransitionPolicies({
  blocks,
  machines,
  steerings,
}: Pick<Program, 'machines' | 'steerings'> & { readonly blocks: Named }): readonly string[] {
  const problems: string[] = [];
  for (const [name, { states, spellings, workflows, asks }] of Object.entries(machines)) {
    const entered = [states, workflows, asks].flatMap((names) => Object.values(names));
    problems.push(...missing(`machine ${name}`, 'block', blocks, entered));
    problems.push(...missing(`machine ${name}`, 'state', states, Object.values(spellings).flat()));
  }
  for (const [key, { machine, allowed, forced }] of Object.entries(steerings)) {
    const where = `steering ${key}`;
    const { states, workflows } = own(machines, machine) ?? { states: {}, workflows: {} };
    problems.push(...missing(where, 'machine', machines, [machine]));
    if (forced && implicitTransition(allowed) === null)
      problems.push(`${where}: no single transition is left to force`);
    for (const { tag, target, return: back, next, timeoutNext } of allowed ?? []) {
      const entersWorkflow = TAG_RULES[tag].target === 'workflow';
      const continued = [entersWorkflow ? null : target, back, next, timeoutNext];
      problems.push(...missing(where, 'state', states, continued));
      problems.push(...missing(where, 'workflow', workflows, [entersWorkflow ? target : null]));
    }
  }
  return problems;
}
