// The blocks that perform opcodes, one step after the other:
//
//   RUN_AGENT       snapshot → prompt → turn → inspect → policy, and with a witness → witness → record
//   RUN_VALIDATION  a step for each validator, by its name (prepare → run → collect) → _report, and with a witness →
//                   _inspect → _witness → _record
//   EVALUATE        snapshot → gather → ask → inspect → check
//
// A turn, a validator or a witness may fail, since a later step judges it. Any other failure ends the block and is its
// outcome. An EVALUATE with an invalid answer is performed again, and its turn is told why.

import type { AgentRequest, GitOperation, Inspection, Validator, Witness } from '../../ir/conductor.ts';
import type { CommandSpec, EffectSpec } from '../../ir/effect.ts';
import { type Act, type Block, NO_RETRY, type Step } from '../../ir/program.ts';
import { shellWord } from '../../ir/quote.ts';
import type { Reference, Text } from '../../ir/text.ts';
import { targetOf } from '../../ir/transition.ts';
import type { Evaluate, OpcodeSpec, RunAgent, RunValidation } from './syntax.ts';

/** The act of a step, and the blocks that perform it if it takes several acts. */
export function lowerOpcode(id: string, spec: OpcodeSpec, timeoutMs: number | null): readonly [Act, ...Block[]] {
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
    judged(plainStep('turn', 'turn', turn(agent, output('prompt', 'prompt'), folder), timeoutMs)),
    gitStep('inspect', { kind: 'changes', by: 'agent', ends: 'turn' }),
    inspectStep('policy', { kind: 'policy', agent, policy }),
    ...(witness === null ? [] : witnessSteps(witness, 'policy', '', folder)),
  ];
}

function validationBlocks(name: string, spec: RunValidation): readonly Block[] {
  const { validators, witness } = spec;
  const blockOf = (validator: Validator): string => `${name}/${validator.id}`;
  const steps = validators.map((validator) =>
    judged(plainStep(validator.id, 'validator', { kind: 'block', target: targetOf(blockOf(validator)) })),
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
    judged(plainStep('run', 'shell', effect(run), validator.timeoutMs)),
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
    judged(plainStep('ask', agent === null ? 'shell' : 'turn', evaluation(evaluator), timeoutMs)),
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
    judged(plainStep(run, 'shell', effect(command(witness.command, folder)), witness.timeoutMs)),
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
  return plainStep(id, 'git', effect({ kind: 'git', operation }));
}

function inspectStep(id: string, inspection: Inspection): Step {
  return plainStep(id, 'inspect', effect({ kind: 'inspect', inspection }));
}

/** A later step judges it, even if it fails. */
function judged(step: Step): Step {
  return { ...step, onError: { kind: 'continue' } };
}

export function plainStep(id: string, executor: string, act: Act, timeoutMs: number | null = null): Step {
  return {
    id,
    executor,
    needs: [],
    act,
    routes: {},
    unrouted: 'done',
    onError: { kind: 'fail' },
    retry: NO_RETRY,
    repromptsMax: 0,
    timeout: timeoutMs === null ? null : `${String(timeoutMs)}ms`,
    agent: null,
  };
}

function effect(spec: EffectSpec<Text>): Act {
  return { kind: 'effect', effect: spec };
}

function turn({ adapter, model, limits }: AgentRequest, prompt: Text, cwd: Text): Act {
  return effect({ kind: 'turn', adapter, model, prompt, cwd, effort: null, idleMs: limits.idleMs, steering: null });
}

function command(script: Text, cwd: Text, idleMs: number | null = null): CommandSpec<Text> {
  const defaults = { env: {}, captures: [], verdict: 'success', errors: [], steering: null } as const;
  return { kind: 'command', script, cwd, ...defaults, ...(idleMs === null ? {} : { idleMs }) };
}

function output(step: string, name: string): Text {
  return { parts: [reference(step, name)] };
}

function reference(step: string, name: string): Reference {
  return { path: [step, 'outputs', name], quote: [] };
}
