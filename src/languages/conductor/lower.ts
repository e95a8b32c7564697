// Steps as syntax → blocks: one for each step and one for each possible end; bodies.ts makes the blocks that perform
// steps.

import { Bug } from '../../base/assert.ts';
import type { EndInspection } from '../../ir/conducted.ts';
import type { Transition } from '../../ir/transition.ts';
import { targetOf } from '../../ir/transition.ts';
import type { Act, Block, Step } from '../../ir/program.ts';
import { evaluateBody, inspects, plainStep, runAgentBody, runValidationBody } from './bodies.ts';
import type { Steps } from './graph.ts';
import { STOP } from './ids.ts';
import type { OpcodeSpec } from './opcodes.ts';
import { answersFor, isGood, unroutedEnds } from './routes.ts';
import type { Route, StepSyntax } from './syntax.ts';
import { named, stepAfter } from './syntax.ts';

/** How often an evaluator is told what is wrong with its answer. */
const REPROMPTS = 2;

/** Marks an end in failure; step ids never contain it. */
const UNWANTED = '!';

type Verdict = EndInspection['verdict'];

/** `entry`: the first step. Unreachable ends are omitted. */
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

/** A STOP without a verdict is two ends: the route decides. */
function endBlocks(id: string, verdict: Verdict | null, reason: string | null): readonly Block[] {
  return verdict === null
    ? [endBlock(id, id, 'success', reason), endBlock(id + UNWANTED, id, 'failure', reason)]
    : [endBlock(id, id, verdict, reason)];
}

function endBlock(name: string, id: string, verdict: Verdict, reason: string | null): Block {
  const done: Transition = { kind: 'stop', verdict: verdict === 'success' ? 'done' : 'failed', reason };
  return lowerVisit(id, { kind: 'stop', verdict, reason }, null, { done }, name)[0];
}

function reasonOf({ spec }: StepSyntax): string | null {
  return spec?.kind === 'stop' ? spec.reason : null;
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
    const follow = lowerRoute(steps, route);
    return answersFor(syntax, route).map((answer) => [answer, follow] as const);
  });
  const lacking = unroutedEnds(syntax).flatMap(({ key, answer }) => {
    const reason = `${named(syntax)} has no route for "${key}"`;
    return [[answer, { kind: 'stop', verdict: 'failed', reason }] as const];
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
): readonly [Block, ...(readonly Block[])] {
  const body = bodyOf(id, spec, timeoutMs);
  const [performing] = body;
  const step: Step = {
    ...plainStep(id, spec.kind, performing === undefined ? actOf(spec) : performedBy(performing)),
    routes,
    unrouted: 'tell',
    // For a step that a block performs, the limit applies to its turn or command.
    timeout: timeoutMs === null || performing !== undefined ? null : `${String(timeoutMs)}ms`,
    repromptsMax: spec.kind === 'evaluate' ? REPROMPTS : 0,
  };
  return [{ name, parameters: [], steps: [step], naming: 'visit-last', visits: null }, ...body];
}

/** Empty if a single effect performs it. */
function bodyOf(id: string, spec: OpcodeSpec, timeoutMs: number | null): readonly Block[] {
  switch (spec.kind) {
    case 'run_agent':
      return runAgentBody(id, spec, timeoutMs);
    case 'run_validation':
      return runValidationBody(id, spec);
    case 'evaluate':
      return evaluateBody(id, spec, timeoutMs);
    case 'gate':
    case 'rollback':
    case 'stop':
      return [];
  }
}

function performedBy({ name }: Block): Act {
  return { kind: 'block', target: targetOf(name) };
}

function actOf(spec: OpcodeSpec): Act {
  switch (spec.kind) {
    case 'gate':
      return { kind: 'effect', effect: spec.effect };
    case 'rollback':
      return { kind: 'effect', effect: { kind: 'git', operation: spec } };
    case 'stop':
      return inspects({ ...spec, kind: 'end' });
    default:
      throw new Bug(`a block performs ${spec.kind}`);
  }
}
