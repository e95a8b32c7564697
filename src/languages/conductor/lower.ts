// Steps as syntax → blocks: one for each step and one for each possible end; bodies.ts makes the blocks that perform
// steps.

import type { EndInspection } from '../../ir/conductor.ts';
import type { Block, Step } from '../../ir/program.ts';
import { targetOf, type Transition } from '../../ir/transition.ts';
import { lowerOpcode, plainStep } from './bodies.ts';
import type { Steps } from './graph.ts';
import { answersFor, isGood, unroutedEnds } from './routes.ts';
import { named, type OpcodeSpec, type Route, stepAfter, type StepSyntax, STOP } from './syntax.ts';

/** How often an evaluator is told what is wrong with its answer. */
const REPROMPTS = 2;

/** Marks an end in failure; step ids never contain it. */
const UNWANTED = '!';

/** `entry`: the first step. Unreachable ends are omitted. */
export function lowerSteps(steps: Steps, entry: string): readonly Block[] {
  const entered = new Set([entry]);
  for (const { routes } of steps.values()) for (const route of routes) entered.add(blockAfter(steps, route));
  const blocks = [...steps.values()].flatMap((step) =>
    step.opcode === 'STOP' ? endBlocks(step) : lowerStep(steps, step),
  );
  const ends = steps.has(STOP) ? [] : endBlocks({ id: STOP, verdict: null, spec: null });
  const isEnd = ({ steps: [only] }: Block): boolean => only?.executor === 'stop';
  return [...blocks, ...ends].filter((block) => !isEnd(block) || entered.has(block.name));
}

/** A STOP without a verdict is two ends: the route decides. */
function endBlocks({ id, verdict, spec }: Pick<StepSyntax, 'id' | 'verdict' | 'spec'>): readonly Block[] {
  const reason = spec?.kind === 'stop' ? spec.reason : null;
  const endBlock = (name: string, ends: EndInspection['verdict']): Block => {
    const done: Transition = { kind: 'stop', verdict: ends === 'success' ? 'done' : 'failed', reason };
    return lowerVisit(id, { kind: 'stop', verdict: ends, reason }, null, { done }, name)[0];
  };
  if (verdict !== null) return [endBlock(id, verdict)];
  return [endBlock(id, 'success'), endBlock(id + UNWANTED, 'failure')];
}

/** The target block of a route, possibly after another workflow. A workflow that returns has succeeded. */
function blockAfter(steps: Steps, route: Route): string {
  const to = stepAfter(route);
  const target = steps.get(to);
  const depends = target === undefined || (target.opcode === 'STOP' && target.verdict === null);
  return depends && route.enters === null && !isGood(route.key) ? to + UNWANTED : to;
}

function lowerRoute(steps: Steps, route: Route): Transition {
  const after = targetOf(blockAfter(steps, route));
  const { enters } = route;
  if (enters === null) return { kind: 'goto', target: after, session: 'fresh', dropCallers: false };
  const passed = Object.entries(enters.variables).map(([name, value]) => [name, { kind: 'literal', value }] as const);
  const target = targetOf(enters.entry, Object.fromEntries(passed));
  return { kind: 'call', target, returnTo: after, session: 'fresh' };
}

/** Empty if a part of the step is missing. */
function lowerStep(steps: Steps, syntax: StepSyntax): readonly Block[] {
  if (syntax.spec === null) return [];
  const routes = syntax.routes.flatMap((route) => {
    const transition = lowerRoute(steps, route);
    return answersFor(syntax, route).map((answer) => [answer, transition] as const);
  });
  const lacking = unroutedEnds(syntax).map(({ key, answer }) => {
    const reason = `${named(syntax)} has no route for "${key}"`;
    return [answer, { kind: 'stop', verdict: 'failed', reason }] as const;
  });
  return lowerVisit(syntax.id, syntax.spec, syntax.timeoutMs, Object.fromEntries([...lacking, ...routes]));
}

/** The visited block, and the blocks that perform its step. */
export function lowerVisit(
  id: string,
  spec: OpcodeSpec,
  timeoutMs: number | null,
  routes: Step['routes'] = {},
  name = id,
): readonly [Block, ...Block[]] {
  const [act, ...body] = lowerOpcode(id, spec, timeoutMs);
  const step: Step = {
    // For a step that a block performs, the limit applies to its turn or command.
    ...plainStep(id, spec.kind, act, body.length === 0 ? timeoutMs : null),
    routes,
    unrouted: 'tell',
    repromptsMax: spec.kind === 'evaluate' ? REPROMPTS : 0,
  };
  return [{ name, parameters: [], steps: [step], naming: 'visit-last', visits: null }, ...body];
}
