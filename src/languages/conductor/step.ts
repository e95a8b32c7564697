// A step of a workflow, of any opcode.

import { AGENT_PREFIX, isAgent, isApprover } from '../../ir/approvers.ts';
import type { AgentRequest, Witness } from '../../ir/conductor.ts';
import { namesOf } from '../keys.ts';
import { listed, missing, oneOf, type Report, suggest } from '../report.ts';
import { booleanAt, countAt, durationAt, mapAt, textAt } from '../yaml-fields.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import { neededText, strictKeys, textsAt, wordAt } from './fields.ts';
import { EVALUATOR, OPCODE_TABLES, ROLLBACK_TARGETS, STEP_KEYS, VERDICTS } from './keys.ts';
import { type LimitsSyntax, overLimits, readLimits, turnLimits } from './limits.ts';
import { policyFor } from './policies.ts';
import { checkRoutes, readRoutes, readWitness } from './routes.ts';
import { readRunValidation } from './run-validation.ts';
import {
  type Evaluate,
  GATE_TYPES,
  named,
  type Opcode,
  OPCODES,
  type Outline,
  type Particulars,
  type Reading,
  type Route,
  type StepSyntax,
  waits,
} from './syntax.ts';

function keysOf(opcode: Opcode): readonly string[] {
  return namesOf(OPCODE_TABLES[opcode].keys);
}

/** Keys of a step with this opcode; if it is unknown, of all. */
function stepKeys(opcode: Opcode | null): readonly string[] {
  return [...namesOf(STEP_KEYS), ...new Set(opcode === null ? OPCODES.flatMap(keysOf) : keysOf(opcode))];
}

/** `workflow`: its id. */
export function readStep(reading: Reading, step: Outline, workflow: string): StepSyntax {
  const { report } = reading;
  const { map, opcode } = step;
  const elsewhere = (key: string): string | null => {
    const others = OPCODES.filter((other) => keysOf(other).includes(key));
    return others.length === 0 ? null : `Steps with it are ${others.join(', ')}.`;
  };
  strictKeys(report, map, stepKeys(opcode), named(step), elsewhere);
  const routes = readRoutes(reading, step);
  const absent = { timeoutMs: null, inputs: [], allowedNext: [], harness: null, gate: null, verdict: null };
  const read: StepSyntax = {
    ...step,
    ...absent,
    ...readParticulars(reading, step, witnessOf(report, step, routes), workflow),
    routes,
    allowUnreachable: booleanAt(report, map, 'allow_unreachable') ?? false,
  };
  checkRoutes(report, read);
  return read;
}

function readParticulars(reading: Reading, step: Outline, witness: Witness | null, workflow: string): Particulars {
  switch (step.opcode) {
    case 'RUN_AGENT':
      return readRunAgent(reading, step, witness);
    case 'RUN_VALIDATION':
      return readRunValidation(reading, step, witness);
    case 'EVALUATE':
      return readEvaluate(reading, step);
    case 'GATE':
      return readGate(reading, step, workflow);
    case 'ROLLBACK':
      return readRollback(reading.report, step);
    case 'STOP':
      return readStop(reading.report, step);
  }
}

/** Only `completed` of a step can require a witness. */
function witnessOf(report: Report, step: Outline, routes: readonly Route[]): Witness | null {
  const own = keysOf(step.opcode).includes('witness') ? readWitness(report, step.map, named(step)) : null;
  const onRoutes = routes.filter(({ witness }) => witness !== null);
  const entry = step.map.entries.get('witness');
  if (own !== null && entry !== undefined && onRoutes.length > 0) {
    const message = `${named(step)} and one of its routes both demand a witness`;
    report.error('duplicate-witness', entry.keyPlace, message, 'Remove one of the two.');
  }
  return own ?? onRoutes.find(({ key }) => key === 'completed')?.witness ?? null;
}

