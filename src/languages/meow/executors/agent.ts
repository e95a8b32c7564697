// `agent`: a task for a running agent. The step is done when the agent reports, or with `fire_forget` on delivery.
// `spawn`: starts an agent for such steps.

import { OPEN_CHANNELS } from '../../../ir/adapter.ts';
import type { PromptSpec } from '../../../ir/effect.ts';
import type { Text } from '../../../ir/text.ts';
import { namesOf } from '../../keys.ts';
import type { Report } from '../../report.ts';
import { booleanAt, choiceAt, neededStringAt, stringAt, wordAt } from '../../toml-fields.ts';
import type { TomlTable } from '../../toml-tree.ts';
import { EXECUTOR_TABLES, MODES } from '../keys.ts';
import { expectedOutputs, lowerExpectations } from '../outputs.ts';
import type { Scope } from '../scope.ts';
import type { OutputType } from '../syntax.ts';
import { lowerEnvironment, lowerText, lowerTextAt } from '../text.ts';
import type { Executor } from './executor.ts';

export const agent: Executor = {
  keys: namesOf(EXECUTOR_TABLES.agent.keys),
  timeout: 'step',
  // Includes the answer of an agent without a terminal.
  outputs: (step) => new Map([['result', 'string'], ...expectedOutputs(step)]),
  lower: (scope, { table }) => {
    const { report } = scope;
    const name = lowerAgent(scope, table, 'Say who shall do it: agent = "worker", the name that it was spawned with.');
    const mode = readMode(report, table);
    const expects = lowerExpectations(report, table);
    if (mode === 'fire-forget') refuseWaiting(report, table);
    const prompt = neededStringAt(report, table, 'prompt', 'Say what is to be done: prompt = "Write the tests."');
    if (prompt === null) return null;
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
  const mode = choiceAt(report, step, 'mode', MODES, 'Write "autonomous", "interactive" or "fire_forget".');
  return mode === 'fire_forget' ? 'fire-forget' : (mode ?? 'autonomous');
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

const OUTPUTS: ReadonlyMap<string, OutputType> = new Map(
  ['session_id', 'terminal', 'workdir', 'agent', 'adapter'].map((name) => [name, 'string']),
);

export const spawn: Executor = {
  keys: namesOf(EXECUTOR_TABLES.spawn.keys),
  timeout: 'step',
  outputs: () => OUTPUTS,
  lower: (scope, { table }) => {
    const agent = lowerAgent(scope, table, 'Give the agent a name: agent = "worker".');
    const rest = {
      adapter: lowerAdapter(scope, table),
      cwd: lowerTextAt(scope, table, 'workdir'),
      env: lowerEnvironment(scope, table),
      channel: wordAt(scope.report, table, 'channel', OPEN_CHANNELS),
      resumeSession: lowerTextAt(scope, table, 'resume_session'),
      forks: readForks(scope.report, table),
      args: lowerTextAt(scope, table, 'spawn_args'),
    };
    return agent === null ? null : { act: { kind: 'effect', effect: { kind: 'spawn', agent, ...rest } } };
  },
};

function lowerAdapter(scope: Scope, step: TomlTable): Text {
  const { report, workflow } = scope;
  const own = stringAt(report, step, 'adapter');
  const named = own ?? workflow.defaultAdapter;
  if (named?.value.trim() === '') {
    report.error('invalid-value', named.place, 'the name of the adapter is empty', 'For example adapter = "sim".');
  }
  const adapter = chooseAdapter(scope, named === null ? null : lowerText(scope, named));
  const refusal = typeof adapter === 'string' ? scope.adapters.refusal?.(adapter) : null;
  if (refusal !== null && refusal !== undefined) {
    report.warning('adapter-unavailable', own?.place ?? step.place, refusal.message, refusal.hint);
  }
  return adapter;
}

function readForks(report: Report, step: TomlTable): boolean {
  const forks = booleanAt(report, step, 'fork_session') ?? false;
  if (forks && !step.entries.has('resume_session')) {
    const place = step.entries.get('fork_session')?.keyPlace ?? step.place;
    const hint = 'Say which session it is a copy of: resume_session = "{{start.outputs.session_id}}".';
    report.error('missing-key', place, '"fork_session" has no session to fork', hint);
  }
  return forks;
}

/** The step's own adapter; else the workflow's, as a property or variable; else the default. */
function chooseAdapter({ adapters, runAdapter, hasAdapterVariable, onUse }: Scope, named: Text | null): Text {
  if (adapters.forced !== null) return adapters.forced;
  if (named !== null) return named;
  if (!hasAdapterVariable) return runAdapter ?? adapters.fallback();
  onUse('default_adapter');
  return { parts: [{ path: ['default_adapter'], quote: [] }] };
}

/** Null if none is named; that is reported. */
export function lowerAgent(scope: Scope, step: TomlTable, hint: string): Text | null {
  const agent = neededStringAt(scope.report, step, 'agent', hint);
  if (agent === null) return null;
  if (agent.value.trim() !== '') return lowerText(scope, agent);
  return scope.report.error('invalid-value', agent.place, 'the name of the agent is empty', hint);
}
