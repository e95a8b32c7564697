// The blocks that perform opcodes, one step after the other:
//
//   RUN_AGENT       snapshot → prompt → turn → inspect → policy, and with a witness → witness → record
//   RUN_VALIDATION  a step for each validator, by its name (prepare → run → collect) → _report, and with a witness →
//                   _inspect → _witness → _record
//   EVALUATE        snapshot → gather → ask → inspect → check
//
// A turn, a validator or a witness may fail, since a later step judges it. Any other failure ends the block and is its
// outcome. An EVALUATE with an invalid answer is performed again, and its turn is told why.

import type { GitOperation, Inspection, Validator, Witness } from '../../ir/conducted.ts';
import type { CommandSpec } from '../../ir/effect.ts';
import { targetOf } from '../../ir/transition.ts';
import type { Act, Block, Step } from '../../ir/program.ts';
import { NO_RETRY } from '../../ir/program.ts';
import { shellWord } from '../../ir/quote.ts';
import type { Reference, Text } from '../../ir/text.ts';
import type { Evaluate, RunAgent, RunValidation } from './opcodes.ts';

/** The first performs the step. */
type Body = readonly [Block, ...(readonly Block[])];

export function runAgentBody(id: string, { agent, policy, witness }: RunAgent, timeoutMs: number | null): Body {
  const { adapter, model, limits } = agent;
  const folder = output('snapshot', 'folder');
  const turn = { adapter, model, prompt: output('prompt', 'prompt'), cwd: folder, effort: null, idleMs: limits.idleMs };
  return [
    chain(bodyName(id), [
      gitStep('snapshot', { kind: 'snapshot', writes: policy.effective.access !== 'read_only' }),
      inspectStep('prompt', { kind: 'prompt', agent, policy: policy.effective }),
      judgedStep('turn', 'turn', { kind: 'effect', effect: { kind: 'turn', ...turn, steering: null } }, timeoutMs),
      gitStep('inspect', { kind: 'changes', by: 'agent', ends: 'turn' }),
      inspectStep('policy', { kind: 'policy', agent, policy }),
      ...(witness === null ? [] : witnessed(witness, { of: 'policy', inspect: 'inspect', mark: '' }, folder)),
    ]),
  ];
}

export function runValidationBody(id: string, spec: RunValidation): Body {
  const { validators, witness } = spec;
  const names = validators.map((validator) => validator.id);
  const blockOf = (validator: Validator): string => `${bodyName(id)}/${validator.id}`;
  const steps = validators.map((validator) =>
    judgedStep(validator.id, 'validator', { kind: 'block', target: targetOf(blockOf(validator)) }),
  );
  const report = inspectStep(`${MARK}report`, { kind: 'report', validators: names });
  // Proposed goldens count even if the changes of the run cannot be seen.
  const inspect = judged(gitStep(`${MARK}inspect`, { kind: 'changes', by: 'run', ends: null }));
  const proof = { of: `${MARK}report`, inspect: `${MARK}inspect`, mark: MARK };
  const folder = output(`${MARK}inspect`, 'folder');
  return [
    chain(bodyName(id), [
      ...steps,
      report,
      ...(witness === null ? [] : [inspect, ...witnessed(witness, proof, folder)]),
    ]),
    ...validators.map((validator) => validatorBlock(blockOf(validator), validator, spec)),
  ];
}

/** Validators' names never start with it. */
const MARK = '_';

function validatorBlock(name: string, validator: Validator, { idleMs, envAllow }: RunValidation): Block {
  const script = validator.kind === 'script' ? { inherit: [...SCRIPT_VARIABLES, ...envAllow] } : {};
  const run: CommandSpec<Text> = {
    ...command(output('prepare', 'script'), output('prepare', 'cwd')),
    env: validator.kind === 'script' ? { HOME: output('prepare', 'home'), TMPDIR: output('prepare', 'tmpdir') } : {},
    ...(idleMs === null ? {} : { idleMs }),
    ...script,
  };
  return chain(name, [
    inspectStep('prepare', { kind: 'prepare', validator }),
    judgedStep('run', 'shell', { kind: 'effect', effect: run }, validator.timeoutMs),
    inspectStep('collect', { kind: 'collect', validator, idleMs }),
  ]);
}

