// Steps as syntax → blocks: one for each step, one for each possible end, and those that perform opcodes, one step after
// the other:
//
//   RUN_AGENT       snapshot → prompt → turn → inspect → policy, and with a witness → witness → record
//   RUN_VALIDATION  a step for each validator, by its name (prepare → run → collect) → _report, and with a witness →
//                   _inspect → _witness → _record
//   EVALUATE        snapshot → gather → ask → inspect → check
//
// A turn, a validator or a witness may fail, since a later step judges it. Any other failure ends the block and is its
// outcome. An EVALUATE with an invalid answer is performed again, and its turn is told why.

import type { AgentRequest, EndInspection, GitOperation, Inspection, Validator, Witness } from '../../ir/conductor.ts';
import { type CommandSpec, commandSpec, type EffectSpec } from '../../ir/effect.ts';
import { type Act, type Block, type Step, stepOf } from '../../ir/program.ts';
import { shellWord } from '../../ir/quote.ts';
import type { Reference, Text } from '../../ir/text.ts';
import { targetOf, type Transition } from '../../ir/transition.ts';
import type { Steps } from './graph.ts';
import { answersFor, isGood, unroutedEnds } from './routes.ts';
import {
  type Evaluate,
  named,
  type OpcodeSpec,
  type Route,
  type RunAgent,
  type RunValidation,
  stepAfter,
  type StepSyntax,
  STOP,
} from './syntax.ts';

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
    ...timedStep(id, spec.kind, act, body.length === 0 ? timeoutMs : null),
    routes,
    unrouted: 'tell',
    repromptsMax: spec.kind === 'evaluate' ? REPROMPTS : 0,
  };
  return [{ name, parameters: [], steps: [step], naming: 'visit-last', visits: null }, ...body];
}

/** The act of a step, and the blocks that perform it if it takes several acts. */
function lowerOpcode(id: string, spec: OpcodeSpec, timeoutMs: number | null): readonly [Act, ...Block[]] {
  const name = `${id}/body`;
  const inBlock: Act = { kind: 'block', target: targetOf(name) };
  switch (spec.kind) {
    case 'run_agent':
      return [inBlock, chain(name, runAgentSteps(spec, timeoutMs))];
    case 'run_validation':
      return [inBlock, ...validationBlocks(name, spec)];
    case 'evaluate':
      return [inBlock, chain(name, evaluateSteps(spec, timeoutMs))];
    case 'gate':
      return [effect(spec.effect)];
    case 'rollback':
      return [effect({ kind: 'git', operation: spec })];
    case 'stop':
      return [effect({ kind: 'inspect', inspection: { ...spec, kind: 'end' } })];
  }
}

function runAgentSteps({ agent, policy, witness }: RunAgent, timeoutMs: number | null): readonly Step[] {
  const folder = output('snapshot', 'folder');
  return [
    gitStep('snapshot', { kind: 'snapshot', writes: policy.effective.access !== 'read_only' }),
    inspectStep('prompt', { kind: 'prompt', agent, policy: policy.effective }),
    judged(timedStep('turn', 'turn', turn(agent, output('prompt', 'prompt'), folder), timeoutMs)),
    gitStep('inspect', { kind: 'changes', by: 'agent', ends: 'turn' }),
    inspectStep('policy', { kind: 'policy', agent, policy }),
    ...(witness === null ? [] : witnessSteps(witness, 'policy', '', folder)),
  ];
}

function validationBlocks(name: string, spec: RunValidation): readonly Block[] {
  const { validators, witness } = spec;
  const blockOf = (validator: Validator): string => `${name}/${validator.id}`;
  const steps = validators.map((validator) =>
    judged(stepOf(validator.id, 'validator', { kind: 'block', target: targetOf(blockOf(validator)) })),
  );
  const report = inspectStep(`${MARK}report`, { kind: 'report', validators: validators.map(({ id }) => id) });
  // Proposed goldens count even if the changes of the run cannot be seen.
  const inspect = judged(gitStep(`${MARK}inspect`, { kind: 'changes', by: 'run', ends: null }));
  const proof =
    witness === null ? [] : [inspect, ...witnessSteps(witness, report.id, MARK, output(inspect.id, 'folder'))];
  return [
    chain(name, [...steps, report, ...proof]),
    ...validators.map((validator) => chain(blockOf(validator), validatorSteps(validator, spec))),
  ];
}

/** Validators' names never start with it. */
const MARK = '_';

