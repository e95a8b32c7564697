// What every Program must fulfil before a run of it may begin. A language that lowers wrongly is our fault, so these are
// sentences for us, not diagnostics for authors.

import type { Transition } from './transition.ts';
import { blocksOf, blocksOfTarget } from './transition.ts';
import { checkTransitionPolicies } from './machine.ts';
import type { Block, Program, Step } from './program.ts';

/** Empty where the Program may run. */
export function checkProgram(program: Program): readonly string[] {
  const problems: string[] = [];
  const entry = program.blocks[program.entry];
  if (entry === undefined) problems.push(`the entry block ${program.entry} does not exist`);
  for (const [name, block] of Object.entries(program.blocks)) {
    if (block.name !== name) problems.push(`block ${name} calls itself ${block.name}`);
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
    // A frame that hands control on must hold nothing else, or its end would be told twice.
    if (block.steps.length > 1 && Object.values(step.routes).some(movesControl)) {
      problems.push(`${where}: it moves control, and is not the only step of its block`);
    }
    if (step.retry.attemptsMax < 1) problems.push(`${where}: it may never be attempted`);
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
