// An engine that dies while it delivers a prompt to an agent in a terminal: the next one finds the agent, and the agent
// gets the prompt once.

import { describe, expect, test } from 'vitest';
import { AgentRig } from './rig/agent-rig.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { onPrompts, report } from './rig/scripts.ts';
import { agentStep, killStep, spawnStep } from './rig/steps.ts';

describe.skipIf(!AGENTS_INSTALLED).each(['claude', 'codex'] as const)('%s gets its prompt once', (agent) => {
  test.each([
    ['before it starts the delivery', 'after:"delivery":"sending"'],
    // It is unknown whether the text was pasted: the probe tells, and the text is pasted.
    ['before it pastes the prompt', 'after:{"kind":"put"}'],
    ['when the prompt is in the input', 'before:{"kind":"submitted"}'],
    ['before it submits the prompt', 'after:{"kind":"submitted"}'],
    ['when the agent has just confirmed it', 'before:{"kind":"accepted"}'],
    ['before that is recorded', 'before:"delivery":"accepted"'],
    ['when the agent has just reported', 'after:"step-completing"'],
  ])('even if the engine dies %s', async (_when = '', moment = '') => {
    await using stage = await AgentRig.setup(onPrompts({ 'Count\nthem.': report('count=3') }));
    stage.workflow(
      spawnStep('start', agent),
      agentStep('count', agent, 'Count\nthem.', 'needs = ["start"]\noutputs = { count = { type = "number" } }'),
      killStep('stop', agent, 'needs = ["count"]'),
    );
    expect((await stage.runKilled(moment).ended).code).toBe(137);
    const { steps } = await stage.done(stage.resume());
    expect(steps['count']).toMatchObject({ status: 'done', attempt: 1, outputs: { count: 3 } });
    expect(stage.timesPrompted('them.')).toBe(1);
    expect(stage.decisions('agent-opened')).toHaveLength(1);
  });
});
