// `spawn`: starts an agent for later steps to prompt.

import { OPEN_CHANNELS } from '../../../ir/adapter.ts';
import type { Text } from '../../../ir/text.ts';
import type { Report } from '../../report.ts';
import { booleanAt, stringAt, wordAt } from '../../toml-fields.ts';
import type { TomlTable } from '../../toml-tree.ts';
import { lowerAgent } from '../agent-name.ts';
import type { Scope } from '../scope.ts';
import type { OutputType } from '../syntax.ts';
import { lowerEnvironment, lowerText } from '../text.ts';
import type { Executor } from './executor.ts';
import { NO_TARGETS } from './executor.ts';

/** Outputs of a started agent. */
const OUTPUTS: ReadonlyMap<string, OutputType> = new Map(
  ['session_id', 'terminal', 'workdir', 'agent', 'adapter'].map((name) => [name, 'string']),
);

export const spawn: Executor = {
  name: 'spawn',
  keys: ['agent', 'adapter', 'workdir', 'env', 'channel', 'resume_session', 'fork_session', 'spawn_args'],
  canGrow: false,
  timeout: 'step',
  outputs: () => OUTPUTS,
  targets: NO_TARGETS,
  lower: (scope, { table }) => {
    const agent = lowerAgent(scope, table, 'Give the agent a name: agent = "worker".');
    const text = (key: string): Text | null => {
      const value = stringAt(scope.report, table, key);
      return value === null ? null : lowerText(scope, value);
    };
    const rest = {
      adapter: lowerAdapter(scope, table),
      cwd: text('workdir'),
      env: lowerEnvironment(scope, table),
      channel: wordAt(scope.report, table, 'channel', OPEN_CHANNELS),
      resumeSession: text('resume_session'),
      forks: readForks(scope.report, table),
      args: text('spawn_args'),
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
  const refusal = typeof adapter === 'string' ? scope.adapter.refusal(adapter) : null;
  if (refusal !== null) {
    report.warning('adapter-unavailable', own?.place ?? step.place, refusal.message, refusal.hint);
  }
  return adapter;
}

function readForks(report: Report, step: TomlTable): boolean {
  const forks = booleanAt(report, step, 'fork_session') ?? false;
  const entry = step.entries.get('fork_session');
  if (forks && entry !== undefined && !step.entries.has('resume_session')) {
    const hint = 'Say which session it is a copy of: resume_session = "{{start.outputs.session_id}}".';
    report.error('missing-key', entry.keyPlace, '"fork_session" has no session to fork', hint);
  }
  return forks;
}

/** The step's own adapter; else the workflow's, as a property or variable; else the default. */
function chooseAdapter({ adapter, onUse }: Scope, named: Text | null): Text {
  if (adapter.forced !== null) return adapter.forced;
  if (named !== null) return named;
  if (!adapter.hasVariable) return adapter.fallback();
  onUse('default_adapter');
  return { parts: [{ path: ['default_adapter'], quote: [] }] };
}