function validatorSteps(validator: Validator, { idleMs, envAllow }: RunValidation): readonly Step[] {
  const script = {
    env: { HOME: output('prepare', 'home'), TMPDIR: output('prepare', 'tmpdir') },
    inherit: [...SCRIPT_VARIABLES, ...envAllow],
  };
  const run: CommandSpec<Text> = {
    ...command(output('prepare', 'script'), output('prepare', 'cwd'), idleMs),
    ...(validator.kind === 'script' ? script : {}),
  };
  return [
    inspectStep('prepare', { kind: 'prepare', validator }),
    judged(timedStep('run', 'shell', effect(run), validator.timeoutMs)),
    inspectStep('collect', { kind: 'collect', validator, idleMs }),
  ];
}

/** Variables of the user's environment that script validators see, in addition to the configured ones. */
const SCRIPT_VARIABLES = ['PATH', 'LANG', 'MEOW_RUN_DIR'];

function evaluateSteps(spec: Evaluate, timeoutMs: number | null): readonly Step[] {
  const { evaluator, allowedNext, partialMax, hints } = spec;
  const agent = evaluator.kind === 'agent' ? evaluator.agent : null;
  return [
    gitStep('snapshot', { kind: 'snapshot', writes: false }),
    inspectStep('gather', { kind: 'evidence', agent, allowedNext, hints }),
    judged(timedStep('ask', agent === null ? 'shell' : 'turn', evaluation(evaluator), timeoutMs)),
    gitStep('inspect', { kind: 'changes', by: 'evaluator', ends: 'ask' }),
    inspectStep('check', { kind: 'decision', agent, allowedNext, partialMax }),
  ];
}

function evaluation(evaluator: Evaluate['evaluator']): Act {
  const folder = output('snapshot', 'folder');
  if (evaluator.kind === 'agent') return turn(evaluator.agent, output('gather', 'prompt'), folder);
  const file = reference('gather', 'file');
  const parts = [`sh -c ${shellWord(evaluator.command)} < `, { ...file, quote: [{ kind: 'bare' }] }] as const;
  return effect({
    ...command({ parts }, folder, evaluator.idleMs),
    env: { MEOW_EVIDENCE: { parts: [file] } },
    captures: [{ name: 'result', from: { kind: 'stdout' }, type: 'string', required: true }],
  });
}

/** The witness command of the step `of`, and its judgement. `mark`: prefix of their names and of `inspect`. */
function witnessSteps(witness: Witness, of: string, mark: string, folder: Text): readonly Step[] {
  const [run, record, inspect] = [`${mark}witness`, `${mark}record`, `${mark}inspect`];
  return [
    judged(timedStep(run, 'shell', effect(command(witness.command, folder)), witness.timeoutMs)),
    inspectStep(record, { kind: 'witness', witness, of, run, inspect }),
  ];
}

/** Each step needs the one before. */
function chain(name: string, steps: readonly Step[]): Block {
  const chained = steps.map((step, index) => ({
    ...step,
    needs: steps.slice(Math.max(0, index - 1), index).map((one) => one.id),
  }));
  return { name, parameters: [], steps: chained, naming: 'path', visits: null };
}

function gitStep(id: string, operation: GitOperation): Step {
  return stepOf(id, 'git', effect({ kind: 'git', operation }));
}

function inspectStep(id: string, inspection: Inspection): Step {
  return stepOf(id, 'inspect', effect({ kind: 'inspect', inspection }));
}

/** A later step judges it, even if it fails. */
function judged(step: Step): Step {
  return { ...step, onError: { kind: 'continue' } };
}

function timedStep(id: string, executor: string, act: Act, timeoutMs: number | null): Step {
  return stepOf(id, executor, act, { timeout: timeoutMs === null ? null : `${String(timeoutMs)}ms` });
}

function effect(spec: EffectSpec<Text>): Act {
  return { kind: 'effect', effect: spec };
}

function turn({ adapter, model, limits }: AgentRequest, prompt: Text, cwd: Text): Act {
  return effect({ kind: 'turn', adapter, model, prompt, cwd, effort: null, idleMs: limits.idleMs, steering: null });
}

function command(script: Text, cwd: Text, idleMs: number | null = null): CommandSpec<Text> {
  return commandSpec(script, cwd, idleMs === null ? {} : { idleMs });
}

function output(step: string, name: string): Text {
  return { parts: [reference(step, name)] };
}

function reference(step: string, name: string): Reference {
  return { path: [step, 'outputs', name], quote: [] };
}
