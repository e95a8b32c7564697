// `inputs: [diff, evaluate.blockers]`: built-in names, and outputs of earlier steps.

import { listed, type Report, suggest } from '../report.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import { textsAt } from './fields.ts';
import { named, type Opcode, type Outline } from './syntax.ts';

const WORDS: readonly string[] = [
  'diff',
  'component_kind',
  'eval_profile',
  'harness_report',
  'fix_instructions',
  'transcript',
  'validation',
];

/** Outputs of each opcode. */
const OUTPUTS: Readonly<Record<Opcode, readonly string[]>> = {
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
export function readInputs(report: Report, map: YamlMap, steps: ReadonlyMap<string, Outline>): readonly YamlScalar[] {
  const inputs = textsAt(report, map, 'inputs', 'inputs: [diff, evaluate.blockers]') ?? [];
  return inputs.filter((input) => isInput(report, input, steps));
}

function isInput(report: Report, { text, place }: YamlScalar, steps: ReadonlyMap<string, Outline>): boolean {
  if (WORDS.includes(text)) return true;
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
  const otherwise = `Inputs are ${listed(WORDS)}, and STEP.OUTPUT for an output of an earlier step.`;
  report.error('unknown-input', place, `there is no input "${text}"`, () => suggest(text, WORDS, otherwise));
  return false;
}

/** `evaluate.blockers` is a step and its output, or a part of it; a built-in name stands alone. */
export function splitInput(input: string): readonly string[] {
  const dot = input.indexOf('.');
  return dot === -1 ? [input] : [input.slice(0, dot), input.slice(dot + 1)];
}
