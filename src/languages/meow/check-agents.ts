// Checks that agents are started before they are prompted, and not killed in between, as far as their names show. Names
// may contain placeholders: two names can mean the same agent unless their fixed parts differ.

import { segmentMatcher } from '../../base/segment-pattern.ts';
import { suggest } from '../report.ts';
import { parseTemplate } from '../template.ts';
import type { TomlString } from '../toml-tree.ts';
import type { Linked } from './link.ts';
import type { Order } from './needs.ts';
import type { CallerScopes } from './caller-scope.ts';
import type { BlockSyntax, StepSyntax } from './syntax.ts';

interface AgentStep {
  readonly block: BlockSyntax;
  readonly step: StepSyntax;
  readonly name: TomlString;
  /** With `*` for each placeholder. */
  readonly pattern: string;
}

export function checkAgents(linked: Linked, sight: CallerScopes): void {
  const spawns = linked.blocks.flatMap((block) => stepsWith(block, 'spawn'));
  const candidatesFor = indexByPattern(spawns);
  const told = new Map<BlockSyntax['report'], Set<string>>();
  for (const block of linked.blocks) {
    const kills = stepsWith(block, 'kill');
    for (const prompt of stepsWith(block, 'agent')) {
      const possible = candidatesFor(prompt.pattern).filter(({ pattern }) => couldBeSame(pattern, prompt.pattern));
      if (possible.length > 0) {
        checkOrder(prompt, possible, sight.orderOf(block));
        checkEnded(linked, prompt, kills, possible, sight.orderOf(block));
      } else {
        // Once per agent and file: many steps may use the same agent.
        const names = told.get(block.report) ?? new Set();
        told.set(block.report, names);
        if (!names.has(prompt.name.value)) reportNowhere(prompt, spawns);
        names.add(prompt.name.value);
      }
    }
  }
}

function reportNowhere({ block, name }: AgentStep, spawns: readonly AgentStep[]): void {
  const message = `no step in sight starts the agent "${name.value}"`;
  const start = `Start it before: executor = "spawn", agent = "${name.value}"; a caller may have started it.`;
  const started = new Set(spawns.map((spawn) => spawn.name.value));
  block.report.warning('agent-not-spawned', name.place, message, () => suggest(name.value, started, start));
}

/**
 * An agent started only in this block must be started before the step. If the block starts it after the step, a caller
 * must have started it first.
 */
function checkOrder({ block, step, name }: AgentStep, possible: readonly AgentStep[], order: Order): void {
  const [first] = possible;
  if (first === undefined || possible.some((spawn) => spawn.block !== block || spawn.name.value !== name.value)) return;
  if (possible.some((spawn) => order.isBefore(spawn.step.id, step))) return;
  if (possible.some((spawn) => order.isBefore(step.id, spawn.step))) return;
  const needs = [...step.needs.map(({ text }) => text), first.step.id].map((id) => `"${id}"`).join(', ');
  const message = `the agent "${name.value}" may not have been started by then: "${first.step.id}" is not among the needs`;
  const related = [{ message: 'started here', place: first.step.place }];
  block.report.error('agent-not-spawned', name.place, message, `Add it: needs = [${needs}].`, related);
}

/** If an earlier step kills the agent, a step in between, or below one, must start it again. */
function checkEnded(
  { calls }: Linked,
  { block, step, name, pattern }: AgentStep,
  kills: readonly AgentStep[],
  possible: readonly AgentStep[],
  order: Order,
): void {
  if (pattern.includes('*')) return;
  const ending = kills.filter((kill) => kill.pattern === pattern && order.isBefore(kill.step.id, step));
  if (ending.length === 0) return;
  const starting = new Set(possible.filter((spawn) => spawn.block === block).map((spawn) => spawn.step));
  // Iterating a set includes elements added meanwhile.
  const blocks = new Set(possible.map((spawn) => spawn.block));
  for (const inner of blocks) {
    for (const { from, step: leading, to } of calls) {
      if (to !== inner) continue;
      if (from === block) starting.add(leading);
      blocks.add(from);
    }
  }
  const between = [...starting].filter((start) => order.isBefore(start.id, step));
  const last = ending.find((kill) => !between.some((start) => order.isBefore(kill.step.id, start)));
  if (last === undefined) return;
  const cause = `"${last.step.id}" ends it, and no step in between starts it again`;
  const message = `the agent "${name.value}" has been ended by then: ${cause}`;
  const hint = `Prompt it before "${last.step.id}", or start it again in between: executor = "spawn".`;
  const related = [{ message: 'ended here', place: last.step.place }];
  block.report.warning('agent-not-spawned', name.place, message, hint, related);
}

function stepsWith(block: BlockSyntax, executor: 'spawn' | 'agent' | 'kill'): readonly AgentStep[] {
  return block.steps.flatMap((step) => {
    const name = step.table.entries.get('agent')?.value;
    if (step.executor !== executor || name?.kind !== 'string' || name.value.trim() === '') return [];
    const pattern = parseTemplate(name.value)
      .parts.map((part) => (typeof part === 'string' ? part : '*'))
      .join('');
    return [{ block, step, name, pattern }];
  });
}

/** Most names have no placeholders and match only themselves. */
function indexByPattern(spawns: readonly AgentStep[]): (pattern: string) => readonly AgentStep[] {
  const open = spawns.filter(({ pattern }) => pattern.includes('*'));
  const exact = new Map<string, AgentStep[]>();
  for (const spawn of spawns) {
    if (spawn.pattern.includes('*')) continue;
    const same = exact.get(spawn.pattern);
    if (same === undefined) exact.set(spawn.pattern, [spawn]);
    else same.push(spawn);
  }
  return (pattern) => (pattern.includes('*') ? spawns : [...(exact.get(pattern) ?? []), ...open]);
}

function couldBeSame(one: string, other: string): boolean {
  if (!one.includes('*')) return segmentMatcher(other)(one);
  if (!other.includes('*')) return segmentMatcher(one)(other);
  // Both have placeholders: their fixed prefixes and suffixes must agree as far as both have them.
  const starts = [one.slice(0, one.indexOf('*')), other.slice(0, other.indexOf('*'))] as const;
  const ends = [one.slice(one.lastIndexOf('*') + 1), other.slice(other.lastIndexOf('*') + 1)] as const;
  return (
    (starts[0].startsWith(starts[1]) || starts[1].startsWith(starts[0])) &&
    (ends[0].endsWith(ends[1]) || ends[1].endsWith(ends[0]))
  );
}
