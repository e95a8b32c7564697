// That agents are started before they are prompted, and not ended in between, as far as that can be told from their names.
// Names may have holes: two of them can be the same agent unless what stands around the holes differs.

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
  /** With `*` for each hole. */
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
        // Once for each agent and file: many steps may be about the same one.
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
  const start = `Start it before: executor = "spawn", agent = "${name.value}"; whoever calls this may have done so.`;
  const started = new Set(spawns.map((spawn) => spawn.name.value));
  block.report.warning('agent-not-spawned', name.place, message, () => suggest(name.value, started, start));
}

/**
 * An agent that is started in the same block, and nowhere else, must be started before. One that is started after the
 * step, and so once more, was started by somebody else the first time.
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

/** An agent that a step before this one ends must be started again in between, beside them or below a step there. */
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
  // A set gives what is added while it is walked through.
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

/** Most names have no holes, and are the same only as themselves. */
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
  // Both have holes: what stands before the first and behind the last must agree as far as both have it.
  const starts = [one.slice(0, one.indexOf('*')), other.slice(0, other.indexOf('*'))] as const;
  const ends = [one.slice(one.lastIndexOf('*') + 1), other.slice(other.lastIndexOf('*') + 1)] as const;
  return (
    (starts[0].startsWith(starts[1]) || starts[1].startsWith(starts[0])) &&
    (ends[0].endsWith(ends[1]) || ends[1].endsWith(ends[0]))
  );
}
