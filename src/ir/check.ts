// Conditions that every Program must meet before a run. A violation is a compiler bug, so the messages are for
// developers, not for authors.

import type { Transition } from './transition.ts';
import { blocksOf, blocksOfTarget } from './transition.ts';
import { checkTransitionPolicies } from './machine.ts';
import type { Block, Program, Step } from './program.ts';

/** Empty if the Program is valid. */
export function checkProgram(program: Program): readonly string[] {
  const problems: string[] = [];
  const entry = program.blocks[program.entry];
  if (entry === undefined) problems.push(`the entry block ${program.entry} does not exist`);
  for (const [name, block] of Object.entries(program.blocks)) {
    if (block.name !== name) problems.push(`block ${name} has the name ${block.name}`);
    problems.push(...checkBlock(program, block));
  }
  problems.push(...checkTransitionPolicies(program));
  return problems;
}

function checkBlock(program: Program, block: Block): readonly string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const target of block.visits === null ? [] : blocksOfTarget(block.visits.instead)) {
    if (program.blocks[target] === undefined) problems.push(`${block.name}: there is no block ${target}`);
  }
  for (const step of block.steps) {
    const where = `${block.name}: step ${step.id}`;
    if (!/^[A-Za-z0-9_-]+$/.test(step.id)) problems.push(`${where}: the id has characters that ids may not have`);
    if (seen.has(step.id)) problems.push(`${where}: the id is used twice`);
    seen.add(step.id);
    for (const target of targetsOf(step)) {
      if (program.blocks[target] === undefined) problems.push(`${where}: there is no block ${target}`);
    }
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
  const targets = Object.values(routes).flatMap(blocksOf);
  if (act.kind === 'each' || act.kind === 'block') targets.push(...blocksOfTarget(act.target));
  if (onError.kind === 'recover') targets.push(...blocksOfTarget(onError.target));
  return targets;
}