/** RUN_AGENT: an agent's turn in the run's worktree under a policy. */
function readRunAgent(reading: Reading, step: Outline, witness: Witness | null): Particulars {
  const { report, defaults, steps } = reading;
  const { map, place } = step;
  const what = named(step);
  if (!map.entries.has('agent')) missing(report, place, what, 'agent', 'Name an adapter: agent: sim.');
  const inputs = readInputs(report, map, steps);
  const limits = overLimits(readLimits(report, map, what, true), defaults.limits);
  const agent = readAgent(reading, step, inputs, limits);
  const policy = policyFor(reading, map);
  const spec = agent === null ? null : ({ kind: 'run_agent', agent, policy, witness } as const);
  return { timeoutMs: limits.timeoutMs, inputs, spec };
}

type Inputs = StepSyntax['inputs'];

/** The agent of a RUN_AGENT or EVALUATE, and its prompt. Null after an error was reported. */
function readAgent(reading: Reading, step: Outline, inputs: Inputs, limits: LimitsSyntax): AgentRequest | null {
  const { report, adapters, prompts, defaults } = reading;
  const { map, place, id } = step;
  const role = step.opcode === 'RUN_AGENT' ? 'task' : 'planner';
  const hint = `For example prompt: ${role === 'task' ? 'task.implement.v1' : 'planner.evaluate_results.v1'}.`;
  const prompt = neededText(report, map, 'prompt', { place, what: named(step), hint });
  const name = textAt(report, map, 'agent');
  const adapter = adapters.forced ?? (name === null ? adapters.fallback : adapters.meant(name.text));
  const refusal = adapters.refusal(adapter);
  if (refusal !== null) report.error('adapter-unavailable', name?.place ?? place, refusal.message, refusal.hint);
  const model = textAt(report, map, 'model');
  if (model !== null && refusal === null && !adapters.canChoose(adapter, 'model')) {
    const message = `the adapter "${adapter}" has no way to choose a model`;
    const cure = 'Remove "model", or give the adapter model_args in its [headless].';
    report.error('cannot-choose', model.place, message, cure);
  }
  const file = prompt === null ? null : prompts.named('prompt', prompt, role);
  if (prompt === null || file === null) return null;
  const names = inputs.map(({ text }) => text);
  return {
    adapter,
    model: model?.text ?? null,
    prompt: prompts.text(prompt, file, id, names),
    inputs: names,
    limits: turnLimits(limits),
    hints: defaults.hints,
  };
}

// EVALUATE: an agent or a command judges the run and chooses a route.

const PARTIAL_MAX = 3;

function readEvaluate(reading: Reading, step: Outline): Particulars {
  const { report, defaults, steps } = reading;
  const { map } = step;
  const what = named(step);
  const byCommand = map.entries.has('evaluator');
  const limits = overLimits(readLimits(report, map, what, !byCommand), defaults.limits);
  const inputs = readInputs(report, map, steps);
  const agent = byCommand ? null : readAgent(reading, step, inputs, limits);
  const byAgent = agent === null ? null : ({ kind: 'agent', agent } as const);
  const evaluator = byCommand ? commandEvaluator(report, step, limits) : byAgent;
  const allowedNext = textsAt(report, map, 'allowed_next_steps', 'allowed_next_steps: [fix, ask, STOP]') ?? [];
  if (!map.entries.has('allowed_next_steps')) {
    missing(report, step.place, what, 'allowed_next_steps', 'For example allowed_next_steps: [fix, ask, STOP].');
  }
  const partialMax = countAt(report, map, 'max_partial', 1) ?? PARTIAL_MAX;
  const next = allowedNext.map(({ text }) => text);
  const spec: Evaluate | null =
    evaluator === null ? null : { kind: 'evaluate', evaluator, allowedNext: next, partialMax, hints: defaults.hints };
  return { spec, timeoutMs: limits.timeoutMs, allowedNext, inputs };
}