/** Variables of the user's environment that script validators see, in addition to the configured ones. */
const SCRIPT_VARIABLES = ['PATH', 'LANG', 'MEOW_RUN_DIR'];

export function evaluateBody(id: string, spec: Evaluate, timeoutMs: number | null): Body {
  const { evaluator, allowedNext, partialMax, hints } = spec;
  const agent = evaluator.kind === 'agent' ? evaluator.agent : null;
  return [
    chain(bodyName(id), [
      gitStep('snapshot', { kind: 'snapshot', writes: false }),
      inspectStep('gather', { kind: 'evidence', agent, allowedNext, hints }),
      judgedStep('ask', agent === null ? 'shell' : 'turn', asks(evaluator), timeoutMs),
      gitStep('inspect', { kind: 'changes', by: 'evaluator', ends: 'ask' }),
      inspectStep('check', { kind: 'decision', agent, allowedNext, partialMax }),
    ]),
  ];
}

function asks(evaluator: Evaluate['evaluator']): Act {
  const cwd = output('snapshot', 'folder');
  if (evaluator.kind === 'agent') {
    const { adapter, model, limits } = evaluator.agent;
    const words = { adapter, model, prompt: output('gather', 'prompt'), cwd, effort: null, idleMs: limits.idleMs };
    return { kind: 'effect', effect: { kind: 'turn', ...words, steering: null } };
  }
  const file = reference('gather', 'file');
  const script = {
    parts: [`sh -c ${shellWord(evaluator.command)} < `, { ...file, quote: [{ kind: 'bare' }] }],
  } as const;
  const effect: CommandSpec<Text> = {
    ...command(script, cwd),
    env: { MEOW_EVIDENCE: { parts: [file] } },
    captures: [{ name: 'result', from: { kind: 'stdout' }, type: 'string', required: true }],
    ...(evaluator.idleMs === null ? {} : { idleMs: evaluator.idleMs }),
  };
  return { kind: 'effect', effect };
}

/** The witness command of the step `of`, and its judgement. */
function witnessed(
  witness: Witness,
  { of, inspect, mark }: { readonly of: string; readonly inspect: string; readonly mark: string },
  folder: Text,
): readonly Step[] {
  const [run, record] = [`${mark}witness`, `${mark}record`];
  const effect = command(witness.command, folder);
  return [
    judgedStep(run, 'shell', { kind: 'effect', effect }, witness.timeoutMs),
    inspectStep(record, { kind: 'witness', witness, of, run, inspect }),
  ];
}

function bodyName(id: string): string {
  return `${id}/body`;
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
  return plainStep(id, 'git', { kind: 'effect', effect: { kind: 'git', operation } });
}

function inspectStep(id: string, inspection: Inspection): Step {
  return plainStep(id, 'inspect', inspects(inspection));
}

function judgedStep(id: string, executor: string, act: Act, timeoutMs: number | null = null): Step {
  return { ...judged(plainStep(id, executor, act)), timeout: timeoutMs === null ? null : `${String(timeoutMs)}ms` };
}

/** A later step judges it, even if it fails. */
function judged(step: Step): Step {
  return { ...step, onError: { kind: 'continue' } };
}

export function inspects(inspection: Inspection): Act {
  return { kind: 'effect', effect: { kind: 'inspect', inspection } };
}

export function plainStep(id: string, executor: string, act: Act): Step {
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
    timeout: null,
    agent: null,
  };
}

function command(script: Text, cwd: Text | null): CommandSpec<Text> {
  return { kind: 'command', script, cwd, env: {}, captures: [], verdict: 'success', errors: [], steering: null };
}

function output(step: string, name: string): Text {
  return { parts: [reference(step, name)] };
}

function reference(step: string, name: string): Reference {
  return { path: [step, 'outputs', name], quote: [] };
}
