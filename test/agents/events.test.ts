// Events from an agent's own hooks.

import { describe, expect, test } from 'vitest';
import { AgentRig } from './rig/agent-rig.ts';
import { shellCall } from './rig/model-talk.ts';
import { AGENTS_INSTALLED } from './rig/real-agents.ts';
import { agentStep, killStep, spawnStep, step, toolEventsStep } from './rig/steps.ts';

describe.skipIf(!AGENTS_INSTALLED)('hooks of Claude Code', () => {
  test('a branch continues as soon as the agent has used a tool', async () => {
    await using stage = await AgentRig.setup((request) => {
      if (request.last.startsWith('Look around.')) return { call: [shellCall(request, 'echo nothing here')] };
      // It reports only after the event has arrived.
      const isHeard = request.last.includes('nothing here');
      return isHeard
        ? { call: [shellCall(request, 'until [ -e heard ]; do sleep 0.05; done; meow done')] }
        : { say: 'ok' };
    });
    stage.workflow(
      toolEventsStep('hooks', stage.rig.folder),
      spawnStep('start', 'claude', 'needs = ["hooks.*"]'),
      agentStep('look', 'claude', 'Look around.', 'needs = ["start"]'),
      step(
        'watch',
        'branch',
        'condition = "meow await-event tool-completed --filter agent=claude --filter tool=Bash --timeout 25s"',
        'outputs = { data = { source = "stdout" } }',
        'needs = ["start"]',
        `on_true = { inline = [{ id = "note", executor = "shell", command = "touch heard" }] }`,
      ),
      killStep('stop', 'claude', 'needs = ["look", "watch"]'),
    );
    const { steps } = await stage.done(stage.run());
    expect(steps['watch.note']?.status).toBe('done');
    expect(steps['watch']?.outputs).toMatchObject({ data: 'tool=Bash' });
  });
});