/** It gets all evidence, whether or not a prompt asks for it. */
function commandEvaluator(report: Report, { map }: Outline, limits: LimitsSyntax): Evaluate['evaluator'] | null {
  for (const key of ['agent', 'model', 'inputs']) {
    const entry = map.entries.get(key);
    if (entry === undefined) continue;
    const message = `"${key}" has no effect on a command, which gets all the evidence`;
    report.warning('unused-key', entry.keyPlace, message, 'Remove it, or remove "evaluator".');
  }
  const hint = 'For example evaluator: { command: scripts/judge.sh }.';
  const evaluator = mapAt(report, map, 'evaluator', hint);
  if (evaluator === null) return null;
  strictKeys(report, evaluator, namesOf(EVALUATOR.keys), '"evaluator"');
  const command = neededText(report, evaluator, 'command', { place: evaluator.place, what: '"evaluator"', hint });
  return command === null ? null : { kind: 'command', command: command.text, idleMs: limits.idleMs || null };
}

// GATE, ROLLBACK and STOP: decisions of people, restoring, and the end.

/** `workflow`: its id, for a gate without a reason. */
function readGate({ report, steps }: Reading, step: Outline, workflow: string): Particulars {
  const { map, id, place } = step;
  const hint = 'Write gate: requires_approval.';
  const written = neededText(report, map, 'gate', { place, what: named(step), hint });
  const gate = written === null ? null : oneOf(report, 'gate', written, GATE_TYPES);
  const reason = textAt(report, map, 'reason');
  const timeoutMs = durationAt(report, map, 'timeout') || null;
  const timeout = map.entries.get('timeout');
  if (gate !== null && !waits(gate) && timeout !== undefined) {
    const message = `a gate of type ${gate} does not wait, and has no time to run out`;
    report.warning('unused-key', timeout.keyPlace, message, 'Remove it, or use the type requires_approval.');
  }
  const approvers = readApprovers(report, step, steps);
  if (gate === null) return { spec: null };
  const prompt = reason?.text.trim() ?? `${workflow} asks for a decision: ${id}`;
  const effect = { kind: 'gate', gate: id, prompt, blocks: waits(gate), approvers } as const;
  return { gate, timeoutMs: waits(gate) ? timeoutMs : null, spec: { kind: 'gate', effect } };
}

/** `agent:NAME` names the step of an agent. */
function readApprovers(report: Report, { map }: Outline, steps: Reading['steps']): readonly string[] | null {
  const example = 'approvers: [ada, grace]';
  const approvers = textsAt(report, map, 'approvers', example);
  const value = map.entries.get('approvers')?.value;
  if (value?.kind === 'list' && value.items.length === 0) {
    const hint = `For example ${example}; leave it out, and anybody may.`;
    report.error('invalid-value', value.place, 'nobody may decide this gate', hint);
  }
  for (const { text, place } of approvers ?? []) {
    if (!isApprover(text)) report.error('invalid-value', place, 'an approver has no name', `For example ${example}.`);
    const agent = isAgent(text) ? text.slice(AGENT_PREFIX.length) : null;
    if (agent === null || hasAgent(steps.get(agent))) continue;
    const known = [...steps.values()].filter(hasAgent).map(({ id }) => id);
    const some = known.length === 0 ? 'This workflow has no agent.' : `Name a step with an agent: ${listed(known)}.`;
    const hint = (): string => suggest(agent, known, some);
    report.error('unknown-approver', place, `no step "${agent}" has an agent`, hint);
  }
  return approvers?.map(({ text }) => text) ?? null;
}

function hasAgent(step: Outline | undefined): boolean {
  return step?.opcode === 'RUN_AGENT' || (step?.opcode === 'EVALUATE' && !step.map.entries.has('evaluator'));
}

