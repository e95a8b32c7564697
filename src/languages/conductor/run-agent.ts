// RUN_AGENT: an agent's turn in the run's worktree under a policy.

import type { Witness } from '../../ir/conducted.ts';
import { textAt } from '../yaml-fields.ts';
import { neededText } from './fields.ts';
import { readInputs } from './inputs.ts';
import { overLimits, readLimits, turnLimits } from './limits.ts';
import type { Reading } from './reading.ts';
import { adapterFor, modelFor } from './reading.ts';
import type { Outline, Particulars } from './syntax.ts';
import { named, UNSAID } from './syntax.ts';

export function readRunAgent(reading: Reading, step: Outline, witness: Witness | null): Particulars {
  const { report, defaults } = reading;
  const { map, id, place } = step;
  const what = named(step);
  const agent = neededText(report, map, 'agent', { place, what, hint: 'Name an adapter: agent: sim.' });
  const prompt = neededText(report, map, 'prompt', { place, what, hint: 'For example prompt: task.implement.v1.' });
  const adapter = adapterFor(reading, agent, step);
  const model = modelFor(reading, textAt(report, map, 'model'), adapter);
  const inputs = readInputs(report, map, reading.steps);
  const file = prompt === null ? null : reading.prompts.named('prompt', prompt, 'task');
  const limits = overLimits(readLimits(report, map, what, true), defaults.limits);
  const policy = reading.policies.of(map, defaults.policy);
  if (prompt === null || file === null) return { ...UNSAID, spec: null, inputs };
  const names = inputs.map(({ text }) => text);
  return {
    ...UNSAID,
    timeoutMs: limits.timeoutMs,
    inputs,
    spec: {
      kind: 'run_agent',
      agent: {
        adapter,
        model,
        prompt: reading.prompts.text(prompt, file, id, names),
        inputs: names,
        limits: turnLimits(limits),
        hints: { componentKind: defaults.componentKind, evalProfile: defaults.evalProfile },
      },
      policy,
      witness,
    },
  };
}
