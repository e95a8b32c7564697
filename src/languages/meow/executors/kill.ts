// `kill`: ends an agent. One that is not there has been ended.

import { booleanAt, durationAt } from '../../toml-fields.ts';
import { lowerAgent } from '../agent-name.ts';
import type { Executor } from './executor.ts';
import { NO_OUTPUTS, NO_TARGETS } from './executor.ts';

const GRACE_MS = 10_000;

export const kill: Executor = {
  name: 'kill',
  keys: ['agent', 'graceful'],
  canGrow: false,
  timeout: 'own',
  outputs: () => NO_OUTPUTS,
  targets: NO_TARGETS,
  lower: (scope, { table }) => {
    const { report } = scope;
    const agent = lowerAgent(scope, table, 'Say whom to end: agent = "worker".');
    const graceful = booleanAt(report, table, 'graceful') ?? true;
    const graceMs = durationAt(report, table, 'timeout') ?? GRACE_MS;
    if (agent === null) return null;
    return { act: { kind: 'effect', effect: { kind: 'kill', agent, graceful, graceMs } } };
  },
};