function readRollback(report: Report, step: Outline): Particulars {
  const hint = 'Write target: pre_run, or target: pre_step.';
  const written = neededText(report, step.map, 'target', { place: step.place, what: named(step), hint });
  if (written?.text.startsWith('checkpoint:') === true) {
    const message = `"target": named checkpoints are reserved for a later version`;
    report.error('reserved-target', written.place, message, 'Use pre_run or pre_step.');
    return { spec: null };
  }
  const target = written === null ? null : oneOf(report, 'target', written, ROLLBACK_TARGETS);
  return { spec: target === null ? null : { kind: 'rollback', target } };
}

function readStop(report: Report, { map }: Outline): Particulars {
  const reason = textAt(report, map, 'reason')?.text.trim() ?? null;
  const verdict = wordAt(report, map, 'verdict', VERDICTS);
  return { verdict, spec: { kind: 'stop', verdict: verdict ?? 'success', reason } };
}

// `inputs: [diff, evaluate.blockers]`: built-in names, and outputs of earlier steps.

export const INPUT_WORDS: readonly string[] = [
  'diff',
  'component_kind',
  'eval_profile',
  'harness_report',
  'fix_instructions',
  'transcript',
  'validation',
];

/** Inputs may name them, as STEP.OUTPUT. */
export const OUTPUTS: Readonly<Record<Opcode, readonly string[]>> = {
  RUN_AGENT: ['result', 'changes', 'violations', 'policy', 'run_files', 'head', 'tree', 'witness', 'artifacts'],
  RUN_VALIDATION: ['validators', 'harness_report', 'report_summary', 'proposed_goldens', 'witness', 'artifacts'],
  EVALUATE: [
    'status',
    'planner_status',
    'next_step',
    'fix_instructions',
    'blockers',
    'risk_flags',
    'escalations',
    'contradictions',
    'violations',
    'head',
    'artifacts',
  ],
  GATE: ['decided_by', 'notes', 'reason', 'answer'],
  ROLLBACK: [
    'target',
    'before_diff',
    'after_diff',
    'undone_ref',
    'restored_tree',
    'head',
    'moved_aside',
    'kept_in',
    'artifacts',
  ],
  STOP: [],
};

/** Those that can exist. `steps`: all steps of the workflow. */
function readInputs(report: Report, map: YamlMap, steps: ReadonlyMap<string, Outline>): readonly YamlScalar[] {
  const inputs = textsAt(report, map, 'inputs', 'inputs: [diff, evaluate.blockers]') ?? [];
  return inputs.filter((input) => isInput(report, input, steps));
}

function isInput(report: Report, { text, place }: YamlScalar, steps: ReadonlyMap<string, Outline>): boolean {
  if (INPUT_WORDS.includes(text)) return true;
  const [id = '', output = ''] = splitInput(text);
  const step = steps.get(id);
  if (output !== '' && step !== undefined) {
    const outputs = OUTPUTS[step.opcode];
    const [name = ''] = output.split('.');
    if (outputs.includes(name)) return true;
    const hint = (): string => suggest(name, outputs, `Its outputs: ${listed(outputs) || 'none'}.`);
    report.error('unknown-input', place, `${named(step)} has no output "${name}"`, hint);
    return false;
  }
  if (output !== '') {
    const hint = (): string => suggest(id, steps.keys(), `Steps: ${listed(steps.keys())}.`);
    report.error('unknown-input', place, `there is no step "${id}" with an output "${output}"`, hint);
    return false;
  }
  const otherwise = `Inputs are ${listed(INPUT_WORDS)}, and STEP.OUTPUT for an output of an earlier step.`;
  report.error('unknown-input', place, `there is no input "${text}"`, () => suggest(text, INPUT_WORDS, otherwise));
  return false;
}

/** `evaluate.blockers` is a step and its output, or a part of it; a built-in name stands alone. */
export function splitInput(input: string): readonly string[] {
  const dot = input.indexOf('.');
  return dot === -1 ? [input] : [input.slice(0, dot), input.slice(dot + 1)];
}
