// The inspection driver: what the engine reads, writes for people, and judges from recorded outcomes.

import type { Driver } from '../../engine/ports.ts';
import { type Outcome, success } from '../../ir/effect.ts';
import { failed } from '../outputs.ts';
import { type ConductorContext, earlierVisits, type Task } from './context.ts';
import { listed, pendingGoldens } from './escalation.ts';
import { decide, gatherEvidence } from './evaluation.ts';
import { taskDriver } from './git-driver.ts';
import { fillAgentPrompt, judgeTurn } from './run-agent.ts';
import { collectValidator, judgeValidators, prepareValidator } from './validators.ts';
import { judgeWitness } from './witness.ts';

export function inspectDriver(context: ConductorContext): Driver {
  return taskDriver(context, 'inspect', async (task, { inspection: wanted }) => {
    switch (wanted.kind) {
      case 'prompt':
        return fillAgentPrompt(task, wanted);
      case 'policy':
        return judgeTurn(task, wanted);
      case 'witness':
        return judgeWitness(task, wanted);
      case 'evidence':
        return gatherEvidence(task, wanted);
      case 'decision':
        return decide(task, wanted);
      case 'prepare':
        return prepareValidator(task, wanted.validator);
      case 'collect':
        return collectValidator(task, wanted.validator, wanted.idleMs);
      case 'report':
        return judgeValidators(task, wanted.validators);
      case 'end':
        return mayEnd(task, wanted.verdict);
    }
  });
}

/** Proposed golden snapshots without an approval prevent success, on any path. */
function mayEnd(task: Task, verdict: 'success' | 'failure'): Outcome {
  const goldens = verdict === 'success' ? pendingGoldens(earlierVisits(task)) : [];
  if (goldens.length === 0) return success();
  const message =
    `golden snapshots were proposed and nobody approved them: ${listed(goldens)}. ` +
    'A gate that blocks must be approved after the validation that proposes them';
  return failed('refused', message);
}
