// `agent`: a task for a running agent. The step is done when the agent reports, or with `fire_forget` on delivery.

import type { PromptSpec } from '../../../ir/effect.ts';
import type { Expectation } from '../../../ir/output.ts';
import type { Text } from '../../../ir/text.ts';
import type { Report } from '../../report.ts';
import { suggest } from '../../report.ts';
import { booleanAt, checkKeys, missing, stringAt, tableAt } from '../../toml-fields.ts';
import type { TomlEntry, TomlTable } from '../../toml-tree.ts';
import { describeToml } from '../../toml-tree.ts';
import { lowerAgent } from '../agent-name.ts';
import type { OutputType } from '../syntax.ts';
import { lowerText } from '../text.ts';
import { readExpectedType } from '../value-type.ts';
import type { Executor } from './executor.ts';
import { NO_TARGETS } from './executor.ts';

const MODES: Readonly<Record<string, PromptSpec<Text>['mode']>> = {
  autonomous: 'autonomous',
  interactive: 'interactive',
  fire_forget: 'fire-forget',
};

export const agent: Executor = {
  name: 'agent',
  keys: ['agent', 'prompt', 'outputs', 'mode'],
  canGrow: false,
  timeout: 'step',
  // Includes the answer of an agent without a terminal.
  outputs: (step) => new Map([['result', 'string'], ...expectedOutputs(step)]),
  targets: NO_TARGETS,
  lower: (scope, { table }) => {
    const { report } = scope;
    const name = lowerAgent(scope, table, 'Say who shall do it: agent = "worker", the name that it was spawned with.');
    const mode = readMode(report, table);
    const expects = lowerExpectations(report, table);
    if (mode === 'fire-forget') refuseWaiting(report, table);
    const prompt = stringAt(report, table, 'prompt');
    if (prompt === null) {
      if (!table.entries.has('prompt'))
        missing(report, table.place, 'this step', 'prompt', 'Say what is to be done: prompt = "Write the tests."');
      return null;
    }
    if (prompt.value.trim() === '') {
      report.error('empty-prompt', prompt.place, 'the prompt is empty', 'Say what the agent shall do.');
    }
    const text = lowerText(scope, prompt);
    if (name === null) return null;
    const act = { kind: 'effect', effect: { kind: 'prompt', agent: name, prompt: text, mode, expects } } as const;
    // A step that does not wait for the agent does not occupy it either.
    return mode === 'fire-forget' ? { act } : { act, agent: name };
  },
};

function readMode(report: Report, step: TomlTable): PromptSpec<Text>['mode'] {
  const mode = stringAt(report, step, 'mode');
  if (mode === null) return 'autonomous';
  const known = Object.hasOwn(MODES, mode.value) ? MODES[mode.value] : undefined;
  if (known !== undefined) return known;
  const hint = suggest(mode.value, Object.keys(MODES), 'Write "autonomous", "interactive" or "fire_forget".');
  report.error('invalid-value', mode.place, `there is no mode "${mode.value}"`, hint);
  return 'autonomous';
}

/** With `fire_forget`, nothing waits for the agent, so outputs and timeouts are impossible. */
function refuseWaiting(report: Report, step: TomlTable): void {
  const why = 'the step is done as soon as the agent has the prompt';
  for (const key of ['outputs', 'timeout']) {
    const entry = step.entries.get(key);
    if (entry === undefined) continue;
    const hint = 'Remove it, or let the step wait: mode = "autonomous".';
    report.error('fire-forget', entry.keyPlace, `"${key}" cannot be used with mode "fire_forget": ${why}`, hint);
  }
}

const OUTPUT_KEYS = ['required', 'type', 'description'] as const;
const OUTPUTS_EXAMPLE = 'For example: task_id = { required = true, type = "string" }.';
const OUTPUT_TYPES: readonly string[] = ['number', 'boolean', 'json', 'file_path'] satisfies Expectation['type'][];

/** Names and types as far as readable; errors are reported during lowering. */
function expectedOutputs(step: TomlTable): ReadonlyMap<string, OutputType> {
  const outputs = step.entries.get('outputs')?.value;
  if (outputs?.kind !== 'table') return new Map();
  return new Map(
    [...outputs.entries.values()].map(({ key, value }) => {
      const type = value.kind === 'table' ? value.entries.get('type')?.value : undefined;
      const known = type?.kind === 'string' && OUTPUT_TYPES.includes(type.value);
      return [key, known ? (type.value as OutputType) : 'string'];
    }),
  );
}

function lowerExpectations(report: Report, step: TomlTable): readonly Expectation[] {
  const table = tableAt(report, step, 'outputs', OUTPUTS_EXAMPLE);
  return [...(table?.entries.values() ?? [])].flatMap((entry) => lowerExpectation(report, entry));
}

function lowerExpectation(report: Report, { key, keyPlace, value }: TomlEntry): Expectation | [] {
  if (!/^[A-Za-z0-9_-]+$/.test(key)) {
    const hint = 'Names of outputs are made of letters, digits, - and _.';
    report.error('invalid-name', keyPlace, `"${key}" is not a valid name for an output`, hint);
  }
  if (value.kind !== 'table') {
    report.error(
      'wrong-type',
      value.place,
      `the output "${key}" must be a table, got ${describeToml(value)}`,
      OUTPUTS_EXAMPLE,
    );
    return [];
  }
  checkKeys(report, value, OUTPUT_KEYS, `the output "${key}"`, 'error');
  return {
    name: key,
    type: readExpectedType(report, stringAt(report, value, 'type')),
    required: booleanAt(report, value, 'required') ?? false,
    description: stringAt(report, value, 'description')?.value ?? null,
  };
}
