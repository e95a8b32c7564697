// Steps as syntax → blocks: one for each step, and for each end that a run can come to.

import type { EffectSpec } from '../../ir/effect.ts';
import type { Transition } from '../../ir/transition.ts';
import { targetOf } from '../../ir/transition.ts';
import type { HaltSpec } from '../../ir/conducted.ts';
import type { Block, Step } from '../../ir/program.ts';
import { NO_RETRY } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import type { Steps } from './graph.ts';
import { STOP } from './ids.ts';
import { answersFor, isGood, unroutedEnds } from './routes.ts';
import type { Route, StepSyntax } from './syntax.ts';
import { named, stepAfter } from './syntax.ts';

/** How often an evaluator is told what is wrong with its answer. */
const REPROMPTS = 2;

/** The name of an end that was not wanted; no id of a step has such a mark. */
const UNWANTED = '!';

type Verdict = HaltSpec['verdict'];

/** `entry`: the step that a run begins with. Ends that nothing leads to are left out. */
export function lowerSteps(steps: Steps, entry: string): readonly Block[] {
  const entered = new Set([entry]);
  for (const { routes } of steps.values()) for (const route of routes) entered.add(blockAfter(steps, route));
  const ends = steps.has(STOP) ? [] : endBlocks(STOP, null, null);
  const blocks = [...steps.values()].flatMap((step) =>
    step.opcode === 'STOP' ? endBlocks(step.id, step.verdict, reasonOf(step)) : lowerStep(steps, step),
  );
  const isEnd = ({ steps: [only] }: Block): boolean => only?.executor === 'stop';
  return [...blocks, ...ends].filter((block) => !isEnd(block) || entered.has(block.name));
}

/** A STOP that does not say how it ends is two ends: the route that leads there decides. */
function endBlocks(id: string, verdict: Verdict | null, reason: string | null): readonly Block[] {
  return verdict === null
    ? [endBlock(id, id, 'success', reason), endBlock(id + UNWANTED, id, 'failure', reason)]
    : [endBlock(id, id, verdict, reason)];
}

function endBlock(name: string, id: string, verdict: Verdict, reason: string | null): Block {
  const done: Transition = { kind: 'stop', verdict: verdict === 'success' ? 'done' : 'failed', reason };
  return block(name, step(id, 'stop', { kind: 'halt', verdict, reason }, { done }));
}

function reasonOf({ effect }: StepSyntax): string | null {
  return effect?.kind === 'halt' ? effect.reason : null;
}

/** The block that a route leads to, be it after another workflow. One that returns has ended well. */
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

/** None where a part of the step is missing. */
function lowerStep(steps: Steps, syntax: StepSyntax): readonly Block[] {
  const { id, opcode, effect, timeoutMs } = syntax;
  if (effect === null) return [];
  const routes = syntax.routes.flatMap((route) => {
    const follow = lowerRoute(steps, route);
    return answersFor(syntax, route).map((answer) => [answer, follow] as const);
  });
  const lacking = unroutedEnds(syntax).flatMap(({ key, answer }) => {
    const reason = `${named(syntax)} has no route for "${key}"`;
    return [[answer, { kind: 'stop', verdict: 'failed', reason }] as const];
  });
  const lowered = step(id, opcode.toLowerCase(), effect, Object.fromEntries([...lacking, ...routes]));
  return [
    block(id, {
      ...lowered,
      timeout: timeoutMs === null ? null : `${String(timeoutMs)}ms`,
      repromptsMax: effect.kind === 'evaluate' ? REPROMPTS : 0,
    }),
  ];
}

function step(id: string, executor: string, effect: EffectSpec<Text>, routes: Step['routes']): Step {
  return {
    id,
    executor,
    needs: [],
    act: { kind: 'effect', effect },
    routes,
    unrouted: 'tell',
    onError: { kind: 'fail' },
    retry: NO_RETRY,
    repromptsMax: 0,
    timeout: null,
    agent: null,
  };
}

function block(name: string, only: Step): Block {
  return { name, parameters: [], steps: [only], naming: 'visit-last', visits: null };
}
